"""The drafter that asks a model: it writes from the passages found and nothing else, and shows the text as it grows."""

import re
from collections.abc import Awaitable, Callable, Sequence

import jiter
from pydantic import BaseModel, Field

from app.agent.skill import CallLog, Escalation, SkillFailed
from app.agent.values import Draft, Observation, Passage, Sentence, Sufficiency
from app.llm.client import ChatClient, ChatRequest
from app.llm.prompting import Prompt, load_prompt, plain
from app.llm.ticket_text import fence_for, hint_part, past_part, ticket_part
from app.msgids import msgid
from app.visible import is_blank

MAX_DRAFT_CHARS = 4_000
NO_ANSWER_IN_SOURCES = msgid("The knowledge base does not answer this question.")
ANSWERED_IN_PART = msgid("The sources answer this only in part.")
EDIT_NEEDED = msgid("The model asks for a check by a person.")
_REF = r"(?:kb-\d+(?:\s*[,，、]\s*kb-\d+)*)"
_REF_MARK = re.compile(rf"[ \t]*(?:[\[【(（]{_REF}[\]】)）]|[\[【]\d{{1,2}}[\]】])", re.IGNORECASE)

CiteSentences = Callable[[str, Sequence[Passage]], tuple[Sentence, ...]]
"""Splits a text into sentences, each with the refs of the passages that support it: `guard.evidence.cite_sentences`."""


class DraftAnswer(BaseModel):
    """What the model is asked for."""

    answers: bool = True
    draft: str = ""
    cited: tuple[str, ...] = ()
    confidence: float = Field(ge=0, le=1)
    needs_human_edit: bool = False


class ModelDrafter:
    """Implements `agent.ports.Drafter` by a streamed JSON answer."""

    def __init__(self, client: ChatClient, cite_sentences: CiteSentences) -> None:
        self._client = client
        self._cite_sentences = cite_sentences
        self._prompt = load_prompt("draft")

    async def draft(self, observation: Observation, show: Callable[[str], Awaitable[None]], calls: CallLog) -> Draft:
        """Return the model's draft; `show` is given the text so far, never JSON.

        Raises Escalation when the sources do not answer, SkillFailed on an answer that does not fit, ModelUnavailable.
        """
        passages = observation.search.passages if observation.search else ()
        if not passages:
            raise Escalation(NO_ANSWER_IN_SOURCES)
        request = _request(self._prompt, observation, passages)
        answer = await self._client.stream_json(request, DraftAnswer, _shower(show), calls)
        if not answer.answers:
            raise Escalation(NO_ANSWER_IN_SOURCES)
        return self._read(answer, observation, passages)

    def _read(self, answer: DraftAnswer, observation: Observation, passages: Sequence[Passage]) -> Draft:
        text = customer_text(answer.draft)
        if is_blank(text):
            raise SkillFailed("draft_empty", "The reply is empty.")
        if len(text) > MAX_DRAFT_CHARS:
            raise SkillFailed("draft_too_long", "The reply is too long.")
        named = [passage for passage in passages if passage.ref in answer.cited]
        sentences = self._cite_sentences(text, named or passages)
        used = {passage.ref for passage in named} or {ref for sentence in sentences for ref in sentence.refs}
        return Draft(
            text=text,
            sentences=sentences,
            citations=tuple(passage.cite() for passage in passages if passage.ref in used),
            confidence=answer.confidence,
            origin="model",
            warning=_warning(answer, observation),
        )


def customer_text(draft: str) -> str:
    """Return a model's draft as the customer would read it: no control characters, no marks like [kb-1]."""
    return _REF_MARK.sub("", plain(draft)).strip()


def _shower(show: Callable[[str], Awaitable[None]]) -> Callable[[str], Awaitable[None]]:
    shown = ""

    async def on_text(raw: str) -> None:
        nonlocal shown
        text = _draft_so_far(raw)
        if text != shown and not is_blank(text):
            shown = text
            await show(text)

    return on_text


def _draft_so_far(raw: str) -> str:
    """Return the draft's text in JSON that is still being written, or nothing while there is none to show."""
    start = raw.find("{")
    try:
        partial = jiter.from_json(raw[max(start, 0) :].encode(), partial_mode="trailing-strings")
    except ValueError:
        return ""
    if not isinstance(partial, dict) or partial.get("answers") is False:
        return ""
    draft = partial.get("draft")
    return customer_text(draft)[:MAX_DRAFT_CHARS] if isinstance(draft, str) else ""


def _request(prompt: Prompt, observation: Observation, passages: Sequence[Passage]) -> ChatRequest:
    ticket, found = observation.ticket, observation.classification
    fence = fence_for(observation, *(part for passage in passages for part in _lines(passage)))
    blocks = [fence.wrap(f"知识库摘录 {passage.ref}", "\n".join(_lines(passage))) for passage in passages]
    user = prompt.render(
        "user",
        channel=ticket.channel,
        category=found.category if found else "未分类",
        ticket=ticket_part(ticket, fence),
        past=past_part(ticket.past, fence),
        passages="\n\n".join(blocks),
        hint=hint_part(observation.hint, fence),
    )
    system = prompt.render("system")
    return ChatRequest(
        "draft", prompt.version, ({"role": "system", "content": system}, {"role": "user", "content": user})
    )


def _lines(passage: Passage) -> tuple[str, str]:
    return f"《{passage.doc_title}》{passage.heading}", passage.text


def _warning(answer: DraftAnswer, observation: Observation) -> str | None:
    if observation.search and observation.search.verdict.outcome is Sufficiency.WEAK:
        return ANSWERED_IN_PART
    return EDIT_NEEDED if answer.needs_human_edit else None
