"""The classifier that asks a model, over HTTP, and how its answers are read."""

import pytest

from app.agent.skill import SkillFailed
from app.agent.values import Category, Priority
from app.llm.answers import read_answer
from app.llm.classifier import ClassifyAnswer, ModelClassifier, classification_of
from app.llm.prompting import load_prompt
from tests.llm.observations import ticket


def classify(with_client, calls, model="stub", facts=None):
    return with_client(lambda client: ModelClassifier(client).classify(facts or ticket(), calls), model)


def test_class_is_read(with_client, stub_llm, calls):
    answer = classify(with_client, calls)
    assert (answer.priority, answer.category, answer.confidence) == (Priority.NORMAL, Category.REFUND, 0.93)
    (body,) = stub_llm.requests()
    assert body["temperature"] == 0.3
    assert body["response_format"] == {"type": "json_object"}
    assert "JSON" in body["messages"][0]["content"]
    (call,) = calls.take()
    assert (call.task, call.finish_reason, call.prompt_version) == ("classify", "stop", "classify-1")


def test_text_instead_of_json_fails_and_is_paid(with_client, calls):
    with pytest.raises(SkillFailed) as failed:
        classify(with_client, calls, "stub;bad=1")
    assert failed.value.code == "model_output_not_json"
    (call,) = calls.take()
    assert (call.finish_reason, call.error) == ("stop", "model_output_not_json")
    assert call.tokens_out > 0


@pytest.mark.parametrize(
    ("finish", "code"), [("length", "model_output_cut"), ("content_filter", "model_output_filtered")]
)
def test_unfinished_answer_fails(with_client, calls, finish, code):
    with pytest.raises(SkillFailed) as failed:
        classify(with_client, calls, f"stub;finish={finish}")
    assert failed.value.code == code
    assert [(call.finish_reason, call.error) for call in calls.take()] == [(finish, code)]


def test_missing_usage_is_estimated(with_client, calls):
    classify(with_client, calls, "stub;usage=0")
    (call,) = calls.take()
    assert call.tokens_in > 100
    assert call.tokens_out > 10


@pytest.mark.parametrize("category", ["weather", "", None, 3, ["refund"], {"a": 1}])
def test_unknown_category_counts_as_other(category):
    answer = ClassifyAnswer.model_validate({"priority": "urgent", "category": category, "confidence": 1})
    assert answer.category is Category.OTHER


@pytest.mark.parametrize(
    ("answer", "field"),
    [
        ('{"priority": "critical", "category": "refund", "confidence": 0.5}', "priority"),
        ('{"priority": "urgent", "category": "refund", "confidence": 93}', "confidence"),
        ('{"priority": "urgent", "category": "refund", "confidence": NaN}', "confidence"),
        ('{"priority": "urgent", "category": "refund"}', "confidence"),
        ('{"priority": "urgent", "category": "refund", "confidence": -0.1}', "confidence"),
        ("{}", "priority"),
    ],
)
def test_answer_that_does_not_fit_names_the_field(answer, field):
    with pytest.raises(SkillFailed) as failed:
        read_answer(answer, ClassifyAnswer)
    assert failed.value.code == "model_output_wrong_shape"
    assert field in failed.value.message


@pytest.mark.parametrize("around", ["{}", "```json\n{}\n```", "好的：{} 以上。", "\ufeff{}"])
def test_json_may_stand_in_a_code_fence(around):
    answer = around.replace("{}", '{"priority": "urgent", "category": "refund", "confidence": 1}')
    assert read_answer(answer, ClassifyAnswer).priority is Priority.URGENT


def test_prompt_names_every_class():
    text = load_prompt("classify").render("system")
    assert [name for name in (*Priority, *Category) if name not in text] == []


def test_reasoning_is_cut_and_cleaned():
    answer = ClassifyAnswer(priority="urgent", category="refund", confidence=1, reasoning=" a\x00" + "好" * 600)
    assert classification_of(answer).reasoning == "a" + "好" * 499
