"""`flask demo`: the demo's data, in demo mode only."""

import sys

import click

from app.cli.demo_check import check_command
from app.cli.group import PlainGroup
from app.demo import loader
from app.httpkit.container import container

demo = PlainGroup("demo", help="The demo's people, documents and tickets.")
demo.add_command(check_command)


@demo.command("load")
def load() -> None:
    """Load what of the demo is missing."""
    loader.load(container(), _show)


@demo.command("reset")
def reset() -> None:
    """Empty all tables and load the demo anew."""
    loader.reset(container(), _show)


def _show(what: str, done: int, of: int) -> None:
    """Rewrite one line while a person watches; in a log, write the last one only."""
    terminal = sys.stdout.isatty()
    if terminal or done == of:
        start = "\r" if terminal else ""
        click.echo(f"{start}  {what}: {done} of {of}", nl=done == of)
