"""What a stream sends for the list of a page, and that pages which show the same list share the work."""

import re
from collections.abc import Iterator

import pytest
from flask import Flask
from flask_babel import force_locale

from app.bootstrap import Container
from app.review.inbox import inbox_page
from app.review.inbox_filter import InboxFilter
from app.review.inbox_state import Status
from app.runs.models import RunStatus
from app.web.shared_lists import EVERY_S, InboxRegions, SharedLists
from tests.factories import MadeTicket, make_ticket
from tests.web.test_inbox import counted, run_is

ALL = InboxFilter()


class Clock:
    """A clock that a test turns."""

    now = 100.0

    def __call__(self) -> float:
        return self.now

    def turn(self, seconds: float) -> float:
        self.now += seconds
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def lists(app: Flask, container: Container, clock: Clock) -> Iterator[SharedLists]:
    with app.test_request_context():
        yield SharedLists(container.sessions, clock)


def page_of(lists: SharedLists, clock: Clock, shown: InboxFilter = ALL, **known: object) -> InboxRegions:
    """Return the regions of a page that has caught up."""
    regions = InboxRegions(lists, shown, **known)  # type: ignore[arg-type]
    regions.note(clock.turn(EVERY_S))
    regions.news()
    return regions


def changed(regions: InboxRegions, clock: Clock, *tickets: MadeTicket) -> str:
    """Return what is sent when these tickets have changed and the time for a reading has come."""
    regions.note(clock.turn(EVERY_S), {made.ticket_id for made in tickets})
    return regions.news()


def test_a_page_that_is_up_to_date_gets_nothing(container: Container, lists: SharedLists, clock: Clock) -> None:
    make_ticket(container)
    with container.sessions() as session:
        digest = inbox_page(session, ALL).digest
    for seen, sent in ((digest, False), ("older", True)):
        regions = InboxRegions(lists, ALL, seen=seen)
        regions.note(clock())
        assert ('hx-target="#inbox-list"' in regions.news()) == sent
        regions.note(clock.turn(EVERY_S))
        assert regions.news() == ""


def test_a_row_that_stays_is_swapped_in_place(container: Container, lists: SharedLists, clock: Clock) -> None:
    made, other = make_ticket(container), make_ticket(container)
    regions = page_of(lists, clock)
    run_is(container, made, RunStatus.RUNNING, skill="draft_reply")
    sent = changed(regions, clock, made)
    assert f'hx-target="#ticket-row-{made.ticket_id}"' in sent
    assert "#inbox-list" not in sent
    assert str(other.ticket_id) not in sent
    assert 'hx-target="#rail-views"' in sent


@pytest.mark.parametrize("change", ["moves", "enters", "leaves"])
def test_the_whole_list_is_sent_when_a_ticket(
    container: Container, lists: SharedLists, clock: Clock, change: str
) -> None:
    made = make_ticket(container)
    regions = page_of(lists, clock, InboxFilter(statuses=(Status.RUNNING, Status.REVIEW)))
    if change == "moves":
        run_is(container, made, RunStatus.WAITING_FOR_REVIEW)
    elif change == "enters":
        made = make_ticket(container)
    else:
        run_is(container, made, RunStatus.FAILED)
    sent = changed(regions, clock, made)
    assert 'hx-target="#inbox-list"' in sent
    listed = sent[: sent.index("</hx-partial>")]
    assert (f"ticket-row-{made.ticket_id}" in listed) == (change != "leaves")
    # for a page that holds its list back, or has the ticket open: its row says what is now
    assert (f'hx-target="#ticket-row-{made.ticket_id}"' in sent) == (change == "leaves")


def test_a_row_beyond_the_first_stretch_is_sent_too(container: Container, lists: SharedLists, clock: Clock) -> None:
    made = [make_ticket(container, customer=f"C-{at}") for at in range(52)]
    regions = page_of(lists, clock)
    sent = changed(regions, clock, made[0], made[51])
    assert [f'hx-target="#ticket-row-{ticket.ticket_id}"' in sent for ticket in (made[0], made[51], made[1])] == [
        True,
        True,
        False,
    ]


def test_many_pages_cost_one_reading(container: Container, lists: SharedLists, clock: Clock) -> None:
    made = [make_ticket(container, customer=f"C-{at}") for at in range(52)]
    pages = [page_of(lists, clock, selected=made[at % 2].ticket_id) for at in range(20)]
    moment = clock.turn(EVERY_S)
    with counted(container.engine) as statements:
        for page in pages:
            page.note(moment, {made[0].ticket_id, made[51].ticket_id})
            sent = page.news()
            assert f"#ticket-row-{made[0].ticket_id}" in sent
            assert f"#ticket-row-{made[51].ticket_id}" in sent
    assert len(statements) == 3  # the stretch, the counts, and the row beyond


def test_a_burst_is_read_twice_a_second_and_nothing_of_it_is_lost(
    container: Container, lists: SharedLists, clock: Clock
) -> None:
    first, second = make_ticket(container), make_ticket(container)
    regions = page_of(lists, clock)
    with counted(container.engine) as statements:
        for made in (first, second):
            regions.note(clock.turn(EVERY_S / 5), {made.ticket_id})
            assert regions.news() == ""
    assert statements == []
    assert regions.due_in == pytest.approx(EVERY_S * 3 / 5)
    clock.turn(regions.due_in)
    sent = regions.news()
    assert str(first.ticket_id) in sent
    assert str(second.ticket_id) in sent
    assert regions.due_in is None


def test_hints_that_wait_beside_a_reread_are_not_forgotten(
    container: Container, lists: SharedLists, clock: Clock
) -> None:
    made = make_ticket(container)
    regions = page_of(lists, clock)
    regions.note(clock.turn(EVERY_S / 5))
    regions.note(clock(), {made.ticket_id})
    clock.turn(EVERY_S)
    assert f'hx-target="#ticket-row-{made.ticket_id}"' in regions.news()


def test_a_page_that_always_hears_too_late_is_brought_on_all_the_same(
    container: Container, lists: SharedLists, clock: Clock
) -> None:
    """Events without a pause: each reading is older than the page's last hint, and still newer than what it shows."""
    made = make_ticket(container)
    early, late = page_of(lists, clock), page_of(lists, clock)
    run_is(container, made, RunStatus.RUNNING, skill="draft_reply")
    early.note(clock.turn(EVERY_S), {made.ticket_id})
    assert early.news()
    late.note(clock.turn(0.01), {made.ticket_id})
    assert str(made.ticket_id) in late.news()
    assert late.news() == ""
    assert late.due_in is not None  # the hint was newer than the reading: the next one is awaited
    clock.turn(EVERY_S)
    assert str(made.ticket_id) in late.news()
    assert late.due_in is None


def test_a_page_is_not_sent_back_to_an_older_reading(container: Container, lists: SharedLists, clock: Clock) -> None:
    page_of(lists, clock)
    make_ticket(container)
    late = InboxRegions(lists, ALL, seen="newer than the reading")
    late.note(clock.turn(0.01))
    assert late.news() == ""
    clock.turn(EVERY_S)
    assert 'hx-target="#inbox-list"' in late.news()


def test_each_page_has_its_own_row_marked_and_its_own_language(
    container: Container, lists: SharedLists, clock: Clock
) -> None:
    made, other = make_ticket(container), make_ticket(container)
    for selected in (made, other):
        regions = InboxRegions(lists, ALL, selected=selected.ticket_id)
        regions.note(clock.turn(EVERY_S))
        marked = re.findall(r'id="ticket-row-([\w-]+)" aria-current="true"', regions.news())
        assert marked == [str(selected.ticket_id)]
    for locale, words in (("en", "In the queue"), ("zh", "排队中")):
        with force_locale(locale):
            regions = InboxRegions(lists, ALL)
            regions.note(clock())
            assert words in regions.news()
