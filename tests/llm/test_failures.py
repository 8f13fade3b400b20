"""What goes wrong between us and a model, over HTTP: what is raised, what is on record, and that nothing leaks."""

import asyncio
import logging
import socket
import time

import pytest
from pydantic import BaseModel

from app.agent.ports import ModelTimedOut, ModelUnavailable
from app.llm import failures
from app.llm.client import ChatRequest
from tests.llm.conftest import KEY

REQUEST = ChatRequest("draft", "test-1", ({"role": "user", "content": "Answer in JSON."},))


class Answer(BaseModel):
    draft: str


def complete(with_client, calls, model="stub", **more):
    return with_client(lambda client: client.complete_json(REQUEST, Answer, calls), model, **more)


def stream(with_client, calls, model="stub", on_text=None, **more):
    async def ignore(text):
        pass

    return with_client(lambda client: client.stream_json(REQUEST, Answer, on_text or ignore, calls), model, **more)


@pytest.mark.parametrize("ask", [complete, stream])
@pytest.mark.parametrize(
    ("status", "words"),
    [
        (400, failures.REFUSED),
        (401, failures.KEY_REFUSED),
        (402, failures.OUT_OF_CREDIT),
        (404, failures.UNKNOWN_MODEL),
        (429, failures.BUSY),
        (500, failures.FAULTY),
        (503, failures.FAULTY),
    ],
)
def test_refusals(with_client, stub_llm, calls, ask, status, words):
    with pytest.raises(ModelUnavailable, match=words):
        ask(with_client, calls, f"stub;status={status}")
    (call,) = calls.take()
    assert (call.attempt, call.finish_reason, call.error) == (1, "error", f"http_{status}")
    assert (call.tokens_in, call.tokens_out) == (0, 0)
    assert stub_llm.stats()["requests"] == 1


@pytest.mark.parametrize("status", [429, 503])
def test_short_wait_that_is_asked_for_is_granted_once(with_client, calls, status):
    answer = complete(with_client, calls, f"stub;status={status};times=1;retry_after=0")
    assert answer.draft
    assert [(call.attempt, call.error) for call in calls.take()] == [(1, f"http_{status}"), (2, None)]


def test_second_refusal_is_final(with_client, stub_llm, calls):
    with pytest.raises(ModelUnavailable, match=failures.BUSY):
        complete(with_client, calls, "stub;status=429;retry_after=0")
    assert [call.attempt for call in calls.take()] == [1, 2]
    assert stub_llm.stats()["requests"] == 2


@pytest.mark.parametrize("wait", ["30", "-1", "nan", "Wed, 21 Oct 2026 07:28:00 GMT"])
def test_long_or_odd_wait_is_not_granted(with_client, calls, wait):
    with pytest.raises(ModelUnavailable):
        complete(with_client, calls, f"stub;status=429;retry_after={wait}")
    assert len(calls.take()) == 1


def test_nobody_listens(with_client, calls):
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        port = unused.getsockname()[1]
        with pytest.raises(ModelUnavailable, match=failures.NO_CONNECTION):
            complete(with_client, calls, base_url=f"http://127.0.0.1:{port}/v1")
    assert [(call.attempt, call.error, call.tokens_in) for call in calls.take()] == [
        (1, "unreachable", 0),
        (2, "unreachable", 0),
    ]


def test_stream_cut_in_the_middle(with_client, calls):
    seen = []

    async def on_text(text):
        seen.append(text)

    with pytest.raises(ModelUnavailable, match=failures.BROKE_OFF):
        stream(with_client, calls, "stub;chunks=10;chunk_delay=0.02;cut=3;text=200", on_text)
    assert len(seen) == 3
    (call,) = calls.take()
    assert (call.attempt, call.finish_reason, call.error) == (1, "error", "broke_off")
    assert call.tokens_out > 0


@pytest.mark.parametrize("ask", [complete, stream])
def test_silence_ends_at_the_limit(with_client, stub_llm, calls, ask):
    started = time.monotonic()
    with pytest.raises(ModelTimedOut, match=failures.NO_ANSWER) as raised:
        ask(with_client, calls, "stub;delay=20", timeout_s=0.3)
    assert raised.value.limit_s == 0.3
    assert time.monotonic() - started < 3
    (call,) = calls.take()
    assert (call.attempt, call.finish_reason, call.error) == (1, "error", "timeout")
    assert call.tokens_in > 0


def test_a_trickle_ends_at_the_limit_too(with_client, calls):
    with pytest.raises(ModelTimedOut, match=failures.NO_ANSWER):
        stream(with_client, calls, "stub;chunks=100;chunk_delay=0.1;text=200", timeout_s=0.5)
    assert [call.error for call in calls.take()] == ["timeout"]


@pytest.mark.parametrize(
    ("model", "phase"), [("stub;delay=20", "before_first_byte"), ("stub;chunk_delay=20", "mid_stream")]
)
def test_cancel_closes_the_socket_and_keeps_the_record(with_client, stub_llm, calls, model, phase):
    async def work(client):
        seen = asyncio.Event()

        async def on_text(text):
            seen.set()

        task = asyncio.create_task(client.stream_json(REQUEST, Answer, on_text, calls))
        if phase == "mid_stream":
            await asyncio.wait_for(seen.wait(), 5)
        else:
            await _until(lambda: stub_llm.stats()["requests"] == 1)
        task.cancel()
        clicked = time.monotonic()
        with pytest.raises(asyncio.CancelledError):
            await task
        await _until(lambda: stub_llm.stats()["aborts"])
        return clicked

    clicked = with_client(work, model, timeout_s=30)
    (abort,) = stub_llm.stats()["aborts"]
    assert abort["phase"] == phase
    assert abort["at"] - clicked < 1
    (call,) = calls.take()
    assert (call.finish_reason, call.error) == ("cancelled", None)
    assert call.tokens_in > 0


@pytest.mark.parametrize("ask", [complete, stream])
def test_a_web_page_is_no_answer(with_client, calls, ask):
    with pytest.raises(ModelUnavailable):
        ask(with_client, calls, "stub;html=1")
    (call,) = calls.take()
    assert call.finish_reason == "error"


@pytest.mark.parametrize("error", [RuntimeError, TimeoutError])
def test_failing_viewer_is_not_taken_for_the_model(with_client, calls, error):
    async def broken(text):
        raise error("the page is gone")

    with pytest.raises(error, match="the page is gone"):
        stream(with_client, calls, on_text=broken)
    assert [call.finish_reason for call in calls.take()] == ["error"]


@pytest.mark.parametrize("model", ["stub;status=401", "stub;status=500", "stub;cut=2", "stub;delay=9", "stub;html=1"])
def test_no_key_in_errors_or_logs(with_client, calls, caplog, model):
    caplog.set_level(logging.DEBUG)
    with pytest.raises(ModelUnavailable) as raised:
        stream(with_client, calls, model, timeout_s=0.4)
    error = raised.value
    seen = [str(error), repr(error), repr(error.__cause__), caplog.text, repr(calls.take())]
    assert not any(KEY in text for text in seen)
    assert error.__suppress_context__ or error.__context__ is None


def test_credentials_in_the_address_are_not_recorded(with_client, stub_llm, calls):
    with pytest.raises(ModelUnavailable):
        complete(with_client, calls, "stub;status=500", base_url=stub_llm.base_url.replace("//", "//me:hunter2@"))
    (call,) = calls.take()
    assert call.provider == "127.0.0.1"


async def _until(true, seconds=5.0):
    async with asyncio.timeout(seconds):
        while not await asyncio.to_thread(true):
            await asyncio.sleep(0.01)
