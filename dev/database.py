"""Bring a database to the newest schema, as `alembic upgrade head` does."""

import logging

from alembic import command
from alembic.config import Config

from app.settings import ROOT


def alembic_config(database_url: str) -> Config:
    """Return Alembic's configuration, pointed at one database."""
    config = Config(toml_file=ROOT / "pyproject.toml")
    config.attributes["database_url"] = database_url
    return config


def bring_up_to_date(database_url: str) -> None:
    """Run the migrations that are missing. Raises sqlalchemy.exc.DBAPIError."""
    logging.getLogger("alembic").setLevel(logging.WARNING)
    command.upgrade(alembic_config(database_url), "head")
