"""What the page says about a step that went wrong: words of ours for each code, never the planner's English."""

import re
from html import unescape
from pathlib import Path

import pytest
from sqlalchemy import func

import app
from app.bootstrap import Container
from app.runs.models import RunStatus, Step
from app.web.ticket_words import STEP_ERROR
from tests.conftest import Login
from tests.review.factories import make_desk

RAISED = re.compile(r'(?:SkillFailed|Refused)\((?:[\w.]+, )?"(\w+)"')


def test_every_code_that_a_step_can_fail_with_has_words() -> None:
    rooms = ("agent", "llm", "offline", "skills")
    source = "".join(path.read_text() for room in rooms for path in Path(app.__path__[0], room).rglob("*.py"))
    codes = set(RAISED.findall(source))
    assert {"bad_arguments", "wrong_phase", "model_output_cut", "draft_empty"} <= codes
    assert codes == set(STEP_ERROR)


@pytest.mark.parametrize(
    ("code", "message", "words"),
    [
        ("bad_arguments", "query: String should have at least 1 character", "模型给这一步的参数无法使用。"),
        ("unknown_skill", "There is no such skill. Skills: classify_ticket.", "模型要求做AI做不了的事。"),
        ("escalated", "The knowledge base does not answer this question.", "知识库里没有这个问题的答案。"),
        ("of_an_older_version", "It went wrong.", "这一步失败了。"),
    ],
)
def test_a_failed_step_is_explained_in_the_language_of_the_page(
    container: Container, login: Login, code: str, message: str, words: str
) -> None:
    desk = make_desk(container, status=RunStatus.RUNNING, draft=False)
    with container.transaction() as session:
        step = Step(run_id=desk.run_id, number=1, action_type="tool_call", skill="plan", input={})
        step.error_code, step.error_message, step.ended_at = code, message, func.now()
        session.add(step)
    page = unescape(login().get(f"/tickets/{desk.number}").get_data(as_text=True))
    assert words in page
    assert message not in page
    assert "<b>规划</b>" in page
