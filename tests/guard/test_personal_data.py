"""Numbers that identify a person, in every spelling; and numbers that only look like them."""

from datetime import date

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from app.guard.folding import fold
from app.guard.personal_data import DataKind, find, mask_name

ID = "11010519491231002X"
CARD = "6222021234567890128"


def kinds(text):
    return [(piece.kind.value, text[piece.start : piece.end]) for piece in find(text)]


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("我的手机13800138000谢谢", "13800138000"),
        ("138 0013 8000", "138 0013 8000"),
        ("138-0013-8000", "138-0013-8000"),
        ("138.0013.8000", "138.0013.8000"),
        ("138\u20130013\u20148000", "138\u20130013\u20148000"),
        ("1 3 8 0 0 1 3 8 0 0 0", "1 3 8 0 0 1 3 8 0 0 0"),
        ("１３８００１３８０００", "１３８００１３８０００"),
        ("+86 13800138000", "+86 13800138000"),
        ("+8613800138000", "+8613800138000"),
        ("0086-138-0013-8000", "0086-138-0013-8000"),
        ("13800\n138000", "13800\n138000"),
        ("138\u200b0013\u200b8000", "138\u200b0013\u200b8000"),
        ("tel-138-0013-8000", "138-0013-8000"),
        ("VX13800138000", "13800138000"),
        ("①13800138000", "13800138000"),
        ("订单3 13800138000", "13800138000"),
        ("٣ و 13800138000", "13800138000"),
        ("19912345678", "19912345678"),
        ("(138)1234-5678", "138)1234-5678"),
        ("+86(138)1234-5678", "138)1234-5678"),
        ("86_138_1234_5678", "138_1234_5678"),
        ("138_1234_5678", "138_1234_5678"),
        ("138，1234，5678", "138，1234，5678"),
        ("138、1234、5678", "138、1234、5678"),
        ("【138】【1234】【5678】", "138】【1234】【5678"),
        ("**138** **1234** **5678**", "138** **1234** **5678"),
        ("<b>138</b>12345678", "138</b>12345678"),
        ("138\u31641234\u31645678", "138\u31641234\u31645678"),
        ("138\u28001234\u28005678", "138\u28001234\u28005678"),
        ("1.3.8.1.2.3.4.5.6.7.8", "1.3.8.1.2.3.4.5.6.7.8"),
        ("幺三八幺二三四五六七八", "幺三八幺二三四五六七八"),
        ("一、三、八、一、二、三、四、五、六、七、八", "一、三、八、一、二、三、四、五、六、七、八"),
        ("壹叁捌壹贰叁肆伍陆柒捌", "壹叁捌壹贰叁肆伍陆柒捌"),
        ("①③⑧①②③④⑤⑥⑦⑧", "①③⑧①②③④⑤⑥⑦⑧"),
        ("¹³⁸¹²³⁴⁵⁶⁷⁸", "¹³⁸¹²³⁴⁵⁶⁷⁸"),
        ("l38l2345678", "l38l2345678"),
        ("138O0138OOO", "138O0138OOO"),
        ("0013812345678", "0013812345678"),
    ],
)
def test_mobile(text, found):
    assert kinds(text) == [("mobile", found)]


@pytest.mark.parametrize(
    ("kind", "text", "found"),
    [
        ("bank_card", f"卡号{CARD}。", CARD),
        ("bank_card", "6222 0212 3456 7890 128", "6222 0212 3456 7890 128"),
        ("bank_card", "4111-1111-1111-1111", "4111-1111-1111-1111"),
        ("bank_card", "６２２２０２１２３４５６７８９０１２８", "６２２２０２１２３４５６７８９０１２８"),
        ("bank_card", "6222 0000 0000 0009", "6222 0000 0000 0009"),
        ("bank_card", "4111.1111.1111.1111", "4111.1111.1111.1111"),
        ("bank_card", "四一一一一一一一一一一一一一一一", "四一一一一一一一一一一一一一一一"),
        ("id_card", "110105.19491231.002X", "110105.19491231.002X"),
        ("id_card", f"身份证{ID}", ID),
        ("id_card", ID.lower(), ID.lower()),
        ("id_card", "110105 19491231 002X", "110105 19491231 002X"),
        ("id_card", "１１０１０５１９４９１２３１００２Ｘ", "１１０１０５１９４９１２３１００２Ｘ"),
        ("id_card", f"id:{ID}abc", ID),
        ("email", "写信到 li.lei+a@mail.example.com，谢谢", "li.lei+a@mail.example.com"),
        ("email", "ａ＠ｂ.com", "ａ＠ｂ.com"),
    ],
)
def test_cards_and_addresses(kind, text, found):
    assert kinds(text) == [(kind, found)]


@pytest.mark.parametrize(
    "text",
    [
        "热线400-000-0618按9",
        "订单SL-1126-0381",
        "订单HY-1118-0427和HY-1029-0066",
        "订单SL-1391126-0381",
        "订单HY-20261126-13800138",
        "订单号202611261234567890",
        "运单SF1390000000000",
        "运单YT8880001234567",
        "运单75312345678901",
        "流水号RF20261130123456789",
        "12800138000",
        "138001380001",
        "1380013800",
        "6222021234567890127",
        "110105194912310021",
        "110105194913310020",
        "990105194912310025",
        "2026-11-30 15:04:05",
        "2026年11月30日13点30分",
        "价格139元、158元、188元",
        "010-12345678",
        "IP 192.168.100.100",
        "版本1.3.8.0.0.1.3.8.0.0.0.1",
        "@a.com, a@b",
        "2026/11/30、2026.12.01",
        "价格199、1299、1599元",
        "¥199，¥1299，¥1599",
        "13,800,138,000",
        "IP 192.168.100.10",
        "1、3、5、7、8、10、12月",
        "13:00～15:00，15:30～18:00",
        "周一3800138000",
        "一、二、三、四、五、六、七、八、九、十",
        "",
    ],
)
def test_not_personal_data(text):
    assert kinds(text) == []


def test_several_in_one_text():
    text = f"电话13800138000，卡{CARD}，证{ID}，邮箱a@b.cn"
    assert [kind for kind, _ in kinds(text)] == ["mobile", "bank_card", "id_card", "email"]


DIGITS = st.text("0123456789", min_size=9, max_size=9)


@st.composite
def mobiles(draw):
    return "1" + draw(st.sampled_from("3456789")) + draw(DIGITS)


@st.composite
def bank_cards(draw):
    body = draw(st.sampled_from(["62", "60", "68"])) + draw(st.text("0123456789", min_size=13, max_size=16))
    return body + next(check for check in "0123456789" if _luhn(body + check))


@st.composite
def id_cards(draw):
    born = draw(st.dates(min_value=date(1900, 1, 1), max_value=date(2099, 12, 31)))
    province = draw(st.sampled_from(["11", "31", "44", "61", "65", "82"]))
    body = province + draw(st.text("0123456789", min_size=4, max_size=4)) + born.strftime("%Y%m%d")
    body += draw(st.text("0123456789", min_size=3, max_size=3))
    weights = [2 ** (17 - place) % 11 for place in range(17)]
    check = "10X98765432"[sum(weight * int(digit) for weight, digit in zip(weights, body, strict=True)) % 11]
    return body + (check.lower() if draw(st.booleans()) else check)


def _luhn(number):
    total = 0
    for place, digit in enumerate(reversed(number)):
        value = int(digit) * (2 if place % 2 else 1)
        total += value - 9 if value > 9 else value
    return total % 10 == 0


NUMBERS = st.one_of(
    st.tuples(st.just(DataKind.MOBILE), mobiles()),
    st.tuples(st.just(DataKind.BANK_CARD), bank_cards()),
    st.tuples(st.just(DataKind.ID_CARD), id_cards()),
)
GAPS = st.sampled_from(["", "", "", " ", "-", "\n", "\u200b", "\u2060", "  ", "\u3000"])
AROUND = st.text(st.one_of(st.characters(exclude_categories=["Cs"]), st.sampled_from("0189 -年，aX+.①")), max_size=30)


@given(AROUND, AROUND, NUMBERS, st.data())
def test_a_number_is_found_wherever_and_however_it_is_written(before, after, number, data):
    _, digits = number
    spelled = digits[0] + "".join(data.draw(GAPS) + char for char in digits[1:])
    if data.draw(st.booleans()):
        spelled = spelled.translate(str.maketrans("0123456789X", "０１２３４５６７８９Ｘ"))
    text = before + spelled + after
    _assume_stands_alone(before, after)
    assume(not ("-" in spelled and any(char.isalpha() and char.isascii() for char in fold(before).text)))
    start, end = len(before), len(before) + len(spelled)
    assert any(piece.start <= start and end <= piece.end for piece in find(text))


def _assume_stands_alone(before, after):
    """A digit right beside a number makes it another number."""
    left, right = fold(before).text, fold(after).text
    assume(not left[-1:].isdecimal())
    assume(not right[:1].isdecimal())


@given(st.lists(st.one_of(AROUND, NUMBERS.map(lambda number: number[1])), max_size=5).map("".join))
def test_pieces_are_in_order_and_apart(text):
    end = 0
    for piece in find(text):
        assert end <= piece.start < piece.end <= len(text)
        end = piece.end


@pytest.mark.parametrize(
    ("name", "masked"),
    [
        ("陈雨桐", "陈**"),
        ("李岚", "李*"),
        ("欧阳娜娜", "欧**"),
        ("陈", "陈*"),
        (" John Smith ", "J**"),
        ("", ""),
        ("  ", ""),
    ],
)
def test_mask_name(name, masked):
    assert mask_name(name) == masked


@given(st.text())
def test_folding_leads_back(text):
    folded = fold(text)
    assert len(folded.text) == len(folded.origins)
    assert list(folded.origins) == sorted(folded.origins)
    if folded.text:
        start, end = folded.span(0, len(folded.text))
        assert 0 <= start < end <= len(text)
