"""The hub hears everything once, drops nobody, and says so when it may have missed something."""

import threading

import orjson

from app.bootstrap import Container
from app.clock import monotonic
from app.ids import new_id
from app.live.hub import QUEUE_LIMIT, Batch, DraftFrame, Hub, Subscription, TicketHint
from app.live.publisher import draft_channel
from tests.factories import make_ticket
from tests.live.conftest import Happen

LIMIT_S = 10.0


def first_where(subscription: Subscription, wanted: object) -> Batch:
    """Take until a batch has `wanted` in one of its places."""
    end = monotonic() + LIMIT_S
    while monotonic() < end:
        batch = subscription.take(0.5)
        if wanted in (batch.draft, batch.reread, *batch.hints, *batch.docs):
            return batch
    raise AssertionError(f"{wanted} did not arrive")


def settle(hub: Hub, *subscriptions: Subscription) -> None:
    """Wait until the hub reads, and take the reread that it starts with."""
    assert hub.wait_until_ready(LIMIT_S)
    for subscription in subscriptions:
        subscription.take(0)


def test_every_page_hears_of_every_ticket(container: Container, hub: Hub, happen: Happen) -> None:
    ticket, other = make_ticket(container), make_ticket(container, customer="C-2")
    with hub.subscribe(ticket.thread_id) as mine, hub.subscribe(None) as inbox:
        settle(hub, mine, inbox)
        happen(other)
        hint = TicketHint(other.thread_id, other.ticket_id, 2, "ticket_changed")
        for page in (mine, inbox):
            assert first_where(page, hint).hints == (hint,)


def test_a_page_gets_the_newest_draft_of_its_own_thread_only(container: Container, hub: Hub) -> None:
    thread_id, run_id = new_id(), new_id()
    with hub.subscribe(thread_id) as mine, hub.subscribe(new_id()) as other:
        settle(hub, mine, other)
        for text in ("您", "您好", "您好，"):
            container.redis.publish(draft_channel(thread_id), orjson.dumps({"run": str(run_id), "text": text}))
        assert first_where(mine, DraftFrame(run_id, "您好，"))
        assert other.take(0) == Batch()


def test_a_message_that_is_no_draft_is_passed_over(container: Container, hub: Hub) -> None:
    thread_id, run_id = new_id(), new_id()
    with hub.subscribe(thread_id) as mine:
        settle(hub, mine)
        for junk in (b"", b"[]", b'{"run": 1, "text": "x"}', b"\xff"):
            container.redis.publish(draft_channel(thread_id), junk)
        container.redis.xadd("feed", {"thread": "not an id"})
        container.redis.publish(draft_channel(thread_id), orjson.dumps({"run": str(run_id), "text": "ok"}))
        assert first_where(mine, DraftFrame(run_id, "ok"))


def test_a_page_that_is_too_far_behind_is_told_to_read_again() -> None:
    subscription = Subscription(None)
    for seq in range(QUEUE_LIMIT + 1):
        subscription.add_hint(TicketHint(new_id(), new_id(), seq, "ticket_changed"))
    batch = subscription.take(0)
    assert batch.reread
    assert len(batch.hints) <= QUEUE_LIMIT
    assert subscription.take(0) == Batch()


def test_while_a_page_waits_for_its_list_only_its_own_thread_wakes_it() -> None:
    page, taken = Subscription(new_id()), list[Batch]()
    assert page.thread_id is not None
    elsewhere, mine = TicketHint(new_id(), new_id(), 1, "x"), TicketHint(page.thread_id, new_id(), 1, "x")
    page.add_hint(elsewhere)
    waiting = threading.Thread(target=lambda: taken.append(page.take(LIMIT_S, for_others=False)), daemon=True)
    waiting.start()
    waiting.join(0.2)
    assert waiting.is_alive()
    page.add_hint(mine)
    waiting.join(LIMIT_S)
    assert [batch.hints for batch in taken] == [(elsewhere, mine)]


def test_a_changed_document_reaches_every_page(container: Container, hub: Hub) -> None:
    doc_id = new_id()
    with hub.subscribe(None) as page:
        settle(hub, page)
        container.publisher.docs_changed([doc_id])
        assert first_where(page, doc_id).docs == {doc_id}


def test_a_lost_connection_heals_and_says_so(container: Container, hub: Hub, happen: Happen) -> None:
    ticket = make_ticket(container)
    with hub.subscribe(ticket.thread_id) as page:
        settle(hub, page)
        for kind in ("normal", "pubsub"):
            container.redis.client_kill_filter(_type=kind, skipme=True)
        first_where(page, True)
        assert hub.wait_until_ready(LIMIT_S)
        happen(ticket)
        first_where(page, TicketHint(ticket.thread_id, ticket.ticket_id, 2, "ticket_changed"))


def test_a_closed_page_is_forgotten(hub: Hub) -> None:
    with hub.subscribe(None) as page:
        settle(hub, page)
    assert not hub._open()


def test_without_redis_the_hub_says_that_it_hears_nothing(tmp_path: object) -> None:
    deaf = Hub(f"unix://{tmp_path}/nobody.sock")
    with deaf.subscribe(None):
        assert not deaf.wait_until_ready(0.2)
        assert not deaf.connected
    deaf.close()
