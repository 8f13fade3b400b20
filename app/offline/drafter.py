"""A drafter that needs no model: it quotes the passages that answer, word for word, inside a fixed frame."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from functools import partial

from app.agent.skill import CallLog, Escalation
from app.agent.steps import NOT_COVERED
from app.agent.values import Category, Draft, Observation, Passage, Priority, SearchResult, Sentence, Sufficiency
from app.msgids import msgid
from app.offline import hints as wishes
from app.offline.answer_kinds import wants_figure
from app.offline.audience import for_the_customer
from app.offline.hints import wish_of
from app.offline.questions import questions
from app.offline.quoting import Quote, names_any, pick_quotes, without
from app.offline.relevance import Length, Relevance
from app.offline.wording import Frame, frame_for, greeting, is_chinese

WEAK_SOURCES = msgid("The passages found may not answer this ticket. Check them before sending.")
OTHER_LANGUAGE = msgid("The quoted passages are in another language than the ticket. Translate them before sending.")
HINT_NOT_FOLLOWED = msgid("Offline mode can't follow free instructions: the hint only chose among the passages found.")
HINT_CHANGED_NOTHING = msgid("The hint changed nothing: the draft is the same as without it.")
UNANSWERED = (
    msgid("The first question of the ticket may be left open: no passage speaks of it clearly."),
    msgid("The second question of the ticket may be left open: no passage speaks of it clearly."),
    msgid("The third question of the ticket may be left open: no passage speaks of it clearly."),
    msgid("The fourth question of the ticket may be left open: no passage speaks of it clearly."),
    msgid("One of the later questions of the ticket may be left open: no passage speaks of it clearly."),
)
"""Which question is left open, by its place; the last stands for all later ones."""

_LENGTHS = {
    wishes.Length.USUAL: Length(),
    wishes.Length.SHORT: Length(topics=1),
    wishes.Length.LONG: Length(budget=900),
}


@dataclass(frozen=True, slots=True)
class _Composed:
    """The sentences of a draft, and the places of the questions that it leaves open."""

    sentences: tuple[Sentence, ...]
    unanswered: tuple[int, ...]

    @property
    def text(self) -> str:
        return "".join(sentence.text for sentence in self.sentences)


class ExtractiveDrafter:
    """Implements the Drafter port. It never writes a word of its own beside the sentences of the frame."""

    async def draft(self, observation: Observation, show: Callable[[str], Awaitable[None]], calls: CallLog) -> Draft:
        """Return the quotes that answer best, shown sentence by sentence. Raises Escalation when nothing answers."""
        del calls  # Nothing is paid for.
        search = observation.search
        if search is None or not search.passages or search.verdict.outcome is Sufficiency.INSUFFICIENT:
            raise Escalation(NOT_COVERED)
        composed = _compose(observation)
        text = ""
        for sentence in composed.sentences:
            text += sentence.text
            await show(text)
            await asyncio.sleep(0)
        used = {ref for sentence in composed.sentences for ref in sentence.refs}
        return Draft(
            text=text,
            sentences=composed.sentences,
            citations=tuple(passage.cite() for passage in search.passages if passage.ref in used),
            confidence=search.verdict.probability,
            origin="extract",
            warning=_warning(observation, search, composed),
        )


def _compose(observation: Observation) -> _Composed:
    ticket, wish = observation.ticket, wish_of(observation.hint)
    whole = f"{ticket.subject}\n{ticket.content}"
    passages = for_the_customer(observation)
    relevance = Relevance(passages, whole)
    asked = questions(ticket)
    sought = (wish.rest, *asked) if wish.rest else asked
    score = partial(relevance.share, f"{whole}\n{wish.rest}")
    scores = [partial(relevance.share, question) for question in sought]
    picked = {
        passage.ref: without(pick_quotes(passage.text, score, scores), wish.left_out)
        for passage in passages
        if not names_any(passage.heading, wish.left_out)
    }
    sizes = {ref: sum(len(quote.text) for quote in quotes) for ref, quotes in picked.items()}
    choice = relevance.choose(sought, sizes, _LENGTHS[wish.length], is_urgent=_is_urgent(observation))
    unanswered = tuple(at - len(sought) + len(asked) for at in choice.unanswered if at >= len(sought) - len(asked))
    figure_is_open = any(wants_figure(asked[at]) for at in unanswered)
    is_answered = any(relevance.answers(question, one) for question in asked for one in choice.passages)
    if not choice.passages or (figure_is_open and not is_answered):
        raise Escalation(NOT_COVERED)
    frame = frame_for(whole)
    opening = greeting(frame, ticket.customer_name)
    sentences = [Sentence(text=text, refs=()) for text in (opening, _sorry(observation, frame)) if text]
    for passage in choice.passages:
        sentences.append(Sentence(text=_lead(frame, passage, choice.passages), refs=()))
        sentences += _quoted(picked[passage.ref], passage.ref)
    return _Composed((*sentences, Sentence(text=frame.closing, refs=())), unanswered)


def _is_urgent(observation: Observation) -> bool:
    return observation.classification is not None and observation.classification.priority is Priority.URGENT


def _sorry(observation: Observation, frame: Frame) -> str:
    """Return a calm word for who is in trouble or complains; nothing for the others."""
    classified = observation.classification
    complains = classified is not None and classified.category is Category.COMPLAINT
    return frame.sorry if complains or _is_urgent(observation) else ""


def _lead(frame: Frame, passage: Passage, chosen: Sequence[Passage]) -> str:
    if len(chosen) == 1:
        return frame.lead
    return frame.topic % (passage.heading.rsplit(" > ", 1)[-1] or passage.doc_title)


def _quoted(picked: Sequence[Quote], ref: str) -> list[Sentence]:
    """Return the quotes as sentences whose texts, joined, read as lines with a blank one at the end."""
    ends = [*(following.before for following in picked[1:]), "\n\n"]
    return [Sentence(text=f"{quote.text}{end}", refs=(ref,)) for quote, end in zip(picked, ends, strict=True)]


def _warning(observation: Observation, search: SearchResult, composed: _Composed) -> str | None:
    """Return what the reviewer must know, one English msgid a line, or None."""
    ticket, asked = observation.ticket, questions(observation.ticket)
    quoted = "\n".join(sentence.text for sentence in composed.sentences if sentence.refs)
    is_foreign = is_chinese(quoted) != is_chinese(f"{ticket.subject}\n{ticket.content}")
    # Words can't be compared across languages, and a single question is what the verdict is about.
    open_ones = composed.unanswered if len(asked) > 1 and not is_foreign else ()
    lines = [
        WEAK_SOURCES if search.verdict.outcome is Sufficiency.WEAK else None,
        OTHER_LANGUAGE if is_foreign else None,
        *dict.fromkeys(UNANSWERED[min(at, len(UNANSWERED) - 1)] for at in open_ones),
        _about_hint(observation, composed),
    ]
    return "\n".join(line for line in lines if line) or None


def _about_hint(observation: Observation, composed: _Composed) -> str | None:
    if not observation.hint:
        return None
    if _text_without_hint(observation) == composed.text:
        return HINT_CHANGED_NOTHING
    return HINT_NOT_FOLLOWED if wish_of(observation.hint).rest else None


def _text_without_hint(observation: Observation) -> str | None:
    try:
        return _compose(observation.model_copy(update={"hint": None})).text
    except Escalation:
        return None
