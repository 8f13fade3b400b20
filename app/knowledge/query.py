"""A ticket's text to what is searched for: noise removed, and the questions in it, each clear by itself. Pure."""

import re
from dataclasses import dataclass

QUERY_LIMIT = 600
"""Characters of a text that are searched for; a longer one costs time and finds nothing more."""
QUESTIONS_LIMIT = 3
_HEAD_LIMIT = 60
_PART_LEAST = 4

_QUOTED = re.compile(r"^\s*>.*$", re.MULTILINE)
_NOISE = re.compile(
    r"您好|你好|谢谢[您你]?|多谢|拜托|麻烦[您你]?|请问(?:一下)?|在吗|在不在|亲[，,~～ ]"
    r"|(?:贵司)?客服(?=[，,：:！!]|[您你]好)"
    r"|\b(?:hello|hi|hey|dear|thanks|thank you)\b(?: there)?",
    re.IGNORECASE,
)
_REPEATED = re.compile(r"([！!？?。.~～…，,])[！!？?。.~～…，,]+")
_LONG_NUMBER = re.compile(r"(?<![\w-])\d(?:[ -]?\d){7,}(?![\w-])")
_JOINER = r"(?:另外|还有|顺便问一?下|顺便|再问一?下|然后|以及)"
_BREAK = re.compile(rf"(?<=[。！？!?；;])|\n|(?<=[a-z)])\.\s|[，,\s]*{_JOINER}[，,：:\s]*")
_ASKS = re.compile(
    r"[?？]|怎么|怎样|咋|如何|多久|多少|几[天时个点月年]|什么|啥|哪|谁|能不能|可不可以|会不会|要不要|是不是|是否|有没有|行不行"
    r"|可以.{0,15}[吗嘛么]|能.{0,15}[吗嘛么]|吗|呢$|[不没]$"
    r"|\b(?:how|what|when|where|which|who|why|can|could|do|does|is|are|may)\b",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class SearchQuery:
    """What is searched for. `questions` has at least one; a text that asks nothing is one question as a whole.

    `topic` is a ticket's subject, if it has one.
    """

    text: str
    questions: tuple[str, ...]
    topic: str | None = None

    @property
    def units(self) -> tuple[str, ...]:
        """All texts to search with: the questions, the whole text where it says more than they do, the topic."""
        return tuple(dict.fromkeys((*self.questions, self.text, self.topic or self.text)))


def parse_query(raw: str) -> SearchQuery:
    """Return the query in `raw`: a question, or a ticket whose first line is its subject."""
    lines = [cleaned for line in _QUOTED.sub("", raw[: 4 * QUERY_LIMIT]).splitlines() if (cleaned := _clean(line))]
    head = lines[0] if len(lines) > 1 and len(lines[0]) <= _HEAD_LIMIT else ""
    text = _cut(" ".join(lines)) or " ".join(raw.split())[:QUERY_LIMIT]
    parts = [part for part in _parts("\n".join(lines[1:] if head else lines)) if _ASKS.search(part)]
    if not parts or (len(parts) == 1 and not head):
        return SearchQuery(text, (text,), head or None)
    asked = [_cut(f"{head} {part}".strip()) for part in parts]
    return SearchQuery(text, tuple(dict.fromkeys(asked))[:QUESTIONS_LIMIT], head or None)


def _clean(line: str) -> str:
    without = _LONG_NUMBER.sub(" ", _NOISE.sub(" ", line))
    return " ".join(_REPEATED.sub(r"\1", without).split()).strip(" ，,、。.!！~～：:；;")


def _parts(text: str) -> list[str]:
    """Return the sentences of a text; one too short to mean something joins the one before."""
    parts: list[str] = []
    for piece in _BREAK.split(text):
        part = piece.strip(" ，,、。；;")
        if parts and 0 < len(part) < _PART_LEAST:
            parts[-1] = f"{parts[-1]} {part}"
        elif part:
            parts.append(part)
    return parts


def _cut(text: str) -> str:
    if len(text) <= QUERY_LIMIT:
        return text
    half = QUERY_LIMIT // 2
    return f"{text[:half]} {text[-half:]}"
