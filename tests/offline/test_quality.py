"""The floor under offline mode: the demo's tickets, and as many again that nothing was written or tuned for."""

from app.bootstrap import Container
from app.demo import loader
from app.demo.quality import QualityReport, check
from app.demo.tickets import read_tickets
from tests.support.ticket_vectors import HELD_OUT_FILE, TicketEmbedder

DEMO_COMPLETE = 0.8
HELD_OUT_COMPLETE = 0.7


def test_drafts_hold_the_key_points_and_nothing_is_offered_as_known(container: Container) -> None:
    loader.load(container, unseen)
    embedder = TicketEmbedder()
    demo = check(container, embedder=embedder)
    held_out = check(container, read_tickets(HELD_OUT_FILE), embedder=embedder)
    assert_honest(demo)
    assert_honest(held_out)
    assert demo.complete_share >= DEMO_COMPLETE, incomplete(demo)
    assert held_out.complete_share >= HELD_OUT_COMPLETE, incomplete(held_out)


def test_a_report_counts_what_it_says() -> None:
    empty = QualityReport(())
    assert (empty.complete_share, empty.points_share, empty.urgent_recall) == (0.0, 0.0, 0.0)


def unseen(what: str, done: int, of: int) -> None:
    """Progress that nobody watches."""


def assert_honest(report: QualityReport) -> None:
    assert [one.ticket.key for one in report.offered_as_known] == []
    assert [one.ticket.key for one in report.urgent_called_routine] == []
    assert report.urgent_recall == 1.0
    assert report.category_accuracy >= 0.8


def incomplete(report: QualityReport) -> str:
    return " ".join(one.ticket.key for one in report.answerable if not one.is_complete)
