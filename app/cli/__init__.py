"""The flask commands. Each parses, opens the transaction and calls the same service as the pages."""

from flask import Flask

from app.cli.demo import demo
from app.cli.runs import runs
from app.cli.staff import staff
from app.cli.tokens import token


def register(app: Flask) -> None:
    """Add our commands to `flask`."""
    for group in (demo, runs, staff, token):
        app.cli.add_command(group)
