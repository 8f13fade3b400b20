"""`flask demo check`: how good offline mode is on the demo tickets."""

import sys
from pathlib import Path

import click
from flask.cli import with_appcontext

from app.demo.quality import Checked, QualityReport, check
from app.demo.tickets import TICKETS_FILE, read_tickets
from app.httpkit.container import container

COMPLETE_FLOOR = 0.8
"""The share of answerable tickets whose draft must hold every key point."""


@click.command("check")
@click.option("--tickets", type=click.Path(exists=True, dir_okay=False, path_type=Path), default=TICKETS_FILE)
@with_appcontext
def check_command(tickets: Path) -> None:
    """Count how well offline mode answers the demo tickets; exit 1 below the floor."""
    report = check(container(), read_tickets(tickets))
    for one in report.checked:
        click.echo(_line(one))
    click.echo(_summary(report))
    if report.complete_share < COMPLETE_FLOOR or report.offered_as_known or report.urgent_called_routine:
        sys.exit(1)


def _line(one: Checked) -> str:
    drafted = "escalated" if one.draft is None else "drafted, weak" if one.draft.warning else "drafted"
    expected = f"{one.points_held}/{len(one.ticket.key_points)} key points" if one.ticket.answerable else "unanswerable"
    sure = f"{one.verdict.probability:.2f}" if one.verdict else "-"
    found = one.classification
    return f"{one.ticket.key:5} {drafted:14} {sure:5} {expected:16} {found.priority:11} {found.category}"


def _summary(report: QualityReport) -> str:
    weak = sum(one.draft is not None for one in report.unanswerable) - len(report.offered_as_known)
    escalated = sum(one.draft is None for one in report.unanswerable)
    drafted = sum(one.draft is not None for one in report.answerable)
    answered = (
        f"answerable: {len(report.answerable)}; drafted {drafted}; "
        f"every key point {report.complete_share:.1%}; key points {report.points_share:.1%}"
    )
    unanswered = (
        f"unanswerable: {len(report.unanswerable)}; offered as known {len(report.offered_as_known)}; "
        f"with a warning {weak}; escalated {escalated}"
    )
    classes = (
        f"classes: category {report.category_accuracy:.1%}; priority {report.priority_accuracy:.1%}; "
        f"urgent found {report.urgent_recall:.1%}; urgent called auto_reply {len(report.urgent_called_routine)}"
    )
    return f"\n{answered}\n{unanswered}\n{classes}"
