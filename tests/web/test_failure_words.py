"""What the page says about a run that failed, was cut off or handed over: why, and what happens next."""

from html import unescape

import pytest
from flask.testing import FlaskClient
from sqlalchemy import func, update

from app.agent.steps import OUT_OF_STEPS
from app.bootstrap import Container
from app.llm.failures import NO_ANSWER
from app.runs.executor import SKILL_TIMED_OUT, TIMED_OUT
from app.runs.fate import WORKER_LOST
from app.runs.models import Run, RunStatus, Step
from tests.conftest import Login
from tests.review.factories import Desk, make_desk
from tests.web.pages import ENGLISH


def failed(container: Container, **values: object) -> Desk:
    """A run that failed in its second step."""
    desk = make_desk(container, status=RunStatus.FAILED, draft=False)
    with container.transaction() as session:
        session.execute(update(Run).values(ended_at=func.now(), **values))
        for number, skill in enumerate(("classify_ticket", "search_knowledge"), start=1):
            session.add(
                Step(
                    run_id=desk.run_id,
                    number=number,
                    action_type="tool_call",
                    skill=skill,
                    input={},
                    ended_at=func.now(),
                    error_code=None if number == 1 else values.get("error_code"),
                )
            )
    return desk


def page_of(client: FlaskClient, desk: Desk, **headers: str) -> str:
    return unescape(client.get(f"/tickets/{desk.number}", headers=headers).get_data(as_text=True))


@pytest.mark.parametrize(
    ("code", "message", "detail", "english", "chinese"),
    [
        ("timed_out", TIMED_OUT, {"limit_s": 120}, ["The run took too long.", "Try again"], ["处理超时了", "可以重试"]),
        (
            "skill_timed_out",
            SKILL_TIMED_OUT,
            {"skill": "search_knowledge", "limit_s": 60},
            ["A step took too long: Search was given 60 seconds.", "What was found is kept."],
            ["有一步超时了：“检索”限时60秒。", "都保留着"],
        ),
        ("model_timed_out", NO_ANSWER, {"limit_s": 30}, ["did not answer in time", "in a few minutes"], ["过几分钟"]),
        (
            "step_limit",
            OUT_OF_STEPS,
            {"steps": 5, "loop": "search_knowledge → draft_reply → …"},
            ["used up its 5 steps without a draft: Search → Draft → …", "with a hint"],
            ["AI用完了5步，没有写出草稿：检索 → 起草 → …", "加一句提示"],
        ),
        ("worker_lost", WORKER_LOST, None, ["no longer answers", "What was found is kept."], ["没有回应", "请重试"]),
        ("set_aside", WORKER_LOST, None, ["tell an administrator"], ["告诉管理员"]),
        ("database_away", None, None, ["Something went wrong on our side.", "are safe"], ["内容都在"]),
    ],
)
def test_each_failure_is_said_in_plain_words_with_what_to_do(
    container: Container,
    login: Login,
    code: str,
    message: str | None,
    detail: dict[str, object] | None,
    english: list[str],
    chinese: list[str],
) -> None:
    desk = failed(container, error_code=code, error_message=message, error_detail=detail)
    client = login()
    pages = page_of(client, desk, **ENGLISH), page_of(client, desk)
    for page, words in zip(pages, (english, chinese), strict=True):
        assert [word for word in words if word not in page] == []
        assert "%(" not in page
        assert code not in page


def test_a_time_out_that_is_retried_by_itself_says_so(container: Container, login: Login) -> None:
    desk = failed(container, error_code="timed_out", error_message=TIMED_OUT, retry_at=func.now())
    page = page_of(login(), desk, **ENGLISH)
    assert "The run took too long." in page
    assert "It is tried once more by itself in a moment." in page


def test_a_step_that_failed_itself_does_not_hide_why_the_run_did(container: Container, login: Login) -> None:
    desk = failed(
        container, error_code="step_limit", error_message=OUT_OF_STEPS, error_detail={"steps": 5, "loop": "x"}
    )
    with container.transaction() as session:
        session.execute(update(Step).where(Step.number == 2).values(error_code="wrong_phase", error_message="Not now."))
    page = page_of(login(), desk, **ENGLISH)
    assert "The model asked for a step out of turn." in page
    assert "used up its 5 steps without a draft: x" in page


def test_a_run_that_was_handed_over_goes_on_and_has_not_failed(container: Container, login: Login) -> None:
    desk = failed(container, error_code=None)
    with container.transaction() as session:
        session.execute(update(Run).values(status=RunStatus.RETRYING, ended_at=None))
        session.execute(update(Step).where(Step.number == 2).values(error_code="retrying"))
    page = page_of(login(), desk, **ENGLISH)
    assert "Interrupted because its worker stopped; another one goes on." in page
    assert "Handed over" in page
    assert "goes on in a moment" in page
    assert "is-bad" not in page
    assert "Failed</b>" not in page
