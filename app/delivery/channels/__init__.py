"""The ways out of the house: one file each, one list."""

from app.delivery.channels.channel import Channel
from app.delivery.channels.in_product import InProduct

CHANNELS: tuple[Channel, ...] = (InProduct(),)
"""The first one that serves a ticket's channel takes the reply."""
