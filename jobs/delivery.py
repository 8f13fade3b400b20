"""Jobs of the queue `delivery`."""

from uuid import UUID

from app.delivery.service import deliver
from jobs.process import container


def deliver_reply(delivery_id: str) -> None:
    """Send one approved reply; a second delivery of the job finds it gone or under way and stops."""
    deliver(container().transaction, UUID(delivery_id))
