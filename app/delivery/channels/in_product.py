"""Replies that the customer reads in the product itself: the ticket's message is the delivery.

It also takes the replies of channels that nothing speaks yet (e-mail, phone, merchant desk): their systems find the
message in the product or by the API, and nothing is sent to them.
"""

from typing import ClassVar
from uuid import UUID

from app.delivery.payload import Payload


class InProduct:
    """Nothing leaves the house: the reply is there once `delivery.service` has written the message, exactly once."""

    name: ClassVar[str] = "in_product"
    serves: ClassVar[frozenset[str]] = frozenset({"app", "web", "email", "merchant", "phone"})
    stands_in_for: ClassVar[frozenset[str]] = frozenset({"email", "merchant", "phone"})
    repeatable: ClassVar[bool] = True

    def send(self, delivery_id: UUID, payload: Payload) -> None:
        """Do nothing: there is no other side."""
