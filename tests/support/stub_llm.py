"""A model server for tests and benches: speaks the OpenAI chat and embeddings API, thinks nothing, repeats itself.

    python -m tests.support.stub_llm [--port 0]

prints `LISTEN 127.0.0.1 <port>` once it is bound. Standard library only.

POST /v1/chat/completions   with `tools`: calls the first tool that the conversation has not called yet, then "done";
                            with `response_format`: a class when the system prompt speaks of "priority", else a draft
POST /v1/embeddings         a unit vector an input (hashed character pairs), as floats or base64
GET  /stats                 counters, and the requests whose client went away before the answer was complete
GET  /requests              the bodies of the latest chat requests
POST /reset                 forget all of that

Knobs ride on the model name, the one thing that every client passes on, for example "stub;chunks=40;chunk_delay=.5":

    delay=S         wait before the first byte           status=N        answer with that error ...
    chunks=N        pieces of a streamed answer          times=N         ... to the first N requests of this model only
    chunk_delay=S   wait after each piece                retry_after=S   ... with that header
    cut=N           close the socket after N pieces      bad=1           text instead of JSON
    text=N          a draft of about N characters        answers=0       a draft that says the sources do not answer
    finish=WORD     that finish_reason                   usage=0         no token counts
    html=1          a web page instead of an answer
"""

import argparse
import asyncio
import base64
import hashlib
import json
import math
import struct
import time
from collections import Counter, deque
from dataclasses import dataclass, field
from typing import Any

Json = dict[str, Any]

DRAFT = "您好，感谢您的来信。退款会在审核通过后的三到五个工作日内原路退回；如超时未到账，请提供订单号，我们将为您核实。"
CLASS = {"priority": "normal", "category": "refund", "confidence": 0.93, "reasoning": "常规退款咨询"}


@dataclass(frozen=True)
class Knobs:
    """How one request is to be answered."""

    delay: float = 0.0
    chunks: int = 8
    chunk_delay: float = 0.0
    cut: int = 0
    text: int = 60
    status: int = 0
    times: int = 0
    retry_after: str = ""
    bad: int = 0
    answers: int = 1
    finish: str = ""
    usage: int = 1
    html: int = 0

    @classmethod
    def of(cls, model: str) -> "Knobs":
        """Read the knobs in a model name; unknown ones are ignored."""
        given = dict(part.partition("=")[::2] for part in model.split(";")[1:])
        types = {name: type(value) for name, value in vars(cls()).items()}
        return cls(**{name: types[name](value) for name, value in given.items() if name in types})


@dataclass
class Memory:
    """What the server remembers between requests."""

    counts: Counter[str] = field(default_factory=Counter)
    aborts: list[Json] = field(default_factory=list)
    asked: Counter[str] = field(default_factory=Counter)
    requests: deque[Json] = field(default_factory=lambda: deque(maxlen=50))


def choose_tool(body: Json) -> Json | None:
    """Return the call of the first tool on offer that the conversation has not called yet."""
    messages = body["messages"]
    called = {call["function"]["name"] for message in messages for call in message.get("tool_calls") or ()}
    offered = [tool["function"]["name"] for tool in body["tools"]]
    name = next((name for name in offered if name not in called), None)
    if name is None:
        return None
    said = next((str(message["content"]) for message in messages if message["role"] == "user"), "")
    # A search without a query is one for the ticket itself: better than the head of a prompt.
    arguments = {} if "search" in name else {"ticket_content": said[:200]}
    return {"name": name, "arguments": json.dumps(arguments, ensure_ascii=False)}


def compose(body: Json, knobs: Knobs) -> str:
    """Return the content of an answer without tools."""
    text = (DRAFT * (knobs.text // len(DRAFT) + 1))[: knobs.text]
    if "response_format" not in body:
        return text
    if knobs.bad:
        return "抱歉，我不能返回 JSON"
    if "priority" in str(body["messages"][0]["content"]):
        return json.dumps(CLASS, ensure_ascii=False)
    answer = {"draft": text, "confidence": 0.88, "needs_human_edit": False, "cited": ["kb-1"]}
    if not knobs.answers:
        answer = {"answers": False} | answer | {"draft": ""}
    return json.dumps(answer, ensure_ascii=False)


def embed(text: str, dimensions: int) -> list[float]:
    """Return a unit vector in which texts that share character pairs are near each other."""
    vector = [0.0] * dimensions
    for start in range(max(1, len(text) - 1)):
        digest = hashlib.blake2b(text[start : start + 2].encode(), digest_size=8).digest()
        vector[int.from_bytes(digest[:4], "little") % dimensions] += 1.0 if digest[4] & 1 else -1.0
    norm = math.sqrt(sum(value * value for value in vector)) or 1.0
    return [value / norm for value in vector]


class Connection(asyncio.Protocol):
    """One keep-alive HTTP/1.1 connection, one request at a time."""

    def __init__(self, memory: Memory) -> None:
        self.memory = memory
        self.buffer = bytearray()
        self.task: asyncio.Task[None] | None = None
        self.phase = "before_first_byte"

    def connection_made(self, transport: Any) -> None:
        self.transport = transport

    def data_received(self, data: bytes) -> None:
        self.buffer += data
        head, found, rest = bytes(self.buffer).partition(b"\r\n\r\n")
        if not found or self.task:
            return
        lines = head.decode("latin-1").split("\r\n")
        headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines[1:])}
        length = int(headers.get("content-length", 0))
        if len(rest) < length:
            return
        self.buffer = bytearray(rest[length:])
        self.started, self.phase = time.monotonic(), "before_first_byte"
        self.task = asyncio.ensure_future(self.handle(lines[0].split(" ")[1], rest[:length]))
        self.task.add_done_callback(self.finished)

    def finished(self, task: "asyncio.Task[None]") -> None:
        self.task = None
        if not task.cancelled() and task.exception():
            self.memory.counts["errors"] += 1
            self.transport.close()

    def connection_lost(self, exc: Exception | None) -> None:
        if self.task and not self.task.done():
            now = time.monotonic()
            self.memory.aborts.append({"at": now, "phase": self.phase, "after_s": round(now - self.started, 4)})
            self.task.cancel()

    async def handle(self, path: str, raw: bytes) -> None:
        memory = self.memory
        if path == "/stats":
            self.answer(200, {"requests": 0, "chat": 0, "stream": 0, "embed": 0, "errors": 0} | memory.counts
                        | {"aborts": memory.aborts})  # fmt: skip
        elif path == "/requests":
            self.answer(200, {"requests": list(memory.requests)})
        elif path == "/reset":
            memory.counts.clear(), memory.aborts.clear(), memory.asked.clear(), memory.requests.clear()
            self.answer(200, {})
        else:
            await self.handle_model(path, json.loads(raw or b"{}"))

    async def handle_model(self, path: str, body: Json) -> None:
        model = str(body.get("model", ""))
        knobs = Knobs.of(model)
        self.memory.counts["requests"] += 1
        self.memory.asked[model] += 1
        await asyncio.sleep(knobs.delay)
        if knobs.status and (not knobs.times or self.memory.asked[model] <= knobs.times):
            extra = f"retry-after: {knobs.retry_after}\r\n" if knobs.retry_after else ""
            self.answer(knobs.status, {"error": {"message": "stub error", "type": "stub"}}, extra)
        elif knobs.html:
            self.send(200, b"<html>Welcome</html>", "text/html")
        elif path.endswith("/embeddings"):
            self.embeddings(body)
        elif path.endswith("/chat/completions"):
            self.memory.requests.append(body)
            await self.chat(body, knobs)
        else:
            self.answer(404, {"error": {"message": "no such path"}})

    def embeddings(self, body: Json) -> None:
        self.memory.counts["embed"] += 1
        texts = body["input"] if isinstance(body["input"], list) else [body["input"]]
        vectors: list[Any] = [embed(text, int(body.get("dimensions") or 1024)) for text in texts]
        if body.get("encoding_format") == "base64":
            vectors = [base64.b64encode(struct.pack(f"<{len(vector)}f", *vector)).decode() for vector in vectors]
        data = [{"object": "embedding", "index": index, "embedding": vector} for index, vector in enumerate(vectors)]
        usage = {"prompt_tokens": sum(map(count_tokens, texts)), "total_tokens": sum(map(count_tokens, texts))}
        self.answer(200, {"object": "list", "model": body.get("model"), "data": data, "usage": usage})

    async def chat(self, body: Json, knobs: Knobs) -> None:
        self.memory.counts["chat"] += 1
        call = choose_tool(body) if body.get("tools") else None
        content = None if call else "done" if body.get("tools") else compose(body, knobs)
        reason = knobs.finish or ("tool_calls" if call else "stop")
        tokens_in, tokens_out = count_tokens(json.dumps(body["messages"])), count_tokens(content or str(call))
        usage = {"prompt_tokens": tokens_in, "completion_tokens": tokens_out, "total_tokens": tokens_in + tokens_out}
        base = {"id": "chatcmpl-stub", "created": 1, "model": body.get("model")}
        tools = [{"id": f"call_{call['name']}", "type": "function", "function": call}] if call else None
        if body.get("stream"):
            wanted = knobs.usage and (body.get("stream_options") or {}).get("include_usage")
            await self.stream(base, content or "", reason, usage if wanted else None, knobs)
            return
        message = {"role": "assistant", "content": content} | ({"tool_calls": tools} if tools else {})
        choices = [{"index": 0, "finish_reason": reason, "message": message}]
        whole = base | {"object": "chat.completion", "choices": choices}
        self.answer(200, whole | ({"usage": usage} if knobs.usage else {}))

    async def stream(self, base: Json, content: str, reason: str, usage: Json | None, knobs: Knobs) -> None:
        self.memory.counts["stream"] += 1
        base = base | {"object": "chat.completion.chunk"}
        self.transport.write(
            b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"
        )
        self.phase = "mid_stream"
        size = max(1, -(-len(content) // knobs.chunks))
        for number, start in enumerate(range(0, len(content), size)):
            if knobs.cut and number == knobs.cut:
                self.transport.abort()
                return
            delta = {"role": "assistant", "content": content[start : start + size]}
            self.frame(base | {"choices": [{"index": 0, "delta": delta, "finish_reason": None}]})
            await asyncio.sleep(knobs.chunk_delay)
        self.frame(base | {"choices": [{"index": 0, "delta": {}, "finish_reason": reason}]})
        if usage:
            self.frame(base | {"choices": [], "usage": usage})
        self.chunk(b"data: [DONE]\n\n")
        self.transport.write(b"0\r\n\r\n")

    def frame(self, value: Json) -> None:
        self.chunk(b"data: " + json.dumps(value, ensure_ascii=False).encode() + b"\n\n")

    def chunk(self, data: bytes) -> None:
        self.transport.write(b"%x\r\n%s\r\n" % (len(data), data))

    def answer(self, status: int, value: Json, extra: str = "") -> None:
        self.send(status, json.dumps(value, ensure_ascii=False).encode(), "application/json", extra)

    def send(self, status: int, body: bytes, content_type: str, extra: str = "") -> None:
        head = f"HTTP/1.1 {status} X\r\ncontent-type: {content_type}\r\n{extra}content-length: {len(body)}\r\n\r\n"
        self.transport.write(head.encode() + body)


def count_tokens(text: str) -> int:
    """Return a token count that depends on nothing but the length."""
    return max(1, len(text) // 4)


async def serve(port: int) -> None:
    """Serve until killed."""
    memory = Memory()
    server = await asyncio.get_running_loop().create_server(lambda: Connection(memory), "127.0.0.1", port)
    print("LISTEN 127.0.0.1", server.sockets[0].getsockname()[1], flush=True)  # noqa: T201 - read by who starts it
    await server.serve_forever()


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--port", type=int, default=0)
    asyncio.run(serve(parser.parse_args().port))
