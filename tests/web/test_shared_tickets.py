"""What a stream sends for the ticket of a page, and that pages which show the same ticket share the work."""

from collections.abc import Iterator
from uuid import UUID

import pytest
from flask import Flask
from flask_babel import force_locale
from flask_login import login_user

from app.bootstrap import Container
from app.db.signals import EventFact
from app.httpkit.auth import StaffUser
from app.ids import new_id
from app.review.service import escalate, save_composer
from app.runs.events import events_after
from app.runs.models import EventType
from app.staff.models import Role
from app.web.shared_tickets import KEPT_S, SharedTickets, TicketRegions
from tests.factories import make_staff
from tests.live.conftest import Happen, happen
from tests.review.factories import Desk, make_desk
from tests.web.test_inbox import counted
from tests.web.test_shared_lists import Clock, clock

__all__ = ["clock", "happen"]

ALONE = "一个人自己的话"


@pytest.fixture
def desk(container: Container) -> Desk:
    return make_desk(container)


@pytest.fixture
def tickets(app: Flask, container: Container, clock: Clock, desk: Desk) -> Iterator[SharedTickets]:
    with app.test_request_context():
        sign_in(desk.staff_id)
        yield SharedTickets(container.sessions, clock)


def sign_in(staff_id: UUID) -> None:
    login_user(StaffUser(staff_id, "agent", "agent", Role.AGENT, None, new_id()))


def events_of(container: Container, desk: Desk) -> list[EventFact]:
    with container.sessions() as session:
        return events_after(session, desk.thread_id, 0)


def sent(container: Container, regions: TicketRegions, desk: Desk) -> set[str]:
    """Return the regions that a page is sent for all events of its ticket."""
    markup = regions.news(events_of(container, desk))
    return {part.split('"')[0] for part in markup.split('hx-target="#')[1:]}


def test_pages_that_show_the_same_ticket_share_its_reading(
    container: Container, tickets: SharedTickets, desk: Desk, happen: Happen
) -> None:
    happen(desk)
    events = events_of(container, desk)
    statements = []
    for _ in range(3):
        with counted(container.engine) as noted:
            TicketRegions(tickets, desk.number, desk.staff_id).news(events)
        statements.append(len(noted))
    assert statements[1:] == [1, 1]  # what the person has typed
    assert statements[0] > 1


def test_nobody_sees_the_unsent_words_of_another(
    container: Container, tickets: SharedTickets, desk: Desk, happen: Happen
) -> None:
    other = make_staff(container, "other")
    with container.transaction() as session:
        save_composer(session, ticket_id=desk.ticket_id, staff_id=desk.staff_id, body=ALONE)
    happen(desk)
    events = events_of(container, desk)
    for staff_id in (desk.staff_id, other, desk.staff_id):
        sign_in(staff_id)
        assert (ALONE in TicketRegions(tickets, desk.number, staff_id).news(events)) == (staff_id == desk.staff_id)


def test_what_is_typed_meanwhile_is_in_the_editor(
    container: Container, tickets: SharedTickets, desk: Desk, happen: Happen
) -> None:
    happen(desk)
    events = events_of(container, desk)
    assert ALONE not in TicketRegions(tickets, desk.number, desk.staff_id).news(events)
    with container.transaction() as session:
        save_composer(session, ticket_id=desk.ticket_id, staff_id=desk.staff_id, body=ALONE)
    assert ALONE in TicketRegions(tickets, desk.number, desk.staff_id).news(events)


def test_a_reading_never_serves_an_event_that_it_has_not(
    container: Container, tickets: SharedTickets, desk: Desk
) -> None:
    pages = [TicketRegions(tickets, desk.number, desk.staff_id) for _ in range(2)]
    for page in pages:
        page.news(events_of(container, desk))
    with container.transaction() as session:
        escalate(session, ticket_id=desk.ticket_id, run_id=desk.run_id, staff_id=desk.staff_id, reason=ALONE)
    for page in pages:
        assert ALONE in page.news(events_of(container, desk))


def test_what_no_event_tells_of_is_seen_once_the_reading_is_old(
    container: Container, tickets: SharedTickets, desk: Desk, clock: Clock
) -> None:
    seq = events_of(container, desk)[-1].seq
    first = tickets.newest(desk.number, seq, staff_id=desk.staff_id)
    clock.turn(KEPT_S / 2)
    assert tickets.newest(desk.number, seq, staff_id=desk.staff_id) is first
    clock.turn(KEPT_S)
    assert tickets.newest(desk.number, seq, staff_id=desk.staff_id) is not first


def test_desk_and_actions_come_only_with_another_state(
    container: Container, tickets: SharedTickets, desk: Desk, happen: Happen
) -> None:
    shared, own = {"ticket-head", "timeline", "ticket-side"}, {"desk", "actions"}
    page = TicketRegions(tickets, desk.number, desk.staff_id)
    assert sent(container, page, desk) >= shared | own
    happen(desk, type_=EventType.TICKET_CHANGED)
    assert sent(container, page, desk) & (shared | own) == shared
    with container.transaction() as session:
        escalate(session, ticket_id=desk.ticket_id, run_id=desk.run_id, staff_id=desk.staff_id, reason=ALONE)
    assert sent(container, page, desk) >= shared | own


def test_each_language_has_its_own_markup(
    container: Container, tickets: SharedTickets, desk: Desk, happen: Happen
) -> None:
    happen(desk)
    events = events_of(container, desk)
    markup = {}
    for locale in ("zh", "en"):
        with force_locale(locale):
            markup[locale] = TicketRegions(tickets, desk.number, desk.staff_id).news(events)
    assert markup["zh"] != markup["en"]
