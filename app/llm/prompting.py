"""Prompts: files in `prompts/` with front matter, and the fence that keeps what strangers wrote apart as data."""

import hashlib
import re
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from string import Template
from typing import Any

import frontmatter

from app.visible import without_bidi

PROMPT_DIR = Path(__file__).resolve().parent / "prompts"
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff]")
_SECTION = re.compile(r"^# (system|user|progress)\n", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Prompt:
    """One prompt file. `sections` are templates by name; `version` is kept with every call that it pays for."""

    name: str
    version: str
    variables: frozenset[str]
    sections: dict[str, Template]

    def render(self, section: str, **values: str) -> str:
        """Return one section with its places filled; values are never read as templates. Raises KeyError on a gap."""
        return self.sections[section].substitute(values).strip()


@cache
def load_prompt(name: str) -> Prompt:
    """Read `prompts/<name>.md`. Raises ValueError when its places and its declared variables differ."""
    post = frontmatter.load(str(PROMPT_DIR / f"{name}.md"))
    meta: dict[str, Any] = post.metadata
    parts = _SECTION.split(post.content + "\n")
    sections = {title: Template(body) for title, body in zip(parts[1::2], parts[2::2], strict=True)}
    used = {place for template in sections.values() for place in template.get_identifiers()}
    declared = frozenset(str(variable) for variable in meta["variables"])
    if used != declared:
        raise ValueError(f"prompt {name}: declared and used variables differ: {sorted(used ^ declared)}")
    return Prompt(str(meta["name"]), str(meta["version"]), declared, sections)


class Fence:
    """Marks texts as data with a code drawn from all of them, so that none of them can hold it and close the fence.

    The code is a digest rather than random: the same ticket gives the same prompt, which providers can cache.
    """

    def __init__(self, *texts: str) -> None:
        self.code = hashlib.sha256("\0".join(texts).encode("utf-8", "surrogatepass")).hexdigest()[:16]

    def wrap(self, label: str, text: str) -> str:
        """Return `text` between the marks; `label` is our own word."""
        return f"<<<{label} {self.code}\n{plain(text)}\n{self.code}>>>"


def plain(text: str) -> str:
    """Return `text` without control and bidi characters (line breaks and tabs stay) and chat-template tokens.

    `<|im_start|>` and its like are split: a server that parses them would take a stranger's words for a turn.
    """
    return _CONTROL.sub("", without_bidi(text)).replace("<|", "< |").replace("|>", "| >")
