"""Channels that go wrong in the ways that real ones do."""

import time
from dataclasses import dataclass, field
from typing import ClassVar
from uuid import UUID

from app.delivery.channels.channel import NotSent
from app.delivery.payload import Payload

WEB = frozenset({"web"})


@dataclass
class Outside:
    """A channel that can't tell a repeated send from a new one; remembers what has left through it."""

    name: ClassVar[str] = "outside"
    serves: ClassVar[frozenset[str]] = WEB
    repeatable: ClassVar[bool] = False
    left: list[UUID] = field(default_factory=list)

    def send(self, delivery_id: UUID, payload: Payload) -> None:
        self.left.append(delivery_id)


class Refusing(Outside):
    """Says no."""

    def send(self, delivery_id: UUID, payload: Payload) -> None:
        raise NotSent("The mailbox is full.")


class Broken(Outside):
    """Loses the connection after the reply has left."""

    def send(self, delivery_id: UUID, payload: Payload) -> None:
        super().send(delivery_id, payload)
        raise ConnectionError("reset by peer")


class Stuck(Outside):
    """Says that it sends, and never comes back; the process is then killed."""

    def send(self, delivery_id: UUID, payload: Payload) -> None:
        print(f"sending {delivery_id}", flush=True)  # noqa: T201 - the test waits for this line
        time.sleep(600)
