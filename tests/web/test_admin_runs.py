"""The operations page: who may see it, what stands in each list, and what it costs to read."""

import re
from datetime import timedelta
from uuid import UUID

import pytest
from flask import Flask
from flask.testing import FlaskClient
from sqlalchemy import func, insert, text, update

from app.bootstrap import Container
from app.clock import now
from app.ids import first_id_at, new_id
from app.runs import admin_lists
from app.runs.admin_lists import RunList
from app.runs.admin_queries import run_counts, run_list, workers
from app.runs.models import EventType, Run, RunOrigin, RunStatus, Step
from app.runs.overlooked import overlooked_for
from app.staff.models import Role
from app.tickets.models import Ticket, TicketStatus
from app.web import run_words
from tests.conftest import Login
from tests.factories import make_ticket
from tests.runs.looking import events_of, run_of
from tests.web.admin_runs import ago, failed, listed, retry, running, shape
from tests.web.pages import ENGLISH, HTMX, send, text_of
from tests.web.test_inbox import counted, rows_read

S = RunStatus
HOSTILE = '<hx-partial hx-target="#toasts">"><img src=x onerror=alert(1)>'


@pytest.fixture
def admin(login: Login) -> FlaskClient:
    return login("root", Role.ADMIN)


@pytest.mark.parametrize("path", ["", "/board", f"/{new_id()}", f"/{new_id()}/row"])
def test_only_administrators_see_it(login: Login, client: FlaskClient, path: str) -> None:
    away = client.get(f"/admin/runs{path}")
    assert away.status_code == 302
    assert "/sign-in?next=" in away.headers["Location"]
    for role in (Role.AGENT, Role.SUPERVISOR):
        text_of(login(role.value, role).get(f"/admin/runs{path}"), 403)


@pytest.mark.parametrize("action", ["retry", "stop", "take-out", "sweep"])
def test_only_administrators_act_and_only_by_the_page(
    login: Login, admin: FlaskClient, container: Container, action: str
) -> None:
    made = failed(container)
    path = "/admin/runs/sweep" if action == "sweep" else f"/admin/runs/{made.run_id}/{action}"
    text_of(send(login("lead", Role.SUPERVISOR), path, htmx=True), 403)
    text_of(admin.post(path, headers=HTMX), 400)
    assert len(events_of(container, made.thread_id)) == 1
    assert run_of(container, made.run_id).status == S.FAILED


def test_the_rail_leads_there_for_administrators_only(login: Login, admin: FlaskClient) -> None:
    assert 'href="/admin/runs"' in text_of(admin.get("/"))
    assert "/admin/runs" not in text_of(login("lead", Role.SUPERVISOR).get("/"))
    assert "/admin/rq" in text_of(admin.get("/admin/runs"))


def test_each_run_stands_in_its_lists(container: Container) -> None:
    at_work, lost = running(container), running(container, lease_s=-3)
    fresh, resumed, forgotten, later = (make_ticket(container, customer=f"C-{at}") for at in range(4))
    shape(container, resumed.run_id, status=S.RETRYING, moved_at=ago(seconds=5), created_at=ago(hours=1))
    shape(container, forgotten.run_id, created_at=ago(seconds=31))
    shape(container, later.run_id, created_at=ago(minutes=5), not_before=func.now() + timedelta(seconds=9))
    aside, broken = failed(container, "set_aside"), failed(container)
    review, expert = (make_ticket(container, customer=f"W-{at}", run_status=S.WAITING_FOR_REVIEW) for at in range(2))
    shape(container, expert.run_id, status=S.WAITING_FOR_ESCALATION)
    make_ticket(container, customer="C-x", run_status=S.COMPLETED)
    expected = {
        RunList.RUNNING: [at_work],
        RunList.QUEUED: [fresh, resumed, forgotten, later],
        RunList.STALE: [lost, forgotten],
        RunList.SET_ASIDE: [aside],
        RunList.FAILED: [broken, aside],
        RunList.WAITING: [review, expert],
    }
    for shown, tickets in expected.items():
        assert listed(container, shown) == [made.run_id for made in tickets], shown
    with container.sessions() as session:
        assert run_counts(session) == {shown: len(tickets) for shown, tickets in expected.items()}


def test_what_is_dealt_with_is_not_set_aside_any_more(admin: FlaskClient, container: Container) -> None:
    done, again = failed(container, "set_aside"), failed(container, "set_aside")
    with container.transaction() as session:
        closed = update(Ticket).where(Ticket.id == done.ticket_id).values(status=TicketStatus.CLOSED)
        session.execute(closed)
    retry(admin, again.run_id)
    assert listed(container, RunList.SET_ASIDE) == []
    assert listed(container, RunList.FAILED) == [again.run_id, done.run_id]


def test_old_failures_leave_the_list(container: Container) -> None:
    made = failed(container)
    old = first_id_at(now() - timedelta(days=8))
    with container.transaction() as session:
        values = {"thread_id": made.thread_id, "ticket_id": made.ticket_id, "planner": "rule"}
        session.add(Run(id=old, status=S.FAILED, max_steps=5, timeout_ms=1000, **values))
    assert listed(container, RunList.FAILED) == [made.run_id]


def test_a_row_says_all_about_a_run(admin: FlaskClient, container: Container) -> None:
    made = running(container, owner="box-7:4711:p:c", deaths=2, cur_step=2, origin=RunOrigin.WORKER_LOST)
    with container.transaction() as session:
        step = Step(run_id=made.run_id, number=2, action_type="skill", skill="search_knowledge", input={})
        session.add(step)
    page = text_of(admin.get("/admin/runs", headers=ENGLISH))
    row = page[page.index(f'id="run-{made.run_id}"') : page.index("</tbody>")]
    for words in (
        f"#{made.number}",
        "优惠券用不了",
        "Retried after its worker died",
        "Running",
        "Search",
        "step 2 of 5",
        "box-7:4711",
        " s left",
        '<td class="r num is-bad">2</td>',
        "Run made",
        "just now",
    ):
        assert words in row, words


def test_a_failed_run_says_why_with_its_facts(admin: FlaskClient, container: Container) -> None:
    made = failed(container, "step_limit", error_message="At most %(most)s characters.", error_detail={"most": 7})
    broken = failed(container, "step_limit", error_message="At most %(most)s characters.", error_detail={})
    page = text_of(admin.get("/admin/runs?list=failed", headers=ENGLISH))
    assert "At most 7 characters." in page
    assert "At most %(most)s characters." in page, "an old row without its facts still shows"
    assert f"run-{made.run_id}" in page
    assert f"run-{broken.run_id}" in page


@pytest.mark.parametrize("headers", [ENGLISH, {"Accept-Language": "zh-CN"}], ids=["en", "zh"])
@pytest.mark.parametrize("shown", list(RunList))
def test_empty_lists_say_so_in_both_languages(admin: FlaskClient, shown: RunList, headers: dict[str, str]) -> None:
    page = text_of(admin.get(f"/admin/runs?list={shown.value}", headers=headers))
    main = page[page.index("<main") : page.index("</main>")]
    assert 'class="empty"' in main
    assert bool(re.search(r"[\u4e00-\u9fff]", main)) == (headers is not ENGLISH)
    assert "%(" not in main


def test_every_value_has_a_word() -> None:
    assert set(run_words.STATUS) == set(RunStatus)
    assert set(run_words.ORIGIN) == set(RunOrigin)
    assert set(run_words.EVENT) == set(EventType)
    assert set(run_words.LISTS) == set(RunList)


def test_strangers_words_stay_words(admin: FlaskClient, container: Container) -> None:
    made = make_ticket(container, subject=HOSTILE)
    long = make_ticket(container, subject="长" * 150, customer="C-2")
    for path in ("?list=queued", f"/{made.run_id}", f"/{long.run_id}"):
        page = text_of(admin.get(f"/admin/runs{path}"))
        assert "<img" not in page
        assert 'hx-target="#toasts">"' not in page
        assert "长" * 121 not in page


def test_workers_are_known_by_their_leases(admin: FlaskClient, container: Container) -> None:
    for at, lease_s in enumerate((9.0, 7.0)):
        running(container, owner=f"box-1:10:p:c{at}", lease_s=lease_s)
    running(container, owner="box-2:20:p:c", lease_s=-5.0)
    with container.sessions() as session:
        first, second = workers(session)
    assert (first.name, first.runs, second.name, second.runs) == ("box-1:10:p", 2, "box-2:20:p", 1)
    assert timedelta(seconds=1) <= first.renewed_ago < timedelta(seconds=10)
    assert second.renewed_ago >= timedelta(seconds=15)
    page = text_of(admin.get("/admin/runs", headers=ENGLISH))
    assert page.count('class="worker is-silent"') == 1
    assert "2 runs" in page


def test_it_asks_whether_the_schedule_runs_once_something_is_late(admin: FlaskClient, container: Container) -> None:
    def says_so() -> bool:
        return 'id="not-swept"' in text_of(admin.get("/admin/runs", headers=ENGLISH))

    lost, due, waits = running(container, lease_s=-5), failed(container), make_ticket(container)
    shape(container, due.run_id, retry_at=ago(seconds=5))
    shape(container, waits.run_id, created_at=ago(minutes=2))
    assert not says_so(), "what waits stands in the queue: workers may be busy"
    shape(container, lost.run_id, lease_until=ago(minutes=4))
    page = text_of(admin.get("/admin/runs?list=stale", headers=ENGLISH))
    assert "Nothing has been swept for 4 min: is the schedule process running?" in page
    shape(container, lost.run_id, lease_until=func.now() + timedelta(minutes=1))
    assert not says_so()
    shape(container, due.run_id, retry_at=ago(minutes=1))
    assert says_so()
    shape(container, due.run_id, retry_at=None)
    container.redis.flushall()
    assert says_so(), "nobody has put what waits into a queue again"


def test_statements_do_not_grow_with_the_runs(admin: FlaskClient, container: Container) -> None:
    numbers = []
    for total in (10, 200):
        for at in range(total):
            make_ticket(container, customer=f"C-{total}-{at}")
        with counted(container.engine) as statements:
            page = text_of(admin.get("/admin/runs?list=queued"))
        numbers.append(len(statements))
        assert page.count("data-row") == min(50, total)
    assert numbers[0] == numbers[1]


def test_one_statement_reads_a_list_and_one_counts_them(container: Container) -> None:
    failed(container)
    for read in (run_counts, workers, lambda session: run_list(session, RunList.FAILED)):
        with counted(container.engine) as statements, container.sessions() as session:
            read(session)
        assert len(statements) == 1


def test_paging_meets_every_run_once(admin: FlaskClient, container: Container) -> None:
    made = [failed(container).run_id for _ in range(7)]
    queued = [make_ticket(container, customer=f"C-{at}").run_id for at in range(7)]
    for shown, expected in ((RunList.FAILED, made[::-1]), (RunList.QUEUED, queued)):
        met: list[UUID] = []
        after = None
        with container.sessions() as session:
            while True:
                page = run_list(session, shown, after, limit=3)
                met += [run.id for run in page.runs]
                after = page.after
                if after is None:
                    break
        assert met == expected


def test_the_page_leads_on_and_back(admin: FlaskClient, container: Container) -> None:
    for at in range(51):
        make_ticket(container, customer=f"C-{at}")
    first = text_of(admin.get("/admin/runs?list=queued"))
    onward = re.search(r'rel="next" href="([^"]+)"', first)
    assert onward
    last = text_of(admin.get(onward.group(1).replace("&amp;", "&")))
    assert last.count("data-row") == 1
    assert 'rel="next"' not in last
    assert 'id="page-first"' in last
    assert 'hx-get="/admin/runs/board?list=queued&amp;after=' in last, "it follows the page that it is on"
    beyond = text_of(admin.get(f"/admin/runs?list=queued&after={new_id()}", headers=ENGLISH))
    assert "There are no further runs." in beyond
    assert text_of(admin.get("/admin/runs?list=nonsense&after=nonsense"))


def test_runs_that_are_over_are_not_looked_at(container: Container) -> None:
    """However many there are, lists and counts read by their indexes what they show."""
    for at in range(3):
        make_ticket(container, customer=f"a-{at}")
        running(container)
        failed(container, "set_aside" if at % 2 else "worker_lost")
        make_ticket(container, customer=f"c-{at}", run_status=S.WAITING_FOR_REVIEW)
    over = {"status": S.COMPLETED, "planner": "rule", "max_steps": 5, "timeout_ms": 1000}
    with container.transaction() as session:
        session.execute(text("SET LOCAL session_replication_role = replica"))  # they need no tickets to be counted
        session.execute(
            insert(Run), [{"id": new_id(), "thread_id": new_id(), "ticket_id": new_id(), **over} for _ in range(3000)]
        )
        session.execute(text("ANALYZE runs"))
    for shown in RunList:
        assert rows_read(container, "runs", lambda session, shown=shown: run_list(session, shown)) < 100, shown
    assert rows_read(container, "runs", run_counts) < 100
    assert rows_read(container, "runs", lambda session: overlooked_for(session, lambda _: True)) < 100


def test_runs_are_counted_up_to_a_limit(container: Container, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(admin_lists, "COUNTED_MOST", 3)
    for at in range(9):
        make_ticket(container, customer=f"C-{at}")
        make_ticket(container, customer=f"D-{at}", run_status=S.COMPLETED)
    with container.sessions() as session:
        assert run_counts(session)[RunList.QUEUED] == 4


def test_many_are_said_as_many(app: Flask) -> None:
    with app.test_request_context():
        assert (run_words.amount(999), run_words.amount(1000)) == ("999", "999+")
