"""The drafter that asks a model: streaming over HTTP, and what becomes of the answer."""

import hashlib

import pytest

from app.agent.skill import Escalation, SkillFailed
from app.agent.values import Sufficiency
from app.guard.evidence import cite_sentences
from app.llm.drafter import ANSWERED_IN_PART, EDIT_NEEDED, DraftAnswer, ModelDrafter, _draft_so_far, customer_text
from tests.llm.observations import REFUND_RULE, found, ready_to_draft


def draft(with_client, calls, model="stub", observation=None, shown=None):
    shown = [] if shown is None else shown

    async def show(text):
        shown.append(text)

    def work(client):
        return ModelDrafter(client, cite_sentences).draft(observation or ready_to_draft(), show, calls)

    return with_client(work, model)


def read(answer, observation=None):
    """Return the Draft that becomes of an answer, without a call."""
    observation = observation or ready_to_draft()
    drafter = ModelDrafter(None, cite_sentences)  # type: ignore[arg-type] - reading asks nobody
    return drafter._read(DraftAnswer(confidence=0.8, **answer), observation, observation.search.passages)


def test_draft_is_shown_growing_and_never_as_json(with_client, calls):
    shown = []
    made = draft(with_client, calls, "stub;chunks=12;text=240", shown=shown)
    lengths = [len(text) for text in shown]
    assert len(lengths) >= 3
    assert lengths == sorted(set(lengths))
    assert all(made.text.startswith(text) for text in shown)
    assert shown[-1] == made.text
    assert not any(mark in text for text in shown for mark in '{}"')


def test_draft_says_what_it_used(with_client, calls):
    made = draft(with_client, calls)
    assert (made.origin, made.confidence, made.warning) == ("model", 0.88, None)
    assert "".join(sentence.text for sentence in made.sentences) == made.text
    (citation,) = made.citations
    assert (citation.ref, citation.doc_version, citation.text) == ("kb-1", 3, REFUND_RULE)
    assert citation.digest == hashlib.sha256(REFUND_RULE.encode()).hexdigest()
    assert {sentence.refs for sentence in made.sentences} == {(), ("kb-1",)}
    (call,) = calls.take()
    assert (call.task, call.finish_reason, call.prompt_version, call.error) == ("draft", "stop", "draft-1", None)
    assert call.ttft_ms is not None
    assert call.tokens_in > 100


def test_what_is_asked(with_client, stub_llm, calls):
    draft(with_client, calls, observation=ready_to_draft(hint="语气软一点"))
    (body,) = stub_llm.requests()
    text = "\n".join(message["content"] for message in body["messages"])
    assert body["stream"] is True
    assert body["stream_options"] == {"include_usage": True}
    for part in ("JSON", REFUND_RULE, "kb-1", "kb-2", "钱什么时候退回来", "语气软一点", "#7 发票抬头写错"):
        assert part in text
    assert "priority" not in text
    assert "陈雨桐" not in text


def test_sources_that_do_not_answer_go_to_a_person(with_client, calls):
    shown = []
    with pytest.raises(Escalation):
        draft(with_client, calls, "stub;answers=0", shown=shown)
    assert shown == []
    assert [call.error for call in calls.take()] == [None]


def test_nothing_found_is_not_asked(with_client, stub_llm, calls):
    with pytest.raises(Escalation):
        draft(with_client, calls, observation=ready_to_draft(search=None))
    assert stub_llm.stats()["chat"] == 0


def test_text_instead_of_json_fails(with_client, calls):
    with pytest.raises(SkillFailed) as failed:
        draft(with_client, calls, "stub;bad=1")
    assert failed.value.code == "model_output_not_json"


def test_missing_usage_of_a_stream_is_estimated(with_client, calls):
    draft(with_client, calls, "stub;usage=0;text=240")
    (call,) = calls.take()
    assert call.tokens_in > 100
    assert 100 < call.tokens_out < 400


def test_only_refs_that_were_given_are_cited():
    made = read({"draft": "退款在3至5个工作日内原路退回。", "cited": ("kb-9", "kb-2", "../etc")})
    assert [citation.ref for citation in made.citations] == ["kb-2"]
    assert all(set(sentence.refs) <= {"kb-2"} for sentence in made.sentences)


def test_evidence_decides_where_nothing_is_cited():
    made = read({"draft": "审核通过后的3至5个工作日内原路退回。祝您生活愉快。"})
    assert [sentence.refs for sentence in made.sentences] == [("kb-1",), ()]
    assert [citation.ref for citation in made.citations] == ["kb-1"]


def test_invented_number_has_no_source():
    made = read({"draft": "退款在审核通过后的24小时内原路退回。", "cited": ("kb-1",)})
    assert made.sentences[0].refs == ()


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("", "draft_empty"),
        ("[kb-1]\x00", "draft_empty"),
        ("\u200b\u3164\u0301\n", "draft_empty"),
        ("好" * 4001, "draft_too_long"),
    ],
)
def test_draft_that_can_not_be_used(text, code):
    with pytest.raises(SkillFailed) as failed:
        read({"draft": text})
    assert failed.value.code == code


def test_warnings():
    weak = ready_to_draft(search=found(Sufficiency.WEAK))
    assert read({"draft": "好。"}, weak).warning == ANSWERED_IN_PART
    assert read({"draft": "好。", "needs_human_edit": True}).warning == EDIT_NEEDED
    assert read({"draft": "好。"}).warning is None


@pytest.mark.parametrize(
    ("written", "read_as"),
    [
        ("三天内到账[kb-1]。", "三天内到账。"),
        ("三天内到账 [1]，退到原卡【kb-2】。", "三天内到账，退到原卡。"),
        ("到账（kb-1、kb-2）。", "到账。"),
        ("到账[KB-1, kb-2]", "到账"),
        ("分两步：\n(1) 打开页面\n（2）提交[3个]", "分两步：\n(1) 打开页面\n（2）提交[3个]"),
        ("您\x1b[31m好\x00\u0085", "您[31m好"),
        ("您\u202e好\u2066", "您好"),
        ("  您好\n", "您好"),
    ],
)
def test_customer_text(written, read_as):
    assert customer_text(written) == read_as


@pytest.mark.parametrize(
    ("raw", "text"),
    [
        ("", ""),
        ("```json\n", ""),
        ('{"dra', ""),
        ('{"draft": "您', "您"),
        ('```json\n{"draft": "您好\\n\\u4f6', "您好"),
        ('{"draft": "a\\"b', 'a"b'),
        ('{"answers": false, "draft": "我猜', ""),
        ('{"draft": {"x": 1', ""),
        ('["draft", "您', ""),
        ('{"draft": "您好", "cited": ["kb', "您好"),
        ("plain words", ""),
    ],
)
def test_draft_so_far(raw, text):
    assert _draft_so_far(raw) == text
