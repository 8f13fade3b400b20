"""Files to blocks: structure kept, encodings told apart, what is no text refused."""

from contextlib import suppress

import pytest

from app.errors import InvalidInput
from app.knowledge.errors import EmptyDocument, NotText, UnsupportedFile
from app.knowledge.parsers import parse, title_of
from app.knowledge.parsers.blocks import BlockKind, Parsed

CHINESE = "退款说明\n\n退款在3个工作日内到账。\n"


def texts(parsed: Parsed) -> list[str]:
    return [block.text for block in parsed.blocks]


@pytest.mark.parametrize(
    "content",
    [
        CHINESE.encode(),
        b"\xef\xbb\xbf" + CHINESE.encode(),
        CHINESE.encode("gb18030"),
        CHINESE.encode("utf-16"),
        b"\xfe\xff" + CHINESE.encode("utf-16-be"),
        CHINESE.encode("utf-16-le"),
        CHINESE.encode("utf-16-be"),
        CHINESE.replace("\n", "\r\n").encode(),
    ],
    ids=["utf-8", "utf-8 bom", "gb18030", "utf-16 bom", "utf-16be bom", "utf-16le", "utf-16be", "crlf"],
)
def test_the_same_text_comes_out_of_every_encoding(content: bytes) -> None:
    parsed = parse("a.txt", content)

    assert parsed.title == "退款说明"
    assert texts(parsed) == ["退款在3个工作日内到账。"]


@pytest.mark.parametrize(
    ("content", "error"),
    [
        (b"", EmptyDocument),
        (b" \n\t\r\n ", EmptyDocument),
        (b"\xef\xbb\xbf", EmptyDocument),
        (b"---\ntitle: x\n---\n", EmptyDocument),
        (b"\x89PNG\r\n\x1a\n" + bytes(range(256)) * 20, NotText),
        (b"PK\x03\x04\x14\x00\x00\x00\x08\x00" + bytes(range(255, 0, -1)) * 20, NotText),
        (b"\xff\xfe\x00", NotText),
        (bytes(1000), NotText),
        (b"---\ntitle: [unclosed\n---\ntext", InvalidInput),
    ],
)
def test_what_is_no_text_is_refused_in_words(content: bytes, error: type[InvalidInput]) -> None:
    with pytest.raises(error) as refused:
        parse("a.md", content)
    assert refused.value.message.endswith(".")


def test_a_type_without_a_parser_is_refused_and_the_types_are_named() -> None:
    with pytest.raises(UnsupportedFile, match=r"\.md"):
        parse("table.xlsx", b"anything")


def test_markdown_keeps_headings_lists_tables_and_front_matter() -> None:
    parsed = parse(
        "a.md",
        """---
title: 优惠券
tags: [促销, 下单]
---
# 优惠券

前言，**粗体**与[链接](https://example.com/a)
接着写。

## 种类

| 券 | 门槛 |
|---|---|
| 平台券 | 满100 |
| 店铺券 |  |

### 提示码

1. C-101：过期
   - 还没到时间
2. C-103：不够

## 只有标题

## 问答

问：能退吗？
答：能退。
""".encode(),
    )

    assert parsed.title == "优惠券"
    assert parsed.tags == ("促销", "下单")
    assert [(block.kind, block.text, block.headings) for block in parsed.blocks] == [
        (BlockKind.PARAGRAPH, "前言，粗体与链接（https://example.com/a）接着写。", ()),
        (BlockKind.TABLE_ROW, "券：平台券；门槛：满100", ("种类",)),
        (BlockKind.TABLE_ROW, "券：店铺券", ("种类",)),
        (BlockKind.LIST_ITEM, "1. C-101：过期", ("种类", "提示码")),
        (BlockKind.LIST_ITEM, "- 还没到时间", ("种类", "提示码")),
        (BlockKind.LIST_ITEM, "2. C-103：不够", ("种类", "提示码")),
        (BlockKind.PARAGRAPH, "只有标题", ()),
        (BlockKind.QUESTION_ANSWER, "问：能退吗？\n答：能退。", ("问答",)),
    ]


def test_text_between_two_rules_is_not_taken_for_front_matter() -> None:
    parsed = parse("a.md", b"---\njust a sentence\n\n---\nand more")

    assert texts(parsed) == ["just a sentence", "and more"]


@pytest.mark.parametrize("encoding", ["utf-8", "gb18030", "utf-16", "utf-16-be"])
@pytest.mark.parametrize("shift", range(4))
def test_a_title_is_read_from_the_first_lines_wherever_these_are_cut(encoding: str, shift: int) -> None:
    text = "退款说明\n\n" + "x" * shift + "退𠮷" * 20_000
    # What comes later is the ingestion's to find out.
    content = text.encode(encoding) + b"\xff\xff\xff"

    assert title_of("a.txt", content) == "退款说明"


def test_a_long_head_without_words_leaves_the_name_as_title() -> None:
    assert title_of("refunds.md", b"\n" * 20_000 + b"text") == "refunds"
    with pytest.raises(EmptyDocument):
        title_of("refunds.md", b"\n" * 200)


def test_html_in_markdown_stays_text() -> None:
    parsed = parse("a.md", b"# T\n\n<script>alert(1)</script> & text")

    assert texts(parsed) == ["<script>alert(1)</script> & text"]


def test_plain_text_finds_headings_items_and_questions() -> None:
    parsed = parse(
        "帮助.txt",
        """帮助中心

一、退款
退款说明在此。
1. 先申请
2. 再等待

【发票】
Q：怎么开
A：在订单页开
Q：多久
A：三天
""".encode(),
    )

    assert parsed.title == "帮助中心"
    assert [(block.kind, block.text, block.headings) for block in parsed.blocks] == [
        (BlockKind.PARAGRAPH, "退款说明在此。", ("一、退款",)),
        (BlockKind.LIST_ITEM, "1. 先申请", ("一、退款",)),
        (BlockKind.LIST_ITEM, "2. 再等待", ("一、退款",)),
        (BlockKind.QUESTION_ANSWER, "Q：怎么开\nA：在订单页开", ("发票",)),
        (BlockKind.QUESTION_ANSWER, "Q：多久\nA：三天", ("发票",)),
    ]


@pytest.mark.parametrize(
    "content", ["[" * 20_000, "> " * 5_000 + "x", "- " * 2_000 + "x", "|" * 20_000, "*a " * 20_000]
)
def test_hostile_markdown_ends_soon(content: str) -> None:
    # What is nested deeper than the reader goes may be left out, in no time.
    with suppress(EmptyDocument):
        assert parse("a.md", content.encode()).blocks
