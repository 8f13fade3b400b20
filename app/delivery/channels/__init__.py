"""The ways out of the house: one file each, one list."""

from collections.abc import Sequence

from app.delivery.channels.channel import Channel
from app.delivery.channels.in_product import InProduct

CHANNELS: tuple[Channel, ...] = (InProduct(),)
"""The first one that serves a ticket's channel takes the reply."""


def channel_for(ticket_channel: str, channels: Sequence[Channel] = CHANNELS) -> Channel | None:
    """Return the channel that takes replies to tickets of this channel, if there is one."""
    return next((channel for channel in channels if ticket_channel in channel.serves), None)
