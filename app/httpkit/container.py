"""The parts of the process, for views: the Container that `create_app` was given."""

from typing import cast

from flask import current_app

from app.bootstrap import Container

EXTENSION = "draftdesk"


def container() -> Container:
    """Return the Container of the running Flask application."""
    return cast(Container, current_app.extensions[EXTENSION])
