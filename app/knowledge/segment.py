"""Our segmentation for the keyword index: the terms of a document and of a query, by the same rules.

Full-width and compatibility forms, case, and traditional characters are made equal; Chinese gives words (search mode)
and character pairs, other scripts give words, numbers and codes (`C-101` also as `c101`).
"""

import re
import unicodedata
from functools import cache
from pathlib import Path

import rjieba
from opencc import OpenCC

STOP_WORDS = frozenset(Path(__file__).with_name("stop_words.txt").read_text(encoding="utf-8").split())

_CHINESE = re.compile(r"[\u3400-\u4dbf\u4e00-\u9fff]+")
_CODE = re.compile(r"[a-z0-9]+(?:[-_./][a-z0-9]+)+|[^\W_]+")
_JOINER = re.compile(r"[-_./]")


@cache
def _converter() -> OpenCC:
    return OpenCC("t2s")


def normalise(text: str) -> str:
    """Return `text` with full-width, case and traditional forms made equal."""
    converted: str = _converter().convert(unicodedata.normalize("NFKC", text).lower())
    return converted


def words(text: str) -> list[str]:
    """Return the words of `text` in order, stop words left out; never character pairs."""
    return [word for run in _runs(normalise(text)) for word in _words_of(run) if word not in STOP_WORDS]


def terms(text: str) -> list[str]:
    """Return what the keyword index knows of `text`: words and, of Chinese runs, every pair of characters."""
    found: list[str] = []
    for run in _runs(normalise(text)):
        found += [word for word in _words_of(run) if word not in STOP_WORDS]
        if _CHINESE.match(run) and len(run) > 1:
            found += [run[at : at + 2] for at in range(len(run) - 1)]
    return found


def _runs(text: str) -> list[str]:
    """Return stretches of one script: Chinese, or a word, number or code of another."""
    runs: list[str] = []
    position = 0
    for chinese in _CHINESE.finditer(text):
        runs += _CODE.findall(text, position, chinese.start())
        runs.append(chinese.group())
        position = chinese.end()
    return runs + _CODE.findall(text, position)


def _words_of(run: str) -> list[str]:
    if _CHINESE.match(run):
        found: list[str] = rjieba.cut_for_search(run)
        return found
    parts = _JOINER.split(run)
    # A code is found whole, without its joiners, and by its parts.
    return [run] if len(parts) == 1 else [run, "".join(parts), *(part for part in parts if len(part) > 1)]
