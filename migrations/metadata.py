"""The metadata that migrations are compared with."""

from app.tables import metadata

__all__ = ["metadata"]
