"""What an approved reply is made of, frozen at the approval: later changes to ticket or customer do not touch it."""

from uuid import UUID

from pydantic import BaseModel, ConfigDict


class Payload(BaseModel):
    """The reply as it leaves. `recipient` is the customer's number in the system that the ticket came from."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    text: str
    customer_id: UUID
    recipient: str
