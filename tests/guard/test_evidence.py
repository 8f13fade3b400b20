"""Sentences and the passages that support them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.guard.evidence import cite_sentences, split_sentences
from app.guard.numerals import arabic
from tests.llm.observations import COUPON_RULE, REFUND_RULE, passage

REFUND = passage("kb-1", "信用卡：5至10个工作日，退到原卡的可用额度。借记卡：3至5个工作日。满5,000元须审核。", "退款")
COUPON = passage("kb-2", COUPON_RULE, "优惠券")
ENGLISH = passage("kb-3", "Refunds to a credit card take 5 to 10 working days and go to the original card.", "Refunds")


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("", []),
        ("您好", ["您好"]),
        ("您好！感谢来信。退款3天到账。", ["您好！", "感谢来信。", "退款3天到账。"]),
        ("他说：“可以。”然后走了", ["他说：“可以。”", "然后走了"]),
        ("第一行\n第二行\n\n第三行", ["第一行\n", "第二行\n\n", "第三行"]),
        ("1. 打开页面\n2. 点确定", ["1. 打开页面\n", "2. 点确定"]),
        ("真的吗？！好", ["真的吗？！", "好"]),
        ("It costs 3.5 yuan. Thank you! Bye.", ["It costs 3.5 yuan. ", "Thank you! ", "Bye."]),
        ("See heyan.example for more.", ["See heyan.example for more."]),
        ("稍等……马上", ["稍等……", "马上"]),
        ("\n\n好。", ["\n\n", "好。"]),
    ],
)
def test_split(text, parts):
    assert list(split_sentences(text)) == parts


@given(st.text(st.one_of(st.characters(), st.sampled_from("。.!？\n ”）1a…")), max_size=80))
def test_split_loses_nothing(text):
    parts = split_sentences(text)
    assert "".join(parts) == text
    assert all(parts)
    assert "".join(sentence.text for sentence in cite_sentences(text, (REFUND,))) == text


@pytest.mark.parametrize(
    ("sentence", "refs"),
    [
        ("信用卡退款需要5至10个工作日，会退到原卡的可用额度。", ("kb-1",)),
        ("信用卡退款需要五到十个工作日，会退到原卡的可用额度。", ("kb-1",)),
        ("1. 信用卡退款需要5到10个工作日，退到原卡可用额度。", ("kb-1",)),
        ("信用卡退款需要24小时，会退到原卡的可用额度。", ()),
        ("信用卡退款需要三十个工作日，会退到原卡的可用额度。", ()),
        ("满5000元须审核", ("kb-1",)),
        ("一笔订单可以同时用一张平台券、一张店铺券、一张运费券。", ("kb-2",)),
        ("Refunds to your credit card take 5 to 10 working days.", ("kb-3",)),
        ("Refunds to your credit card take 7 working days.", ()),
        ("您好，感谢您的来信！", ()),
        ("如有其他问题，欢迎随时联系我们。", ()),
        ("！！", ()),
    ],
)
def test_support(sentence, refs):
    (made,) = cite_sentences(sentence, (REFUND, COUPON, ENGLISH))
    assert made.refs == refs


def test_nothing_supports_without_passages():
    assert [sentence.refs for sentence in cite_sentences("退款3天到账。好。", ())] == [(), ()]


def test_passages_that_say_the_same_are_both_named():
    twin = passage("kb-9", REFUND_RULE)
    (made,) = cite_sentences("退款在审核通过后的3至5个工作日内原路退回。", (passage("kb-1", REFUND_RULE), twin))
    assert made.refs == ("kb-1", "kb-9")


@pytest.mark.parametrize(
    ("text", "digits"),
    [
        ("三到五个工作日", "3到5个工作日"),
        ("十天", "10天"),
        ("二十四小时内", "24小时内"),
        ("一百二十元", "120元"),
        ("两周", "2周"),
        ("一个问题", "一个问题"),
        ("一起处理", "一起处理"),
        ("3至五天", "3至5天"),
    ],
)
def test_chinese_numerals(text, digits):
    assert arabic(text) == digits
