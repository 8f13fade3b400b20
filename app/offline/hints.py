"""A reviewer's hint taken apart into what offline mode can follow: a length, and things to leave out. Pure."""

import re
from dataclasses import dataclass
from enum import StrEnum

_SHORTER = re.compile(
    r"短|简[短洁单明]|精简|少[写说]|(?:不要|别)[^，。,.]{0,3}(?:太长|这么长|那么长|这么多|那么多|啰嗦)|"
    r"\b(?:short\w*|brief\w*|concise\w*)\b",
    re.IGNORECASE,
)
_LONGER = re.compile(r"详细|具体|完整|展开|多[写说]|更长|\b(?:longer|detail\w*|complete|more)\b", re.IGNORECASE)
_LEAVE_OUT = re.compile(
    r"(?:(?:不要|不用|不必|无需|请勿|别)(?:再)?(?:提到|提及|提起|提|说到|说|写到|写|讲|包含|包括|引用|出现)|去掉|删掉|删除|删去)"
    r"(?:关于|有关)?(?P<zh>[^，,。；;！!\n]+)|"
    r"\b(?:without|(?:don['’]?t|do not|never) (?:mention|quote|include|say)|leave out|omit|drop|remove)\b"
    r"(?: any| the| about| mentioning)*(?P<en>[^,.;!\n]+)",
    re.IGNORECASE,
)
_TAIL = re.compile(r"(?:的)?(?:内容|部分|段落|那段|那部分|这段|事情|事|了)?$")


class Length(StrEnum):
    """How much a reviewer wants to read."""

    USUAL = "usual"
    SHORT = "short"
    LONG = "long"


@dataclass(frozen=True, slots=True)
class Wish:
    """What a hint asks: `left_out` must not be quoted, `rest` is what remains and only helps to choose."""

    length: Length
    left_out: tuple[str, ...]
    rest: str


def wish_of(hint: str | None) -> Wish:
    """Return what a hint asks for; without one, nothing special."""
    text = hint or ""
    if _SHORTER.search(text):
        return Wish(Length.SHORT, _left_out(_SHORTER.sub("", text)), "")
    if _LONGER.search(text):
        return Wish(Length.LONG, _left_out(text), "")
    rest = _LEAVE_OUT.sub("", text).strip(" \t\n，,。；;！!.")
    return Wish(Length.USUAL, _left_out(text), rest)


def _left_out(text: str) -> tuple[str, ...]:
    named = (
        _TAIL.sub("", (found["zh"] or found["en"]).strip(), count=1).strip() for found in _LEAVE_OUT.finditer(text)
    )
    return tuple(name for name in named if name)
