"""A drafter that needs no model: it quotes the passages that answer, word for word, inside a fixed frame."""

import asyncio
import re
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from functools import partial

from app.agent.skill import CallLog, Escalation
from app.agent.steps import NOT_COVERED
from app.agent.values import Draft, Observation, Passage, SearchResult, Sentence, Sufficiency
from app.msgids import msgid
from app.offline.questions import questions
from app.offline.quoting import Quote, pick_quotes
from app.offline.relevance import Relevance
from app.offline.wording import Frame, frame_for, greeting, is_chinese

WEAK_SOURCES = msgid("The passages found may not answer this ticket. Check them before sending.")
OTHER_LANGUAGE = msgid("The quoted passages are in another language than the ticket. Translate them before sending.")
HINT_NOT_FOLLOWED = msgid("Offline mode can't follow free instructions: the hint only chose among the passages found.")

_SHORTER = re.compile(r"短|简[短洁单明]|精简|少[写说]|\b(?:short\w*|brief\w*|concise\w*)\b", re.IGNORECASE)
_LONGER = re.compile(r"详细|具体|完整|展开|多[写说]|更长|\b(?:longer|detail\w*|complete|more)\b", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class _Length:
    """How much is quoted beside the best passages, see `Relevance.choose`; `topics` is the most passages, if any."""

    budget: int
    floor: float
    topics: int | None = None


_USUAL = _Length(budget=350, floor=1.0)
_SHORT = _Length(budget=0, floor=2.0, topics=1)
_LONG = _Length(budget=900, floor=0.0)


class ExtractiveDrafter:
    """Implements the Drafter port. It never writes a word of its own beside the sentences of the frame."""

    async def draft(self, observation: Observation, show: Callable[[str], Awaitable[None]], calls: CallLog) -> Draft:
        """Return the quotes that answer best, shown sentence by sentence. Raises Escalation when nothing answers."""
        del calls  # Nothing is paid for.
        search = observation.search
        if search is None or not search.passages or search.verdict.outcome is Sufficiency.INSUFFICIENT:
            raise Escalation(NOT_COVERED)
        sentences = _compose(observation, search)
        text = ""
        for sentence in sentences:
            text += sentence.text
            await show(text)
            await asyncio.sleep(0)
        used = {ref for sentence in sentences for ref in sentence.refs}
        return Draft(
            text=text,
            sentences=tuple(sentences),
            citations=tuple(passage.cite() for passage in search.passages if passage.ref in used),
            confidence=search.verdict.probability,
            origin="extract",
            warning=_warning(observation, search, used),
        )


def _compose(observation: Observation, search: SearchResult) -> list[Sentence]:
    ticket, hint = observation.ticket, observation.hint
    length = _length(hint)
    relevance = Relevance(search.passages)
    asked = questions(ticket)
    if hint and length is _USUAL:
        asked = (hint, *asked)
    everything = "\n".join((ticket.subject, ticket.content, hint or ""))
    scores = [partial(relevance.share, question) for question in asked]
    picked = {
        passage.ref: pick_quotes(passage.text, partial(relevance.share, everything), scores)
        for passage in search.passages
    }
    sizes = {ref: sum(len(quote.text) for quote in quotes) for ref, quotes in picked.items()}
    chosen = relevance.choose(asked, sizes, budget=length.budget, floor=length.floor)[: length.topics]
    if not chosen:
        raise Escalation(NOT_COVERED)
    frame = frame_for(f"{ticket.subject}\n{ticket.content}")
    sentences = [Sentence(text=greeting(frame, ticket.customer_name), refs=())]
    for passage in chosen:
        sentences.append(Sentence(text=_lead(frame, passage, chosen), refs=()))
        sentences += _quoted(picked[passage.ref], passage.ref)
    return [*sentences, Sentence(text=frame.closing, refs=())]


def _length(hint: str | None) -> _Length:
    if hint and _SHORTER.search(hint):
        return _SHORT
    return _LONG if hint and _LONGER.search(hint) else _USUAL


def _lead(frame: Frame, passage: Passage, chosen: Sequence[Passage]) -> str:
    if len(chosen) == 1:
        return frame.lead
    return frame.topic % (passage.heading.rsplit(" > ", 1)[-1] or passage.doc_title)


def _quoted(picked: Sequence[Quote], ref: str) -> list[Sentence]:
    """Return the quotes as sentences whose texts, joined, read as lines with a blank one at the end."""
    ends = [*(following.before for following in picked[1:]), "\n\n"]
    return [Sentence(text=f"{quote.text}{end}", refs=(ref,)) for quote, end in zip(picked, ends, strict=True)]


def _warning(observation: Observation, search: SearchResult, used: set[str]) -> str | None:
    """Return what the reviewer must know, one English msgid a line, or None."""
    ticket, hint = observation.ticket, observation.hint
    quoted = "\n".join(passage.text for passage in search.passages if passage.ref in used)
    lines = [
        WEAK_SOURCES if search.verdict.outcome is Sufficiency.WEAK else None,
        OTHER_LANGUAGE if is_chinese(quoted) != is_chinese(f"{ticket.subject}\n{ticket.content}") else None,
        HINT_NOT_FOLLOWED if hint and _length(hint) is _USUAL else None,
    ]
    return "\n".join(line for line in lines if line) or None
