"""The inbox: what state a ticket is in, where it stands, what filters leave, how a page is kept up to date."""

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import Any
from uuid import UUID

import pytest
from flask import Flask
from flask.testing import FlaskClient
from sqlalchemy import Connection, Engine, event, func, select, text, update
from sqlalchemy.orm import Session

from app.agent.values import Priority
from app.bootstrap import Container
from app.delivery.models import Delivery, DeliveryState
from app.ids import new_id
from app.review import inbox
from app.review.inbox import inbox_counts, inbox_page, inbox_rows
from app.review.inbox_filter import InboxFilter, View
from app.review.inbox_state import STATUS_OF, Group, LiveState, Status, group_of, states_of
from app.runs.models import Artifact, ArtifactType, Run, RunStatus, Step
from app.tickets.models import Ticket, TicketStatus
from app.web.inbox_regions import amount
from tests.conftest import Login
from tests.factories import MadeTicket, make_ticket
from tests.web.pages import ENGLISH, HTMX, text_of

S = RunStatus


def shape(container: Container, made: MadeTicket, **values: object) -> None:
    """Set columns of a ticket."""
    with container.transaction() as session:
        session.execute(update(Ticket).where(Ticket.id == made.ticket_id).values(**values))


def run_is(
    container: Container, made: MadeTicket, status: RunStatus, *, skill: str = "", planner: str = "rule"
) -> None:
    """Put a ticket's run in a state, in the middle of a step if a skill is named."""
    with container.transaction() as session:
        session.execute(update(Run).where(Run.id == made.run_id).values(status=status, planner=planner))
        if skill:
            session.add(Step(run_id=made.run_id, number=1, action_type="skill", skill=skill, input={}))


def reply_is(container: Container, made: MadeTicket, state: DeliveryState) -> None:
    """Give a completed run's reply a state on its way out."""
    run_is(container, made, S.COMPLETED)
    with container.transaction() as session:
        artifact = Artifact(id=new_id(), run_id=made.run_id, type=ArtifactType.SENT_REPLY, version=1, content={})
        session.add(artifact)
        session.flush()
        sent_at = func.now() if state is DeliveryState.SENT else None
        session.add(
            Delivery(
                id=new_id(),
                artifact_id=artifact.id,
                ticket_id=made.ticket_id,
                channel="web",
                payload={},
                state=state,
                not_before=func.now(),
                sent_at=sent_at,
            )
        )


def waited(container: Container, made: MadeTicket, minutes: int) -> None:
    shape(container, made, last_customer_message_at=func.now() - timedelta(minutes=minutes))


def listed(container: Container, shown: InboxFilter | None = None) -> list[UUID]:
    with container.sessions() as session:
        return [row.id for row in inbox_page(session, shown or InboxFilter()).rows]


def state_of(container: Container, made: MadeTicket) -> LiveState:
    with container.sessions() as session:
        (row,) = inbox_rows(session, InboxFilter(), [made.ticket_id])
        return row.state


@contextmanager
def counted(engine: Engine) -> Iterator[list[str]]:
    """Collect the statements that an engine executes."""
    statements: list[str] = []

    def note(_conn: object, _cursor: object, statement: str, *_rest: object) -> None:
        statements.append(statement)

    event.listen(engine, "before_cursor_execute", note)
    try:
        yield statements
    finally:
        event.remove(engine, "before_cursor_execute", note)


@pytest.mark.parametrize(
    ("status", "skill", "planner", "expected"),
    [
        (S.CREATED, "", "rule", LiveState.QUEUED),
        (S.RETRYING, "", "model", LiveState.QUEUED),
        (S.RUNNING, "", "model", LiveState.THINKING),
        (S.RUNNING, "classify_ticket", "rule", LiveState.CLASSIFYING),
        (S.RUNNING, "search_knowledge", "rule", LiveState.SEARCHING),
        (S.RUNNING, "draft_reply", "rule", LiveState.DRAFTING),
        (S.WAITING_FOR_REVIEW, "", "rule", LiveState.DRAFT_READY),
        (S.WAITING_FOR_REVIEW, "", "manual", LiveState.WRITING),
        (S.WAITING_FOR_ESCALATION, "", "rule", LiveState.ESCALATED),
        (S.FAILED, "", "rule", LiveState.FAILED),
        (S.CANCELLED, "", "rule", LiveState.CANCELLED),
    ],
)
def test_the_state_follows_the_run(
    container: Container, status: RunStatus, skill: str, planner: str, expected: LiveState
) -> None:
    made = make_ticket(container)
    run_is(container, made, status, skill=skill, planner=planner)
    assert state_of(container, made) is expected


@pytest.mark.parametrize(
    ("delivery", "expected"),
    [
        (DeliveryState.HELD, LiveState.SENDING),
        (DeliveryState.SENDING, LiveState.SENDING),
        (DeliveryState.FAILED, LiveState.SEND_FAILED),
        (DeliveryState.UNKNOWN, LiveState.SEND_FAILED),
        (DeliveryState.SENT, LiveState.NEW),  # the ticket has been opened again since
        (DeliveryState.RECALLED, LiveState.NEW),
    ],
)
def test_the_state_follows_the_reply(container: Container, delivery: DeliveryState, expected: LiveState) -> None:
    made = make_ticket(container)
    reply_is(container, made, delivery)
    assert state_of(container, made) is expected


def test_an_escalation_outlives_the_run_that_brought_it(container: Container, login: Login) -> None:
    made = make_ticket(container, run_status=S.WAITING_FOR_REVIEW)
    with container.transaction() as session:
        session.execute(update(Ticket).values(escalated_at=func.now(), escalation_reason="涉及安全"))
    assert state_of(container, made) is LiveState.ESCALATED
    page = login("agent").get(f"/tickets/{made.number}", headers=ENGLISH).get_data(as_text=True)
    head = page[page.index('id="ticket-head"') : page.index('id="ticket-body"')]
    assert head.count("Escalation") == 1


def test_a_ticket_at_rest_and_one_reopened(container: Container) -> None:
    made = make_ticket(container)
    run_is(container, made, S.COMPLETED)
    for status, expected in (
        (TicketStatus.RESOLVED, LiveState.RESOLVED),
        (TicketStatus.CLOSED, LiveState.CLOSED),
        (TicketStatus.SPAM, LiveState.SPAM),
        (TicketStatus.WAITING_FOR_CUSTOMER, LiveState.WAITING),
        (TicketStatus.PENDING, LiveState.NEW),
    ):
        shape(container, made, status=status)
        assert state_of(container, made) is expected
    run_is(container, made, S.RUNNING)
    assert state_of(container, made) is LiveState.THINKING


def test_every_state_has_a_status_and_a_group() -> None:
    assert set(STATUS_OF) == set(LiveState)
    assert {state for status in Status for state in states_of(status)} == set(LiveState)
    assert group_of(LiveState.DRAFT_READY) is Group.DECIDE
    assert group_of(LiveState.DRAFTING) is Group.AGENT
    assert group_of(LiveState.SENDING) is Group.REST


def test_who_must_act_comes_first_then_urgent_then_the_longest_waiting(container: Container) -> None:
    resting, old, young, urgent, working = (make_ticket(container) for _ in range(5))
    for made, minutes in ((resting, 500), (old, 300), (young, 20), (urgent, 5), (working, 900)):
        waited(container, made, minutes)
    for made in (old, young, urgent):
        run_is(container, made, S.WAITING_FOR_REVIEW)
    run_is(container, working, S.RUNNING)
    run_is(container, resting, S.COMPLETED)
    shape(container, resting, status=TicketStatus.RESOLVED, resolved_at=func.now())
    shape(container, urgent, priority=Priority.URGENT)
    assert listed(container) == [made.ticket_id for made in (urgent, old, young, working, resting)]


def test_paging_meets_every_ticket_once(container: Container) -> None:
    made = [make_ticket(container) for _ in range(7)]
    for ticket in made[:3]:
        run_is(container, ticket, S.WAITING_FOR_REVIEW)
    with container.sessions() as session:
        first = inbox_page(session, InboxFilter(), limit=3)
        second = inbox_page(session, InboxFilter(), first.after, limit=3)
        third = inbox_page(session, InboxFilter(), second.after, limit=3)
        broken = inbox_page(session, InboxFilter(), "no.such.cursor.at all", limit=3)
    seen = [row.id for page in (first, second, third) for row in page.rows]
    assert sorted(seen) == sorted(ticket.ticket_id for ticket in made)
    assert (third.after, first.total, first.group_totals) == (None, 7, {Group.DECIDE: 3, Group.AGENT: 4, Group.REST: 0})
    assert second.group_totals == first.group_totals
    assert broken.rows == first.rows


def rests(container: Container, count: int, status: TicketStatus = TicketStatus.RESOLVED) -> list[MadeTicket]:
    """Make tickets that are done; the first was done last."""
    made = [make_ticket(container, customer=f"R-{at}") for at in range(count)]
    for at, ticket in enumerate(made):
        reply_is(container, ticket, DeliveryState.SENT)
        shape(container, ticket, status=status, resolved_at=func.now() - timedelta(minutes=at))
    return made


def test_paging_goes_on_through_tickets_at_rest(container: Container) -> None:
    done = rests(container, 5)
    shape(container, done[4], priority=Priority.URGENT)
    shape(
        container,
        done[2],
        resolved_at=select(Ticket.resolved_at).where(Ticket.id == done[1].ticket_id).scalar_subquery(),
    )
    waiting, open_one = make_ticket(container), make_ticket(container)
    shape(container, waiting, status=TicketStatus.WAITING_FOR_CUSTOMER)
    run_is(container, waiting, S.COMPLETED)
    waited(container, waiting, 3)
    met: list[UUID] = []
    after = None
    with container.sessions() as session:
        for _ in range(4):
            page = inbox_page(session, InboxFilter(), after, limit=2)
            after = page.after
            met += [row.id for row in page.rows]
            assert (page.total, page.group_totals[Group.REST]) == (7, 6)
    assert after is None
    twins = sorted(made.ticket_id for made in done[1:3])
    assert met == [open_one.ticket_id, done[0].ticket_id, *twins, *(m.ticket_id for m in (waiting, done[3], done[4]))]


def test_the_work_on_tickets_at_rest_is_not_looked_at(container: Container) -> None:
    """However many are done, the statements read runs and replies of the open ones only."""
    rests(container, 30)
    run_is(container, make_ticket(container), S.WAITING_FOR_REVIEW)
    for shown in (InboxFilter(), InboxFilter(view=View.SENT_TODAY), InboxFilter(search="券")):
        assert rows_read(container, "runs", lambda session, shown=shown: inbox_page(session, shown)) <= 1
    assert rows_read(container, "runs", lambda session: inbox_counts(session, time_zone="UTC")) <= 1


def test_tickets_at_rest_are_counted_up_to_a_limit(container: Container, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(inbox, "COUNTED_MOST", 3)
    rests(container, 6)
    with container.sessions() as session:
        page = inbox_page(session, InboxFilter())
        counts = inbox_counts(session, time_zone="UTC")
    assert len(page.rows) == 6
    assert page.total == page.group_totals[Group.REST] == counts.views[View.ALL] == 4


def test_what_is_not_counted_is_said(app: Flask) -> None:
    with app.test_request_context():
        assert (amount(9_999), amount(10_000), amount(70_000)) == ("9,999", "9,999+", "9,999+")


def plan_of(session: Session, read: Callable[[], object]) -> list[dict[str, Any]]:
    """Return the nodes of the plans that PostgreSQL took for what `read` executes."""
    nodes: list[dict[str, Any]] = []

    def explain(conn: Connection, _cursor: object, statement: str, parameters: Any, *_rest: object) -> None:
        if not statement.startswith("EXPLAIN"):
            prefix = "EXPLAIN (ANALYZE, TIMING OFF, FORMAT JSON) "
            for (plans,) in conn.exec_driver_sql(prefix + statement, parameters):
                flatten(plans[0]["Plan"])

    def flatten(node: dict[str, Any]) -> None:
        nodes.append(node)
        for below in node.get("Plans", ()):
            flatten(below)

    connection = session.connection()
    event.listen(connection, "before_cursor_execute", explain)
    try:
        read()
    finally:
        event.remove(connection, "before_cursor_execute", explain)
    return nodes


def rows_read(container: Container, table: str, read: Callable[[Session], object]) -> int:
    """Return how many rows of a table the statements of `read` went through."""
    with container.sessions() as session:
        # Small tables may be read whole, by statistics that come and go; the indexes are what is asked about.
        session.execute(text("SET LOCAL enable_seqscan = off"))
        plan = plan_of(session, lambda: read(session))
    nodes = [node for node in plan if node.get("Relation Name") == table]
    assert nodes
    per_loop = (node["Actual Rows"] + node.get("Rows Removed by Filter", 0) for node in nodes)
    return round(sum(rows * node["Actual Loops"] for rows, node in zip(per_loop, nodes, strict=True)))


def test_filters_and_search(container: Container) -> None:
    coupon = make_ticket(container, subject="优惠券 100%_用不了", customer="C-1")
    refund = make_ticket(container, subject="退款", customer="C-2")
    run_is(container, coupon, S.WAITING_FOR_REVIEW)
    shape(container, refund, priority=Priority.URGENT)
    for shown, expected in (
        (InboxFilter(statuses=(Status.REVIEW,)), [coupon]),
        (InboxFilter(statuses=(Status.REVIEW, Status.RUNNING)), [coupon, refund]),
        (InboxFilter(priorities=(Priority.URGENT,)), [refund]),
        (InboxFilter(priorities=(Priority.URGENT,), statuses=(Status.REVIEW,)), []),
        (InboxFilter(view=View.REVIEW), [coupon]),
        (InboxFilter(view=View.URGENT), [refund]),
        (InboxFilter(search="0%_用"), [coupon]),
        (InboxFilter(search="%"), [coupon]),
        (InboxFilter(search=f"#{refund.number}"), [refund]),
        (InboxFilter(search=str(refund.number)), [refund]),
        (InboxFilter(search="C-2"), [refund]),
        (InboxFilter(search="9" * 40), []),
        (InboxFilter(search="²"), []),
    ):
        assert listed(container, shown) == [made.ticket_id for made in expected], shown


def test_counts_agree_with_the_lists(container: Container) -> None:
    made = [make_ticket(container) for _ in range(6)]
    run_is(container, made[0], S.WAITING_FOR_REVIEW)
    run_is(container, made[1], S.WAITING_FOR_ESCALATION)
    run_is(container, made[2], S.FAILED)
    reply_is(container, made[3], DeliveryState.UNKNOWN)
    reply_is(container, made[4], DeliveryState.SENT)
    shape(container, made[0], priority=Priority.URGENT)
    shape(container, made[4], priority=Priority.URGENT, status=TicketStatus.RESOLVED)
    with container.sessions() as session:
        counts = inbox_counts(session, time_zone="Asia/Shanghai").views
        lists = {view: inbox_page(session, InboxFilter(view=view)).total for view in View}
    assert counts == lists
    assert counts == {
        View.REVIEW: 1,
        View.URGENT: 1,
        View.ESCALATED: 1,
        View.FAILED: 2,
        View.SENT_TODAY: 1,
        View.ALL: 6,
    }


def test_statements_do_not_grow_with_the_tickets(login: Login, container: Container) -> None:
    client = login("agent")
    numbers = []
    for total in (10, 200):
        made = [make_ticket(container, customer=f"C-{at}") for at in range(total)]
        for ticket in made[::3]:
            run_is(container, ticket, S.WAITING_FOR_REVIEW)
        with counted(container.engine) as statements:
            page = text_of(client.get("/"))
        numbers.append(len(statements))
        assert page.count("data-row") == min(50, total)
    assert numbers[0] == numbers[1] <= 3, numbers


def test_the_page_shows_a_row_and_keeps_the_filter(login: Login, container: Container) -> None:
    made = make_ticket(container, subject="券", customer_name="陈雨桐")
    run_is(container, made, S.WAITING_FOR_REVIEW)
    shape(container, made, priority=Priority.URGENT, category="coupon", category_set_by="ai")
    page = text_of(login("agent").get("/?status=review&priority=urgent&view=review&status=nonsense"))
    row = page[page.index(f'id="ticket-row-{made.ticket_id}"') :]
    row = row[: row.index("</a>")]
    for words in ("陈**", "草稿就绪", "紧急", "优惠券", f"#{made.number}", "刚刚"):
        assert words in row
    assert "陈雨桐" not in page
    assert f"/tickets/{made.number}?view=review&amp;status=review&amp;priority=urgent" in row


def test_strangers_words_stay_words(login: Login, container: Container) -> None:
    hostile = '<hx-partial hx-target="#toasts">"><img src=x onerror=alert(1)>'
    make_ticket(container, subject=hostile, content=hostile, customer_name=hostile)
    client = login("agent")
    for path in ("/", f"/?q={hostile}"):
        page = text_of(client.get(path))
        assert "<img" not in page
        assert "<hx-partial" not in page


def test_more_rows_come_without_repeating_the_heading(login: Login, container: Container) -> None:
    for at in range(55):
        make_ticket(container, customer=f"C-{at}")
    client = login("agent")
    page = text_of(client.get("/"))
    more = re.search(r'hx-get="(/inbox/rows\?after=[^"]+)"', page)
    assert more
    rest = text_of(client.get(more.group(1), headers=HTMX))
    assert (rest.count("data-row"), rest.count('class="group"')) == (5, 0)
    assert text_of(client.get("/inbox/rows", headers=HTMX)).count('class="group"') == 1


def test_an_empty_view_says_what_to_do(login: Login) -> None:
    client: FlaskClient = login("agent")
    assert "没有等你审批的草稿" in text_of(client.get("/?view=review"))
    assert "没有符合的工单" in text_of(client.get("/?q=nothing"))
    assert "还没有工单" in text_of(client.get("/"))
