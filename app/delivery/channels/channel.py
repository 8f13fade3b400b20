"""What a channel is."""

from typing import ClassVar, Protocol
from uuid import UUID

from app.delivery.payload import Payload


class NotSent(Exception):
    """The channel refused: the reply has surely not reached the customer. `reason` is an English msgid."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


class Channel(Protocol):
    """Carries replies to the customer.

    `serves` are the ticket channels that it answers; for those it `stands_in_for` it carries the reply another way,
    which pages say. `repeatable`: sending the same delivery twice reaches the
    customer once, so a send that was cut off may be tried again; without it the outcome waits for a person.
    """

    name: ClassVar[str]
    serves: ClassVar[frozenset[str]]
    stands_in_for: ClassVar[frozenset[str]]
    repeatable: ClassVar[bool]

    def send(self, delivery_id: UUID, payload: Payload) -> None:
        """Hand the reply over. Raises NotSent; any other error leaves it unknown whether the reply went out."""
