"""Settings that contradict themselves are refused at the start, in words that say what to do."""

import pytest
from pydantic import ValidationError

from app.settings import Settings

KEY = "sk-very-secret-4711"


def demo(**given: object) -> Settings:
    return Settings(_env_file=None, demo=True, **given)


def test_the_planner_follows_from_the_address_of_a_model() -> None:
    assert demo().run_planner == "rule"
    assert demo(llm_base_url="http://127.0.0.1:1/v1").run_planner == "model"
    assert demo(llm_base_url="http://127.0.0.1:1/v1", planner="rule").run_planner == "rule"


@pytest.mark.parametrize(
    ("given", "words"),
    [({"planner": "model"}, "PLANNER=model needs LLM_BASE_URL"), ({"llm_api_key": KEY}, "without LLM_BASE_URL")],
)
def test_what_needs_a_model_is_refused_without_one(given: dict[str, object], words: str) -> None:
    with pytest.raises(ValidationError, match=words):
        demo(**given)


def test_no_secret_stands_in_an_error() -> None:
    with pytest.raises(ValidationError) as refused:
        Settings(_env_file=None, llm_base_url="http://127.0.0.1:1/v1", llm_api_key=KEY)
    assert "SECRET_KEY must be set" in str(refused.value)
    assert KEY not in str(refused.value)
