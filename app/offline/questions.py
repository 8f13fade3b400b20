"""A ticket taken apart into the things it asks. Pure."""

import re

from app.agent.values import TicketFacts
from app.offline.words import pieces

_CLAUSE_END = re.compile(
    r"(?<=[。！？!?；;\n])|(?<=[.])(?=\s)|(?=另外|还有|顺便|再问|以及|\b(?:also|besides)\b)", re.IGNORECASE
)
_PART_END = re.compile(r"[，,、]")
_ASKS = re.compile(
    r"怎么|怎样|咋|如何|哪|多久|多少|(?<!好)几[天次张台点号件时]|什么(?![都也破鬼]|玩意)|啥(?![都也])|何时|能不能|能否|可不可以|可否|要不要|是不是|有没有|吗|呢|谁|么[？?]?$|"
    r"(?:不|没)[？?]?$|[?？]|(?:请|需要|想)(?:告知|告诉|知道)|\b(?:how|what|when|where|which|who|can|could|do|does|is|are)\b",
    re.IGNORECASE,
)


def questions(ticket: TicketFacts) -> tuple[str, ...]:
    """Return the questions of a ticket in its own words, in order; the whole text where nothing is asked."""
    clauses = [clause.strip() for clause in _CLAUSE_END.split(ticket.content) if clause and clause.strip()]
    asked: list[str] = []
    for clause in clauses:
        parts = [part.strip() for part in _PART_END.split(clause) if part.strip()]
        if sum(1 for part in parts if _ASKS.search(part)) > 1:
            asked += [part for part in parts if _ASKS.search(part)]
        elif _ASKS.search(clause):
            asked.append(clause)
    asked = [one for one in asked if pieces(one)]
    return tuple(asked) or (f"{ticket.subject}\n{ticket.content}",)
