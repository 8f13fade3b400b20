"""The diff spells both texts, reads well for Chinese, and is quick whatever it is given."""

from itertools import pairwise

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from app.clock import monotonic
from app.review.diff import Segment, changed_percent, compare

texts = st.text(alphabet="退款会在三个工作日内到账。！\n abAB12", max_size=60) | st.text(max_size=60)


def pieces(before: str, after: str) -> list[tuple[str, str]]:
    return [(segment.op, segment.text) for segment in compare(before, after)]


def joined(segments: tuple[Segment, ...], *ops: str) -> str:
    return "".join(segment.text for segment in segments if segment.op in ops)


@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(texts, texts)
def test_segments_spell_both_texts(before: str, after: str) -> None:
    segments = compare(before, after)
    assert joined(segments, "same", "del") == before
    assert joined(segments, "same", "ins") == after
    assert all(segment.text for segment in segments)
    ops = [segment.op for segment in segments]
    assert all(left != right for left, right in pairwise(ops))
    assert (changed_percent(segments) == 0) == (before == after)
    assert 0 <= changed_percent(segments) <= 100


def test_only_what_changed_is_marked() -> None:
    before = "您好。退款会在3个工作日内到账，请留意。谢谢。"
    after = "您好。退款会在5个工作日内到账，请留意短信。谢谢。"
    assert pieces(before, after) == [
        ("same", "您好。退款会在"),
        ("del", "3"),
        ("ins", "5"),
        ("same", "个工作日内到账，请留意"),
        ("ins", "短信"),
        ("same", "。谢谢。"),
    ]


def test_latin_words_stay_whole() -> None:
    assert pieces("单号 SF1024 已发", "单号 SF1025 已发") == [
        ("same", "单号 "),
        ("del", "SF1024"),
        ("ins", "SF1025"),
        ("same", " 已发"),
    ]


def test_a_lone_character_between_changes_is_no_match() -> None:
    assert pieces("甲的乙", "丙的丁") == [("del", "甲的乙"), ("ins", "丙的丁")]


@pytest.mark.parametrize(
    ("before", "after", "percent"), [("", "", 0), ("同", "同", 0), ("", "新", 100), ("一二三四", "一二三五", 25)]
)
def test_share_of_change(before: str, after: str, percent: int) -> None:
    assert changed_percent(compare(before, after)) == percent


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("的" * 10_000, "地" + "的" * 9_998 + "得"),
        ("。" * 10_000, "！" + "。" * 9_998 + "？"),
        ("的地" * 5_000, "地的的" * 3_300),
        ("\n是。" * 3_300, "。是\n" * 3_300),
        ("".join(chr(0x4E00 + i % 997) for i in range(10_000)), "".join(chr(0x4E00 + i % 991) for i in range(10_000))),
    ],
)
def test_hostile_texts_are_compared_in_a_moment(before: str, after: str) -> None:
    start = monotonic()
    segments = compare(before, after)
    assert monotonic() - start < 3
    assert joined(segments, "same", "del") == before
    assert joined(segments, "same", "ins") == after
