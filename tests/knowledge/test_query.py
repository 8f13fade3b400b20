"""A ticket's text to what is searched for."""

from hypothesis import given
from hypothesis import strategies as st

from app.knowledge.query import QUERY_LIMIT, QUESTIONS_LIMIT, parse_query


def test_a_plain_question_is_itself() -> None:
    query = parse_query("退款多久到账？")

    assert query.text == "退款多久到账？"
    assert query.units == ("退款多久到账？",)


def test_a_single_line_with_two_questions_is_split() -> None:
    assert parse_query("怎么取消订单，另外运费多少").questions == ("怎么取消订单", "运费多少")


def test_a_ticket_gives_its_questions_with_the_subject() -> None:
    query = parse_query("提现什么时候到账\n周四下午两点多提的现，银行还没动静，正常要几天？另外手续费怎么算的")

    assert query.questions == (
        "提现什么时候到账 周四下午两点多提的现，银行还没动静，正常要几天？",
        "提现什么时候到账 手续费怎么算的",
    )
    assert query.units[-2:] == (query.text, query.topic)


def test_a_ticket_that_asks_nothing_is_one_question() -> None:
    query = parse_query("账号好像被盗了\n早上发现账号在成都登录过。绑定的礼品卡少了600块。")

    assert query.questions == (query.text,)


def test_greetings_quotes_and_long_numbers_are_left_out() -> None:
    query = parse_query("您好，请问发票怎么开？谢谢！\n> 之前的回复\n我的卡 6222 0000 0000 0009")

    assert "您好" not in query.text
    assert "谢谢" not in query.text
    assert "之前的回复" not in query.text
    assert "6222" not in query.text
    assert "发票怎么开" in query.text


def test_order_numbers_and_error_codes_are_kept() -> None:
    assert "HY-1118-0427" in parse_query("订单HY-1118-0427提示E-5000怎么办").text


@given(st.text(min_size=1, max_size=3_000))
def test_any_text_gives_at_least_one_question_within_bounds(text: str) -> None:
    query = parse_query(text)

    assert 1 <= len(query.questions) <= QUESTIONS_LIMIT
    assert all(len(unit) <= QUERY_LIMIT + 1 for unit in query.units)
