"""What an administrator does on the operations page, what opens beneath a run, and what is said while Redis is away."""

import re
from pathlib import Path

import pytest
from flask.testing import FlaskClient
from sqlalchemy import func, select

from app.bootstrap import Container, build_container
from app.httpkit.container import EXTENSION
from app.ids import new_id
from app.runs.admin_lists import RunList
from app.runs.events import NewEvent, append_events, lock_thread
from app.runs.models import EventType, RunOrigin, RunStatus, Step
from app.settings import Settings
from app.staff.models import AuditEntry, Role
from tests.conftest import Login
from tests.factories import make_staff, make_ticket
from tests.runs.looking import events_of, run_of, ticket_of
from tests.web.admin_runs import act, ago, failed, listed, retry, running, seen_now, shape, sweep
from tests.web.pages import ENGLISH, HTMX, send, text_of

S = RunStatus


@pytest.fixture
def admin(login: Login) -> FlaskClient:
    return login("root", Role.ADMIN)


def test_a_failed_run_is_retried_once_however_often_one_clicks(admin: FlaskClient, container: Container) -> None:
    made = failed(container, deaths=1)
    seen = seen_now(admin, made.run_id)
    first = retry(admin, made.run_id, seen=seen)
    again = retry(admin, made.run_id, seen=seen)
    for body in (first, again):
        assert f'hx-target="#run-{made.run_id}"' in body
        assert "已有另一次运行接替" in body
        assert "/retry" not in body
    (new,) = listed(container, RunList.QUEUED)
    run = run_of(container, new)
    assert (run.retry_from, run.origin, run.deaths, run.hint) == (made.run_id, RunOrigin.RETRY, 1, None)
    assert container.redis.llen("rq:queue:runs") >= 1


def test_a_run_that_another_retried_says_by_whom_and_when(
    login: Login, admin: FlaskClient, container: Container
) -> None:
    made = failed(container)
    seen = seen_now(admin, made.run_id)
    retry(login("ann", Role.ADMIN), made.run_id)
    refused = retry(admin, made.run_id, 409, seen=seen)
    assert re.search(r"ann在\d\d:\d\d重新开始了，这份草稿已经过期", refused)
    assert f'hx-target="#run-{made.run_id}"' in refused
    assert len(listed(container, RunList.QUEUED)) == 1


def test_a_run_is_stopped_once_and_shows_it(login: Login, admin: FlaskClient, container: Container) -> None:
    made = running(container)
    for _ in range(2):
        body = act(admin, made.run_id, "stop")
        assert "已停止" in body
        assert 'data-status="cancelled"' in body
    assert [event.type for event in events_of(container, made.thread_id)].count(EventType.RUN_CANCELLED) == 1
    refused = act(login("ann", Role.ADMIN), made.run_id, "stop", 409)
    assert re.search(r"root在\d\d:\d\d停止了这份草稿", refused)


def test_a_run_is_taken_out_once_and_goes_to_a_person(login: Login, admin: FlaskClient, container: Container) -> None:
    made = running(container)
    for _ in range(2):
        assert "已搁置" in act(admin, made.run_id, "take-out")
    assert [event.type for event in events_of(container, made.thread_id)].count(EventType.RUN_FAILED) == 1
    assert listed(container, RunList.SET_ASIDE) == [made.run_id]
    assert ticket_of(container, made.ticket_id).escalated_at is not None
    refused = act(login("ann", Role.ADMIN), made.run_id, "take-out", 409)
    assert re.search(r"root在\d\d:\d\d搁置了这份草稿", refused)
    assert 'role="alert"' in refused


def test_what_ended_by_itself_is_refused_with_what_it_is(admin: FlaskClient, container: Container) -> None:
    made = make_ticket(container, run_status=S.COMPLETED)
    for action in ("stop", "take-out"):
        assert re.search(r"这张工单的回复已在\d\d:\d\d获得批准", act(admin, made.run_id, action, 409))


def test_a_run_is_not_retried_that_has_moved_since_the_page_showed_it(
    login: Login, admin: FlaskClient, container: Container
) -> None:
    made = running(container, lease_s=-3)
    stuck = seen_now(admin, made.run_id)

    shape(container, made.run_id, lease_until=ago(seconds=-8))
    assert re.search(r"自\d\d:\d\d起正在起草", retry(admin, made.run_id, 409, seen=stuck)), "its worker is back"
    shape(container, made.run_id, lease_until=ago(seconds=3), fence=2)
    assert "正在起草" in retry(admin, made.run_id, 409, seen=stuck), "another worker had it meanwhile"
    act(login("ann", Role.ADMIN), made.run_id, "stop")
    assert re.search(r"ann在\d\d:\d\d停止了这份草稿", retry(admin, made.run_id, 409, seen=stuck))
    assert run_of(container, made.run_id).status == S.CANCELLED
    assert listed(container, RunList.QUEUED) == []

    retry(admin, made.run_id)
    assert len(listed(container, RunList.QUEUED)) == 1


def test_a_retry_that_does_not_say_what_was_seen_is_refused(admin: FlaskClient, container: Container) -> None:
    made = failed(container)
    act(admin, made.run_id, "retry", 422)
    act(admin, made.run_id, "retry", 422, seen_status="failed", seen_fence="x")
    assert listed(container, RunList.QUEUED) == []


def test_a_run_whose_ticket_is_done_is_not_retried(login: Login, admin: FlaskClient, container: Container) -> None:
    made = failed(container)
    shown = seen_now(admin, made.run_id)
    seen = {"seen_status": "pending", "seen_message": ticket_of(container, made.ticket_id).last_customer_message_id}
    text_of(send(login("ann"), f"/tickets/{made.number}/status", htmx=True, status="closed", **seen))
    refused = retry(admin, made.run_id, 409, seen=shown)
    assert re.search(r"ann.*关闭", refused)
    assert f'hx-target="#run-{made.run_id}"' in refused
    assert listed(container, RunList.QUEUED) == []


def test_a_run_that_does_not_exist_is_not_found(admin: FlaskClient) -> None:
    for action in ("stop", "take-out"):
        act(admin, new_id(), action, 404)
    retry(admin, new_id(), 404, seen={"seen_status": "failed", "seen_fence": "0"})
    text_of(admin.get(f"/admin/runs/{new_id()}"), 404)
    text_of(admin.get("/admin/runs/nonsense"), 404)


def test_only_actions_that_help_are_offered(admin: FlaskClient, container: Container) -> None:
    offered = {
        running(container).run_id: {"stop", "take-out"},
        running(container, lease_s=-3).run_id: {"retry", "stop", "take-out"},
        failed(container).run_id: {"retry"},
        make_ticket(container, customer="C-1", run_status=S.WAITING_FOR_REVIEW).run_id: {"stop"},
        make_ticket(container, customer="C-2", run_status=S.CANCELLED).run_id: {"retry"},
        make_ticket(container, customer="C-3", run_status=S.COMPLETED).run_id: set(),
    }
    for run_id, actions in offered.items():
        page = text_of(admin.get(f"/admin/runs/{run_id}/row"))
        assert set(re.findall(r'hx-post="/admin/runs/[^"]+/([\w-]+)"', page)) == actions
        assert page.count("data-confirm-title") == len(actions)


def test_a_sweep_does_what_the_schedule_does(admin: FlaskClient, container: Container) -> None:
    lost, forgotten = running(container, lease_s=-3), make_ticket(container, customer="C-2")
    shape(container, forgotten.run_id, created_at=ago(minutes=1))
    container.redis.flushall()
    assert "已结束：1，已重试：0，已启动：1" in sweep(admin)
    assert run_of(container, lost.run_id).error_code == "worker_lost"
    assert container.redis.llen("rq:queue:runs") == 1
    assert "已结束：0，已重试：0，已启动：0" in sweep(admin)
    with container.transaction() as session:
        swept = session.scalars(select(AuditEntry).where(AuditEntry.action == "runs_swept").order_by(AuditEntry.id))
        assert [(entry.staff_id, entry.detail) for entry in swept] == [
            (make_staff(container, "root"), {"ended": ended, "retried": 0}) for ended in (1, 0)
        ]


def test_a_row_opens_for_htmx_and_has_a_page_of_its_own(admin: FlaskClient, container: Container) -> None:
    made = running(container)
    address = f"/admin/runs/{made.run_id}"
    row = text_of(admin.get(address, headers=HTMX | ENGLISH))
    assert row.lstrip().startswith(f'<tbody class="run" id="run-{made.run_id}"')
    assert 'aria-expanded="true"' in row
    page = text_of(admin.get(address, headers=ENGLISH))
    assert "<html" in page
    for body in (row, page):
        assert "Run made" in body
        assert "No step has begun." in body
        assert "It was made because a ticket came in." in body
        assert "Worker box:42 has it." in body
        assert str(made.run_id) in body
    closed = text_of(admin.get(f"{address}/row", headers=HTMX | ENGLISH))
    assert "No step has begun." not in closed
    assert 'aria-expanded="false"' in closed


def test_rows_that_are_open_or_were_acted_on_stay_on_the_page(admin: FlaskClient, container: Container) -> None:
    opened, held, other = (running(container) for _ in range(3))
    for made in (opened, held, other):
        act(admin, made.run_id, "stop", **({"open": made.run_id} if made is opened else {}))
    body = text_of(admin.get(f"/admin/runs/board?open={opened.run_id}&held={held.run_id}&open=nonsense", headers=HTMX))
    assert f'name="open" value="{opened.run_id}"' in body
    assert f'name="held" value="{held.run_id}"' in body
    assert str(other.run_id) not in body
    assert body.count('aria-expanded="true"') == 1


def test_the_facts_of_an_event_name_people(admin: FlaskClient, container: Container) -> None:
    made = running(container)
    act(admin, made.run_id, "stop")
    opened = text_of(admin.get(f"/admin/runs/{made.run_id}", headers=HTMX))
    assert re.search(r"运行停止 <span class=\"quiet\">root</span>", opened)


@pytest.mark.parametrize("headers", [ENGLISH, {"Accept-Language": "zh-CN"}], ids=["en", "zh"])
def test_what_opens_is_in_words(admin: FlaskClient, container: Container, headers: dict[str, str]) -> None:
    made, artifact = running(container), str(new_id())
    found = {"found": 4, "outcome": "weak", "titles": ["退款规则"], "keyword_only": True}
    happened = [
        (EventType.STEP_STARTED, {"step": 1, "skill": "classify_ticket"}),
        (
            EventType.STEP_COMPLETED,
            {"step": 1, "skill": "plan", "facts": {"category": "refund", "priority": "normal", "confidence": 0.93}},
        ),
        (EventType.STEP_COMPLETED, {"step": 2, "skill": "search_knowledge", "facts": found}),
        (EventType.STEP_FAILED, {"step": 3, "skill": "draft_reply", "error": "draft_too_long"}),
        (EventType.DRAFT_READY, {"artifact_id": artifact}),
        (EventType.RUN_FAILED, {"code": "worker_lost", "retry": True, "deaths": 1, "reason": "policy"}),
        (EventType.RUN_CANCELLED, {"token": "shop-backend"}),
    ]
    with container.transaction() as session:
        events = [NewEvent(type_, made.run_id, facts) for type_, facts in happened]
        append_events(session, lock_thread(session, made.ticket_id), events)
        for number, code in enumerate((None, "failed", "worker_lost", "cancelled", "draft_too_long"), 1):
            step = Step(run_id=made.run_id, number=number, action_type="skill", skill="draft_reply", input={})
            step.error_code, step.ended_at = code, func.now()
            session.add(step)
    page = text_of(admin.get(f"/admin/runs/{made.run_id}", headers=HTMX | headers))
    listed_events = page[page.index("run-steps") :]
    words = ("Refund · Normal · 93% sure", "4 passages · ", " · by words only · 退款规则", "too long", "shop-backend")
    chinese = ("退款 · 普通 · 把握93%", "4条内容 · ", " · 仅按关键词 · 退款规则", "太长", "shop-backend")
    for said in words if headers is ENGLISH else chinese:
        assert said in listed_events, said
    assert artifact not in page
    assert [stops for stops in ("..", "。。") if stops in page] == []
    codes = ("{", "worker_lost", "policy", "True", "classify_ticket", ">failed<", "draft_too_long", "retry:")
    assert [code for code in codes if code in listed_events] == []


def test_the_way_back_leads_to_the_list_one_came_from(admin: FlaskClient, container: Container) -> None:
    made = failed(container)
    page = text_of(admin.get("/admin/runs?list=failed"))
    address = f"/admin/runs/{made.run_id}?list=failed"
    assert f'href="{address}"' in page
    assert 'href="/admin/runs?list=failed" aria-label' in text_of(admin.get(address))
    assert 'href="/admin/runs" aria-label' in text_of(admin.get(f"/admin/runs/{made.run_id}?list=nonsense"))


def test_it_says_that_redis_is_away_and_goes_on(settings: Settings, login: Login, var_dir: Path) -> None:
    away = build_container(settings.model_copy(update={"redis_url": f"unix://{var_dir}/nobody.sock?db=0"}))
    client = login("root", Role.ADMIN)
    client.application.extensions[EXTENSION] = away
    try:
        made = running(away)
        page = text_of(client.get("/admin/runs"))
        assert "Redis没有应答" in page
        assert "已停止" in act(client, made.run_id, "stop")
        shape(away, make_ticket(away, customer="C-2").run_id, created_at=ago(minutes=1))
        assert "没有启动任何运行" in sweep(client)
    finally:
        away.engine.dispose()
