"""Terms of the keyword index: the same thing, however it is written."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.knowledge.segment import terms, words


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("优惠券", "優惠券"),
        ("优惠券怎么用", "優惠券怎麼用"),
        ("C-101", "Ｃ－１０１"),
        ("iPhone 15", "IPHONE 15"),
        ("ＲＦ２０２４", "rf2024"),
        ("Ⅲ级", "III级"),
    ],
)
def test_forms_are_made_equal(one: str, other: str) -> None:
    assert terms(one) == terms(other)


def test_chinese_gives_words_and_pairs() -> None:
    found = terms("退款多久到账")

    assert {"退款", "到账"} <= set(found)
    assert "款多" in found


def test_a_code_is_found_whole_joined_and_by_its_parts() -> None:
    assert {"hy-1118-0427", "hy11180427", "hy", "1118", "0427"} <= set(terms("订单HY-1118-0427"))
    assert "e-5000" in terms("提示E-5000。")


def test_stop_words_are_left_out_of_words() -> None:
    assert words("请问我的发票怎么申请呢") == ["发票", "申请"]
    assert words("How do I reset the password?") == ["reset", "password"]


@given(st.text(max_size=200))
def test_any_text_can_be_segmented(text: str) -> None:
    assert all(term and not term.isspace() for term in terms(text))
    assert set(words(text)) <= set(terms(text))
