"""The extractive drafter: it quotes, and says nothing of its own."""

import asyncio
import hashlib
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from app.agent.skill import CallLog, Escalation
from app.agent.values import Category, Classification, Draft, Observation, Passage, Priority, Sufficiency
from app.guard.lint import lint
from app.offline.answer_kinds import has_wanted_kind
from app.offline.drafter import (
    HINT_CHANGED_NOTHING,
    HINT_NOT_FOLLOWED,
    OTHER_LANGUAGE,
    UNANSWERED,
    WEAK_SOURCES,
    ExtractiveDrafter,
)
from app.offline.quoting import pick_quotes
from app.offline.wording import CHINESE, ENGLISH, Frame
from tests.offline.values import make_facts, make_found, make_observation, make_passage

REFUND = make_passage(
    "从退款发起时算起：\n- 微信零钱：24小时内到账。\n- 借记卡：3至5个工作日。\n- 信用卡：5至10个工作日。\n"
    "- 云闪付：3至7个工作日。\n周末不算工作日。",
    heading="到账时间",
    title="退款多久到账",
)
RENEWAL = make_passage(
    "路径：“我的→会员→关闭自动续费”。请提前24小时关闭。", ref="kb-2", heading="关闭自动续费", fused=0.5
)


def write(observation: Observation) -> tuple[Draft, list[str]]:
    """Return the draft, and what was shown of it on the way."""
    shown: list[str] = []

    async def show(text: str) -> None:
        shown.append(text)

    return asyncio.run(ExtractiveDrafter().draft(observation, show, CallLog())), shown


def draft_for(content: str, *passages: Passage, hint: str | None = None, name: str = "陈雨桐") -> Draft:
    return write(make_observation(make_facts(content, name=name), make_found(*passages), hint))[0]


def assert_only_quotes(draft: Draft, passages: tuple[Passage, ...]) -> None:
    """Every sentence is verbatim in the passage it cites, or cites none and stands in the frame."""
    assert draft.text == "".join(sentence.text for sentence in draft.sentences)
    by_ref = {passage.ref: passage for passage in passages}
    for sentence in draft.sentences:
        for ref in sentence.refs:
            assert sentence.text.strip() in by_ref[ref].text
        if not sentence.refs:
            assert is_frame(sentence.text, passages), sentence.text
    assert {citation.ref for citation in draft.citations} == {ref for one in draft.sentences for ref in one.refs}
    for citation in draft.citations:
        assert citation.text == by_ref[citation.ref].text
        assert citation.digest == hashlib.sha256(citation.text.encode()).hexdigest()


def is_frame(text: str, passages: tuple[Passage, ...]) -> bool:
    topics = [one.heading.rsplit(" > ", 1)[-1] or one.doc_title for one in passages]
    return any(
        text in (frame.lead, frame.closing, frame.greeting_without_name, frame.sorry)
        or text in [frame.topic % topic for topic in topics]
        or text.endswith(frame.greeting.partition("%s")[2])
        for frame in (CHINESE, ENGLISH)
    )


def test_it_greets_quotes_and_closes() -> None:
    draft = draft_for("钱退到信用卡要几天？", REFUND)
    assert draft.text.startswith("陈雨桐，您好：\n\n")
    assert "- 信用卡：5至10个工作日。\n" in draft.text
    assert draft.text.endswith(CHINESE.closing)
    assert draft.origin == "extract"
    assert draft.confidence == 0.8
    assert draft.warning is None
    assert_only_quotes(draft, (REFUND,))


def test_of_a_list_it_quotes_the_item_that_the_customer_names() -> None:
    text = draft_for("钱退到信用卡要几天？", REFUND).text
    assert "信用卡" in text
    assert "云闪付" not in text
    assert "周末不算工作日。" in text
    assert "云闪付" in draft_for("钱要几天退回来？", REFUND).text


def test_the_draft_grows_sentence_by_sentence() -> None:
    draft, shown = write(make_observation(make_facts("几天到账？"), make_found(REFUND)))
    assert len(shown) == len(draft.sentences)
    assert len(shown) >= 3
    assert all(later.startswith(earlier) for earlier, later in pairwise(shown))
    assert shown[-1] == draft.text


def test_each_question_gets_its_passage() -> None:
    draft = draft_for("退款到信用卡几天？另外自动续费在哪关闭？", REFUND, RENEWAL)
    assert "5至10个工作日" in draft.text
    assert "关闭自动续费" in draft.text
    assert {citation.ref for citation in draft.citations} == {"kb-1", "kb-2"}
    assert_only_quotes(draft, (REFUND, RENEWAL))


def test_of_questions_and_answers_it_quotes_the_answer_that_fits() -> None:
    passage = make_passage(
        "问：没货了还能保价吗？\n答：能，与库存无关。\n问：退货重买可以吗？\n答：可以，运费由您承担。",
        heading="常见问题",
    )
    text = draft_for("我退货重买行吗？", passage).text
    assert "可以，运费由您承担。" in text
    assert "库存" not in text
    assert "答：" not in text


def test_of_questions_and_answers_it_quotes_one_for_each_question() -> None:
    passage = make_passage(
        "问：停车收费吗？\n答：免费停2小时。\n问：几点关门？\n答：周日22:00关门。\n问：可以带狗吗？\n答：不可以。",
        heading="常见问题",
    )
    text = draft_for("停车收费吗？另外周日几点关门？", passage).text
    assert "免费停2小时。" in text
    assert "周日22:00关门。" in text
    assert "不可以。" not in text


def test_of_a_long_passage_it_quotes_a_stretch() -> None:
    filler = "".join(f"第{number}条与配送的路线有关，请以页面为准。" for number in range(40))
    passage = make_passage(f"{filler}退款到信用卡需要5至10个工作日。{filler}")
    draft = draft_for("退款到信用卡几天？", passage)
    assert "退款到信用卡需要5至10个工作日。" in draft.text
    assert len(draft.text) < 500
    assert_only_quotes(draft, (passage,))


@pytest.mark.parametrize("outcome", [Sufficiency.INSUFFICIENT])
def test_without_an_answer_a_person_takes_over(outcome: Sufficiency) -> None:
    with pytest.raises(Escalation):
        write(make_observation(make_facts("几天到账？"), make_found(REFUND, outcome=outcome)))
    with pytest.raises(Escalation):
        write(make_observation(make_facts("几天到账？"), make_found()))
    with pytest.raises(Escalation):
        write(make_observation(make_facts("几天到账？"), None))


def test_weak_sources_are_said_to_be_weak() -> None:
    draft, _ = write(make_observation(make_facts("几天到账？"), make_found(REFUND, outcome=Sufficiency.WEAK)))
    assert draft.warning == WEAK_SOURCES


def test_an_english_ticket_gets_an_english_frame_and_a_warning() -> None:
    draft = draft_for("How long does a refund to my credit card take?", REFUND, name="David Miller")
    assert draft.text.startswith("Hello David Miller,\n\n")
    assert draft.text.endswith(ENGLISH.closing)
    assert draft.warning == OTHER_LANGUAGE


def test_hints_act_by_simple_means_and_say_so() -> None:
    both = (REFUND, RENEWAL)
    usual, shorter = (
        draft_for("几天到账？自动续费怎么关？", *both),
        draft_for("几天到账？自动续费怎么关？", *both, hint="写短一点"),
    )
    assert len(shorter.text) < len(usual.text)
    assert shorter.warning == UNANSWERED[1]
    more = draft_for("几天到账？", REFUND, RENEWAL.model_copy(update={"fused": 0.1}), hint="再详细些")
    assert len(more.citations) == 2
    free = draft_for("几天到账？", REFUND, RENEWAL.model_copy(update={"fused": 0.1}), hint="说明怎样关闭自动续费")
    assert "关闭自动续费" in free.text
    assert free.warning == HINT_NOT_FOLLOWED


@pytest.mark.parametrize("name", ["", "   ", "\n\n"])
def test_without_a_name_it_greets_without_one(name: str) -> None:
    assert draft_for("几天到账？", REFUND, name=name).text.startswith("您好：\n\n")


@pytest.mark.parametrize(
    "name", ["王小明", "欧阳 娜娜", "Anne-Marie O’Neill", "J. R. Smith", "阿卜杜拉·买买提", "José"]
)
def test_a_name_is_greeted(name: str) -> None:
    assert draft_for("几天到账？", REFUND, name=name).text.startswith(f"{name}，您好：\n\n")


@pytest.mark.parametrize(
    "name",
    [
        "<b onmouseover=alert(1)>",
        "{{7*7}}",
        "王" * 21,
        "evil.com",
        "https://evil.com",
        "13800138000",
        "王\u202e明",
        "--",
    ],
)
def test_what_does_not_look_like_a_name_is_not_repeated(name: str) -> None:
    assert draft_for("几天到账？", REFUND, name=name).text.startswith("您好：\n\n")


LINES = st.lists(
    st.one_of(
        st.sampled_from(
            [
                "- 一：二。",
                "1. 先点开。再确认。",
                "问：怎么退？",
                "答：点退款。",
                "Q: how?",
                "A: so.",
                "甲乙。丙丁！",
                "……",
            ]
        ),
        st.text(alphabet="退款到账信用卡几天吗？。！，：:;.- \t123abc→“”", max_size=60),
    ),
    min_size=1,
    max_size=12,
)


@given(st.lists(LINES, min_size=1, max_size=5), st.text(max_size=80), st.sampled_from([None, "短", "详细", "退款"]))
@settings(max_examples=150, deadline=None)
def test_whatever_is_found_only_quotes_come_out(texts: list[list[str]], content: str, hint: str | None) -> None:
    passages = tuple(
        make_passage("\n".join(lines), ref=f"kb-{at}", fused=1 / at) for at, lines in enumerate(texts, start=1)
    )
    try:
        draft = draft_for(content, *passages, hint=hint)
    except Escalation:
        assert not any(pick_quotes(passage.text, len) for passage in passages)
    else:
        assert_only_quotes(draft, passages)


@pytest.mark.parametrize("text", ["", "  \n \n", "问：怎么退？", "Q: how?\nA:"])
def test_a_passage_that_says_nothing_is_not_quoted(text: str) -> None:
    with pytest.raises(Escalation):
        draft_for("怎么退？", make_passage(text))
    draft = draft_for("怎么退？", make_passage(text), RENEWAL)
    assert {citation.ref for citation in draft.citations} == {"kb-2"}


@pytest.mark.parametrize(
    ("question", "text", "holds"),
    [
        ("几天到账？", "3至5个工作日到账。", True),
        ("几天到账？", "按原支付方式退回。", False),
        ("运费谁出？", "寄回的运费由您承担。", True),
        ("在哪里申请，要多少钱？", "路径：“我的→发票”。", False),
        ("在哪里申请，要多少钱？", "路径：“我的→发票”，不收费用。", True),
        ("在哪里申请，要多少钱？", "路径：“我的→发票”，每张3元。", True),
        ("How long does it take?", "It takes 5 business days.", True),
        ("你好", "3天", False),
    ],
)
def test_the_kind_of_answer_that_is_wanted(question: str, text: str, holds: bool) -> None:
    assert has_wanted_kind(question, text) is holds


def test_english_sentences_keep_their_spaces() -> None:
    passage = make_passage("Invoices are sent on the 3rd. You can also download them.\n1. Open Settings. Then Billing.")
    text = draft_for("Where is my invoice?", passage).text
    assert "on the 3rd. You can also download them.\n1. Open Settings. Then Billing.\n" in text


def test_what_shares_no_word_and_no_document_is_not_quoted() -> None:
    stranger = make_passage("教练在前台登记。", ref="kb-2", heading="更换教练", fused=0.9)
    draft = draft_for("退款到信用卡几天？", REFUND, stranger)
    assert {citation.ref for citation in draft.citations} == {"kb-1"}


def test_a_text_found_twice_is_quoted_once_and_keeps_its_place() -> None:
    again = REFUND.model_copy(update={"ref": "kb-3"})
    draft = draft_for("退款到信用卡几天？自动续费在哪关闭？", REFUND, RENEWAL, again)
    assert [citation.ref for citation in draft.citations] == ["kb-1", "kb-2"]
    assert draft.text.index("信用卡") < draft.text.index("关闭自动续费")


FIRE = make_passage(
    "1. 先保证人的安全：切断电源，停止使用。\n2. 有人受伤请先就医，火情请拨打119。",
    ref="kb-2",
    heading="冒烟怎么办",
    fused=0.7,
)
HABIT = make_passage("空气炸锅第一次使用时可能轻微冒烟。焦煳味请按上面的步骤处理。", ref="kb-1", heading="小提醒")


def classified(observation: Observation, priority: Priority, category: Category) -> Observation:
    found = Classification(priority=priority, category=category, confidence=0.9, reasoning="It says so.")
    return observation.model_copy(update={"classification": found})


def test_an_urgent_ticket_gets_a_calm_word_and_then_what_to_do_at_once() -> None:
    observation = make_observation(make_facts("空气炸锅冒烟，我该怎么做？"), make_found(HABIT, FIRE))
    draft, _ = write(classified(observation, Priority.URGENT, Category.PRODUCT))
    assert draft.sentences[1].text == CHINESE.sorry
    assert draft.sentences[3].text.startswith("1. 先保证人的安全")
    assert "上面的步骤" not in draft.text
    assert_only_quotes(draft, (HABIT, FIRE))


@pytest.mark.parametrize("frame", [CHINESE, ENGLISH])
def test_the_calm_word_promises_nothing(frame: Frame) -> None:
    assert lint(frame.sorry) == ()


def test_a_complaint_gets_it_too_and_a_plain_question_does_not() -> None:
    observation = make_observation(make_facts("退款到信用卡几天？"), make_found(REFUND))
    complaint, _ = write(classified(observation, Priority.NORMAL, Category.COMPLAINT))
    assert CHINESE.sorry in complaint.text
    assert CHINESE.sorry not in write(classified(observation, Priority.NORMAL, Category.REFUND))[0].text


def test_the_best_answer_comes_first_whatever_the_search_put_first() -> None:
    late = make_passage("1. 先按上面的时间等满。\n2. 再查支付账单。\n3. 找银行查询。", ref="kb-2", heading="没收到钱")
    refund = REFUND.model_copy(update={"fused": 0.9, "doc_id": late.doc_id})
    draft = draft_for("钱退到信用卡要几天？", late, refund)
    assert draft.sentences[1 + 1].refs == ("kb-1",)
    assert "上面的时间" not in draft.text


def test_steps_of_which_one_is_missing_lose_their_numbers() -> None:
    quotes = pick_quotes("1. 先按上面的时间等满。\n2. 再查支付账单。\n3. 找银行查询。", len)
    assert [quote.text for quote in quotes] == ["再查支付账单。", "找银行查询。"]


def test_what_is_written_for_merchants_is_not_quoted_to_consumers() -> None:
    rules = make_passage("活动结束后15天内不能低于活动价。", ref="kb-2", heading="活动价的要求", title="商家活动报名")
    found = (RENEWAL.model_copy(update={"ref": "kb-1"}), rules)
    consumer = draft_for("自动续费在哪关闭？活动价有什么要求？", *found)
    assert {citation.ref for citation in consumer.citations} == {"kb-1"}
    assert consumer.warning == UNANSWERED[1]
    merchant = draft_for("我们店想报活动，活动价有什么要求？", *found)
    assert "活动结束后15天内" in merchant.text


def test_what_a_hint_forbids_is_left_out() -> None:
    both = draft_for("退款到信用卡几天？自动续费在哪关闭？", REFUND, RENEWAL)
    assert "自动续费" in both.text
    for hint in ("不要提自动续费", "别提自动续费的内容", "去掉自动续费"):
        draft = draft_for("退款到信用卡几天？自动续费在哪关闭？", REFUND, RENEWAL, hint=hint)
        assert "自动续费" not in draft.text
        assert "信用卡" in draft.text
        assert draft.warning == UNANSWERED[1]
    english = make_passage("Refunds take 5 days. Coupons are lost.", heading="Refunds")
    text = draft_for("How long do refunds take?", english, hint="without coupons").text
    assert "5 days" in text
    assert "Coupons" not in text


def test_a_hint_that_changes_nothing_is_said_to() -> None:
    assert draft_for("退款到信用卡几天？", REFUND, hint="语气再亲切一点").warning == HINT_CHANGED_NOTHING


@pytest.mark.parametrize(
    ("question", "without_it", "with_it"),
    [
        ("空气炸锅功率多少瓦？", "空气炸锅第一次使用时，空烧10分钟。", "空气炸锅功率1500瓦。"),
        ("铸铁锅有多重？", "铸铁锅每天擦干。", "铸铁锅重3.2公斤。"),
        ("How many watts does the kettle use?", "The kettle boils in 3 minutes.", "The kettle uses 1500 watts."),
    ],
)
def test_a_figure_that_stands_nowhere_goes_to_a_person(question: str, without_it: str, with_it: str) -> None:
    with pytest.raises(Escalation):
        draft_for(question, make_passage(without_it))
    assert with_it in draft_for(question, make_passage(with_it)).text
