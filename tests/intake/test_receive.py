"""A ticket is taken in once a key, whole or not at all, however many ask at the same time."""

from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from datetime import UTC, datetime
from threading import Barrier

import pytest
from redis import RedisError
from rq import Queue
from sqlalchemy import func, select, text

from app.bootstrap import Container
from app.db.base import Base
from app.db.signals import JobName
from app.intake.fields import parse_new_ticket
from app.intake.keys import KeyReused
from app.intake.models import IntakeKey
from app.intake.service import Received, receive_ticket
from app.live.job_queue import RUNS
from app.live.publisher import thread_stream
from app.runs.models import Event, Run
from app.tickets.models import Customer, Thread, Ticket, TicketMessage


def receive(container: Container, key: str = "key-0001", source: str = "web", **changes: str) -> Received:
    fields = {"customer_id": "C-1", "subject": "退款", "content": "几天到账？", **changes}
    with container.transaction() as session:
        return receive_ticket(session, source=source, key=key, new=parse_new_ticket(fields), plan=container.run_plan())


def count(container: Container, model: type[Base]) -> int:
    with container.transaction() as session:
        return session.scalars(select(func.count()).select_from(model)).one()


def queued(container: Container) -> list[tuple[str, str]]:
    return [(job.func_name, job.args[0]) for job in Queue(RUNS, connection=container.redis).jobs]


def at_once(calls: list[Callable[[], Received]]) -> list[Future[Received]]:
    start = Barrier(len(calls))

    def run(call: Callable[[], Received]) -> Received:
        start.wait(timeout=10)
        return call()

    with ThreadPoolExecutor(len(calls)) as pool:
        return [pool.submit(run, call) for call in calls]


def test_everything_is_there_after_one_call(container: Container) -> None:
    received = receive(container, customer_name="陈雨桐", channel="app")
    assert received.created
    with container.transaction() as session:
        ticket = session.get_one(Ticket, received.ticket_id)
        assert (ticket.number, ticket.channel, ticket.status) == (received.number, "app", "pending")
        assert session.get_one(Customer, ticket.customer_id).name == "陈雨桐"
        message = session.scalars(select(TicketMessage)).one()
        assert (message.number, message.kind, message.body) == (1, "customer", "几天到账？")
        assert ticket.last_customer_message_id == message.id
        thread = session.scalars(select(Thread)).one()
        run = session.get_one(Run, received.run_id)
        assert (run.status, run.last_customer_message_id) == ("created", message.id)
        event = session.scalars(select(Event)).one()
        assert (event.type, event.seq, event.run_id, thread.last_seq) == ("run_created", 1, run.id, 1)
    assert container.redis.xlen(thread_stream(thread.id)) == 1
    assert queued(container) == [(JobName.EXECUTE_RUN.value, str(received.run_id))]


def test_the_same_request_again_gets_the_same_ticket(container: Container) -> None:
    first = receive(container)
    again = receive(container, subject=" 退款 ")
    assert (again.ticket_id, again.number, again.run_id, again.created) == (
        first.ticket_id,
        first.number,
        first.run_id,
        False,
    )
    assert count(container, Ticket) == 1


def test_the_same_key_with_another_body_is_refused(container: Container) -> None:
    receive(container)
    with pytest.raises(KeyReused):
        receive(container, content="换个问题")
    assert count(container, Ticket) == 1


def test_keys_of_different_sources_never_meet(container: Container) -> None:
    first = receive(container, source="shop")
    other = receive(container, source="crm", content="换个问题")
    assert other.created
    assert other.ticket_id != first.ticket_id


def test_identical_requests_at_once_make_one_ticket(container: Container) -> None:
    results = [future.result() for future in at_once([lambda: receive(container)] * 8)]
    assert sorted(result.created for result in results) == [False] * 7 + [True]
    assert len({(result.ticket_id, result.run_id) for result in results}) == 1
    for model in (Ticket, TicketMessage, Customer, Thread, Run, Event, IntakeKey):
        assert count(container, model) == 1


def test_different_bodies_at_once_make_one_ticket(container: Container) -> None:
    futures = at_once([lambda n=n: receive(container, content=f"问题{n}") for n in range(4)])
    errors = [future.exception() for future in futures]
    assert sum(error is None for error in errors) == 1
    assert sum(isinstance(error, KeyReused) for error in errors) == 3
    assert count(container, Ticket) == 1


def test_a_request_waits_for_a_racing_one_that_fails(container: Container) -> None:
    with ThreadPoolExecutor(1) as pool:
        with container.sessions() as first:
            new = parse_new_ticket({"customer_id": "C-1", "subject": "退款", "content": "几天到账？"})
            receive_ticket(first, source="web", key="key-0001", new=new, plan=container.run_plan())
            second = pool.submit(receive, container)
            wait_for_lock(container)
            first.rollback()
        assert second.result(timeout=10).created
    assert count(container, Ticket) == 1


def wait_for_lock(container: Container) -> None:
    for _ in range(2000):
        with container.engine.connect() as connection:
            if connection.scalar(text("SELECT count(*) FROM pg_locks WHERE NOT granted")):
                return
            connection.execute(text("SELECT pg_sleep(0.005)"))
    raise AssertionError("nobody waits for a lock")


def test_a_name_given_later_fills_and_changes_it(container: Container) -> None:
    names = []
    for number, name in enumerate(["", "陈雨桐", "", "陈雨彤"]):
        receive(container, key=f"key-000{number}", customer_name=name)
        with container.transaction() as session:
            names.append(session.scalars(select(Customer.name)).one())
    assert names == ["", "陈雨桐", "陈雨桐", "陈雨彤"]


def test_the_time_of_writing_can_be_given(container: Container) -> None:
    at = datetime(2026, 11, 1, 8, 30, tzinfo=UTC)
    new = parse_new_ticket({"customer_id": "C-1", "subject": "退款", "content": "几天到账？"})
    with container.transaction() as session:
        received = receive_ticket(session, source="web", key="key-0001", new=new, plan=container.run_plan(), at=at)
    with container.transaction() as session:
        ticket = session.get_one(Ticket, received.ticket_id)
        assert ticket.last_customer_message_at == ticket.created_at == at
        assert session.scalars(select(TicketMessage.created_at)).one() == at


def test_a_signal_that_is_lost_loses_nothing(container: Container) -> None:
    container.redis.connection_pool.connection_kwargs["path"] = "/nowhere"
    container.redis.connection_pool.disconnect()
    with pytest.raises(RedisError):
        container.redis.ping()
    received = receive(container)
    with container.transaction() as session:
        assert session.get_one(Run, received.run_id).status == "created"
