"""A group of commands whose errors are one line for a person, without a traceback."""

import click
from flask.cli import AppGroup

from app.errors import AppError


class PlainGroup(AppGroup):
    """Runs its commands in the application's context and turns our own errors into a message and exit code 1."""

    def invoke(self, ctx: click.Context) -> object:
        """Run the command that was asked for."""
        try:
            return super().invoke(ctx)
        except AppError as error:
            raise click.ClickException(str(error)) from error
