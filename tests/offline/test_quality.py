"""The floor under offline mode: the demo's tickets, and as many again in other wordings."""

from pathlib import Path

from flask import Flask

from app.bootstrap import Container
from app.demo import loader
from app.demo.quality import QualityReport, check
from app.demo.tickets import TICKETS_FILE, read_tickets
from tests.support.ticket_vectors import HELD_OUT_FILE, TicketEmbedder

DEMO_COMPLETE = 0.8
HELD_OUT_COMPLETE = 0.7
KNOWN = 0.4
"""A warning on nearly every draft is one that nobody reads."""


def test_drafts_hold_the_key_points_and_nothing_is_offered_as_known(container: Container) -> None:
    loader.load(container, unseen)
    embedder = TicketEmbedder()
    demo = check(container, embedder=embedder)
    held_out = check(container, read_tickets(HELD_OUT_FILE), embedder=embedder)
    assert_honest(demo)
    assert_honest(held_out)
    assert demo.complete_share >= DEMO_COMPLETE, incomplete(demo)
    assert held_out.complete_share >= HELD_OUT_COMPLETE, incomplete(held_out)
    assert known_share(demo) >= KNOWN
    assert known_share(held_out) >= KNOWN


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


def known_share(report: QualityReport) -> float:
    return sum(one.is_offered_as_known for one in report.answerable) / len(report.answerable)


def incomplete(report: QualityReport) -> str:
    return " ".join(one.ticket.key for one in report.answerable if not one.is_complete)


def test_the_command_fails_below_the_floor(app: Flask, tmp_path: Path) -> None:
    lines = TICKETS_FILE.read_text(encoding="utf-8").splitlines()[:2]
    (tmp_path / "two.jsonl").write_text("\n".join(lines), encoding="utf-8")
    result = app.test_cli_runner().invoke(args=["demo", "check", "--tickets", str(tmp_path / "two.jsonl")])
    assert result.exit_code == 1, result.output
    assert "t01   escalated" in result.output
    assert "answerable: 2; drafted 0; every key point 0.0%" in result.output
    assert "urgent found 100.0%" in result.output
