"""Links in a reply: those of an active help document may leave, all others and HTML are named and stop it."""

import pytest
from flask.testing import FlaskClient

from app.bootstrap import Container
from app.ids import new_id
from app.knowledge.models import DocState, KnowledgeChunk, KnowledgeDoc
from tests.conftest import Login
from tests.review.factories import Desk, make_desk
from tests.web.test_ticket_page import form_of, html, post

LINK = "https://help.heyan.example/refunds"


@pytest.fixture
def desk(container: Container) -> Desk:
    return make_desk(container)


@pytest.fixture
def agent(login: Login) -> FlaskClient:
    return login("agent")


def make_help_document(container: Container, text: str, state: DocState = DocState.ACTIVE) -> None:
    with container.transaction() as session:
        doc_id = new_id()
        session.add(KnowledgeDoc(id=doc_id, name="a.md", title="A", state=state, content=b"x", content_hash="x"))
        session.flush()
        chunk = KnowledgeChunk(
            id=new_id(),
            doc_id=doc_id,
            ordinal=0,
            heading="",
            text=text,
            section=text,
            content_hash="x",
            length=len(text),
        )
        session.add(chunk)


@pytest.mark.parametrize("text", [f"请看 {LINK} 。", "<b>退款</b>", "![](https://evil.example/x.png)"])
def test_what_stands_in_no_help_document_is_named_and_stops_the_reply(
    agent: FlaskClient, desk: Desk, text: str
) -> None:
    checked = html(post(agent, desk, "check", text=text))
    assert "链接" in checked[checked.index('id="checks-list"') :]
    assert "只能发送帮助文档里有的链接" in checked
    assert post(agent, desk, "approve", **form_of(agent, desk), text=text).status_code == 422


def test_a_link_of_a_help_document_may_leave(container: Container, agent: FlaskClient, desk: Desk) -> None:
    make_help_document(container, f"退款进度见 {LINK.upper()}。")
    assert "只能发送帮助文档里有的链接" not in html(post(agent, desk, "check", text=f"请看 {LINK} 。"))
    assert post(agent, desk, "approve", **form_of(agent, desk), text=f"请看 {LINK} 。").status_code == 200


@pytest.mark.parametrize(
    ("held", "state"), [(f"{LINK}/old", DocState.ACTIVE), (LINK, DocState.ARCHIVED), ("https://he%", DocState.ACTIVE)]
)
def test_a_link_that_only_begins_like_one_or_is_no_longer_in_use_stays(
    container: Container, agent: FlaskClient, desk: Desk, held: str, state: DocState
) -> None:
    make_help_document(container, f"见 {held} 。", state)
    assert post(agent, desk, "approve", **form_of(agent, desk), text=f"请看 {LINK} 。").status_code == 422


def test_a_bidi_control_does_not_leave(agent: FlaskClient, desk: Desk) -> None:
    page = html(post(agent, desk, "approve", **form_of(agent, desk), text="您好\u202e，已处理。"))
    assert "您好，已处理。" in page
