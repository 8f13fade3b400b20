"""What people have asked for in a schedule, and what they were told. A command whose web process died before it had
answered is given once more, as a person would click again: with the same key."""

from dataclasses import dataclass
from typing import Any

from tests.faults.crew import Actor, Crew
from tests.faults.script import Action

MOST_TRIES = 3


@dataclass
class Command:
    """One command and its fate so far."""

    action: Action
    web: Actor | None = None
    tries: int = 0
    answer: dict[str, Any] | None = None

    @property
    def open(self) -> bool:
        """Whether an answer may still come."""
        return self.answer is None and (self.web is not None or self.tries < MOST_TRIES)

    @property
    def result(self) -> str:
        """How it went, in a word."""
        return self.answer["result"] if self.answer else "unanswered"

    def told(self) -> str:
        """Return a line for the report."""
        extra = f" ({self.answer['told']})" if self.answer and "told" in self.answer else ""
        return f"{self.action.what}:{self.action.key or self.action.ticket} {self.result}{extra}"


class Commands:
    """All commands of a schedule, handed to the web that each names."""

    def __init__(self, crew: Crew) -> None:
        self._crew = crew
        self.all: list[Command] = []

    @property
    def open(self) -> bool:
        """Whether any answer may still come."""
        return any(command.open for command in self.all)

    def give(self, action: Action) -> None:
        """Ask for something."""
        self.all.append(Command(action))

    def serve(self) -> None:
        """Hand commands to webs that live, and take their answers."""
        webs = self._crew.of("web")
        for web in webs:
            for answer in web.answers():
                self.all[answer["id"]].answer = answer
                self.all[answer["id"]].web = None
        for number, command in enumerate(self.all):
            one = next((web for web in webs if web.place == command.action.actor % self._crew.webs), None)
            if command.open and command.web is None and one is not None and one.ready:
                command.web, command.tries = one, command.tries + 1
                one.tell({"id": number, "action": command.action.model_dump(mode="json")})

    def died(self, actor: Actor) -> None:
        """Note that a web has died; it may have answered before."""
        if actor.role == "web":
            for answer in actor.answers():
                self.all[answer["id"]].answer = answer
            for command in self.all:
                if command.web is actor:
                    command.web = None
