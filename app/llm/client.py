"""One client for any OpenAI-compatible chat model: function calling, JSON answers, streamed JSON answers.

Every attempt is put on the CallLog whatever becomes of it. The SDK never retries by itself: an attempt that is not
counted would be paid for and not seen.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from json import JSONDecodeError
from typing import TypeVar
from urllib.parse import urlsplit

import openai
from openai.types.chat import ChatCompletionMessageParam
from pydantic import BaseModel, ValidationError

from app.agent.ports import ModelTimedOut, ModelUnavailable
from app.agent.skill import CallLog, SkillFailed
from app.llm.answers import check_finish, read_answer, tool_params
from app.llm.failures import BROKE_OFF, NOT_UNDERSTOOD, TIMEOUT, CallFailed, read_failure
from app.llm.metering import FAILED, Meter
from app.llm.replies import Choice, Completion, Piece
from app.settings import Settings

PLAN_TEMPERATURE = 0.1
WRITE_TEMPERATURE = 0.3
CONNECT_TIMEOUT_S = 5.0
NO_REASON = "none"
CHAT_PATH = "/chat/completions"
JSON_FORMAT = {"type": "json_object"}
MAX_ANSWER_CHARS = 32_000
"""A model that babbles on is cut off here."""

logger = logging.getLogger(__name__)
T = TypeVar("T")
M = TypeVar("M", bound=BaseModel)


@dataclass(frozen=True, slots=True)
class ChatRequest:
    """What is asked: `task` and `prompt_version` go on record with the call."""

    task: str
    prompt_version: str
    messages: tuple[ChatCompletionMessageParam, ...]

    @property
    def text(self) -> str:
        """All of the content, for estimates."""
        return "\n".join(str(message.get("content") or "") for message in self.messages)


@dataclass(frozen=True, slots=True)
class Tool:
    """A function on offer; `parameters` is its JSON schema as text."""

    name: str
    description: str
    parameters: str


@dataclass(frozen=True, slots=True)
class ToolChoice:
    """The function that the model wants called; `arguments` is text, not yet validated."""

    name: str
    arguments: str


class ChatClient:
    """Talks to one endpoint. One per process, used from one event loop for its whole life."""

    def __init__(self, settings: Settings) -> None:
        self._model = settings.llm_model
        self._limit_s = settings.llm_timeout_s
        self._provider = urlsplit(settings.llm_base_url).hostname or "unknown"
        self._sdk = openai.AsyncOpenAI(
            base_url=settings.llm_base_url,
            # Local servers take no key, but the SDK insists on one.
            api_key=settings.llm_api_key.get_secret_value() or "unset",
            max_retries=0,
            timeout=openai.Timeout(self._limit_s, connect=min(CONNECT_TIMEOUT_S, self._limit_s)),
        )

    async def close(self) -> None:
        """Close the connections."""
        await self._sdk.close()

    async def choose_tool(self, request: ChatRequest, tools: Sequence[Tool], calls: CallLog) -> ToolChoice | None:
        """Return the first function that the model calls, or None when it calls none.

        Raises ModelUnavailable, SkillFailed when the model broke off before it had chosen.
        """

        async def send(meter: Meter) -> ToolChoice | None:
            params = tool_params([(tool.name, tool.description, tool.parameters) for tool in tools])
            completion = await self._ask(request, temperature=PLAN_TEMPERATURE, tools=params)
            choice = _note(completion, meter)
            for call in choice.message.tool_calls or ():
                if call.function is not None:
                    meter.see(call.function.arguments or "")
                    return ToolChoice(call.function.name, call.function.arguments or "{}")
            check_finish(meter.finish_reason)
            return None

        return await self._call(request, calls, send)

    async def complete_json(self, request: ChatRequest, shape: type[M], calls: CallLog) -> M:
        """Return the answer as `shape`. Raises ModelUnavailable, or SkillFailed when the answer does not fit."""

        async def send(meter: Meter) -> M:
            completion = await self._ask(request, temperature=WRITE_TEMPERATURE, response_format=JSON_FORMAT)
            _note(completion, meter)
            check_finish(meter.finish_reason)
            return read_answer(meter.answer, shape)

        return await self._call(request, calls, send)

    async def stream_json(
        self, request: ChatRequest, shape: type[M], on_text: Callable[[str], Awaitable[None]], calls: CallLog
    ) -> M:
        """Like `complete_json`, and `on_text` is given the whole raw answer so far each time it has grown."""

        async def send(meter: Meter) -> M:
            stream = await self._sdk.post(
                CHAT_PATH,
                cast_to=object,
                body={
                    **self._body(request, temperature=WRITE_TEMPERATURE, response_format=JSON_FORMAT),
                    "stream": True,
                    "stream_options": {"include_usage": True},
                },
                stream=True,
                stream_cls=openai.AsyncStream[object],
            )
            async with stream:
                async for chunk in stream:
                    if _note_piece(chunk, meter):
                        await on_text(meter.answer)
            return _finish_stream(meter, shape)

        return await self._call(request, calls, send)

    async def _ask(self, request: ChatRequest, **parameters: object) -> object:
        """Return the provider's answer as parsed JSON.

        The SDK's `chat.completions.create` would walk the whole request to rename fields that have one name only, and
        build an object of every field of the answer unchecked: together a third of the run's CPU.
        """
        return await self._sdk.post(CHAT_PATH, cast_to=object, body=self._body(request, **parameters))

    def _body(self, request: ChatRequest, **parameters: object) -> dict[str, object]:
        return {"model": self._model, "messages": request.messages, **parameters}

    async def _call(self, request: ChatRequest, calls: CallLog, send: Callable[[Meter], Awaitable[T]]) -> T:
        """Make one attempt, and a second one only where the first can't have cost or shown anything."""
        try:
            return await self._attempt(request, calls, send, 1)
        except CallFailed as failed:
            first = failed
        if first.retry_after_s is None:
            raise self._unavailable(first)
        await asyncio.sleep(first.retry_after_s)
        try:
            return await self._attempt(request, calls, send, 2)
        except CallFailed as second:
            raise self._unavailable(second) from None

    def _unavailable(self, last: CallFailed) -> ModelUnavailable:
        if last.code == TIMEOUT:
            return ModelTimedOut(last.message, self._limit_s)
        return ModelUnavailable(last.message)

    async def _attempt(
        self, request: ChatRequest, calls: CallLog, send: Callable[[Meter], Awaitable[T]], attempt: int
    ) -> T:
        meter = Meter(request.task, self._provider, self._model, attempt, request.prompt_version, request.text)
        try:
            async with asyncio.timeout(self._limit_s) as limit:
                return await send(meter)
        except asyncio.CancelledError:
            meter.end("cancelled")
            raise
        except SkillFailed as failed:
            meter.error = failed.code
            raise
        except CallFailed as failed:
            meter.end(FAILED, failed.code)
            raise
        except (openai.OpenAIError, TimeoutError, JSONDecodeError) as error:
            if isinstance(error, TimeoutError) and not limit.expired():
                raise  # whose ever it is, it says nothing about the model
            failure = read_failure(error)
            meter.end(FAILED, failure.code)
            logger.warning("model call failed: task=%s provider=%s code=%s", request.task, self._provider, failure.code)
            # The SDK's errors quote addresses and bodies: they end here.
            raise failure from None
        finally:
            calls.add(meter.call())


def _note(answer: object, meter: Meter) -> Choice:
    """Note what a whole answer says and return its first choice."""
    completion = _read(answer, Completion)
    if not completion.choices:
        raise CallFailed("unreadable", NOT_UNDERSTOOD)
    choice = completion.choices[0]
    meter.usage = completion.usage
    meter.finish_reason = choice.finish_reason or NO_REASON
    meter.see(choice.message.content or "")
    return choice


def _note_piece(chunk: object, meter: Meter) -> bool:
    """Note what a piece of a streamed answer says; True when the answer has grown."""
    read = _read(chunk, Piece)
    meter.usage = read.usage or meter.usage
    if not read.choices:
        return False
    choice = read.choices[0]
    meter.finish_reason = choice.finish_reason or meter.finish_reason
    piece = choice.delta.content if choice.delta else None
    if not piece:
        return False
    meter.see(piece)
    if len(meter.answer) > MAX_ANSWER_CHARS:
        raise SkillFailed("model_output_too_long", "The answer is far too long.")
    return True


def _read(answer: object, shape: type[M]) -> M:
    try:
        return shape.model_validate(answer)
    except ValidationError:
        raise CallFailed("unreadable", NOT_UNDERSTOOD) from None


def _finish_stream(meter: Meter, shape: type[M]) -> M:
    """Read the whole answer. A stream that ends without saying why has broken off, unless the answer is complete."""
    if meter.finish_reason != FAILED:
        check_finish(meter.finish_reason)
        return read_answer(meter.answer, shape)
    try:
        answer = read_answer(meter.answer, shape)
    except SkillFailed:
        raise CallFailed("broke_off", BROKE_OFF) from None
    meter.finish_reason = NO_REASON
    return answer
