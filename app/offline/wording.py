"""The fixed sentences around the quotes of an offline draft, in the customer's language. They claim nothing. Pure."""

import re
from dataclasses import dataclass

_NAME_CHARS = 20
_NAME = re.compile(r"[^\W\d_]+(?:(?:\.? |[·'’-])[^\W\d_]+)*\.?")


@dataclass(frozen=True, slots=True)
class Frame:
    """How a reply begins, leads into each quote and ends; `%s` is the customer's name or a heading."""

    greeting: str
    greeting_without_name: str
    sorry: str
    lead: str
    topic: str
    closing: str


CHINESE = Frame(
    greeting="%s，您好：\n\n",
    greeting_without_name="您好：\n\n",
    sorry="很抱歉让您遇到这样的情况，感谢您告诉我们。\n\n",
    lead="关于您的问题，帮助文档的说明如下：\n",
    topic="关于“%s”：\n",
    closing="以上摘自我们的帮助文档。如果与您的情况不符，请直接回复，我们会继续为您处理。",
)
ENGLISH = Frame(
    greeting="Hello %s,\n\n",
    greeting_without_name="Hello,\n\n",
    sorry="We are sorry that this happened, and thank you for telling us.\n\n",
    lead="This is what our help pages say about your question:\n",
    topic="About “%s”:\n",
    closing="This is quoted from our help pages. If it does not fit your case, please reply and we will look into it.",
)


def frame_for(text: str) -> Frame:
    """Return the frame in the language of a ticket."""
    return CHINESE if is_chinese(text) else ENGLISH


def is_chinese(text: str) -> bool:
    """Return whether `text` is written in Chinese rather than with Latin letters; without letters, yes."""
    latin_words = len(re.findall(r"[A-Za-z]+", text))
    return len(re.findall(r"[㐀-鿿]", text)) >= latin_words


def greeting(frame: Frame, name: str) -> str:
    """Return the first line; the name is a stranger's text, so only what looks like a name is repeated."""
    shown = " ".join(name.split())
    is_name = len(shown) <= _NAME_CHARS and _NAME.fullmatch(shown)
    return frame.greeting % shown if is_name else frame.greeting_without_name
