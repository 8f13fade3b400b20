"""Alembic environment: brings the database that DATABASE_URL names to the newest schema."""

from alembic import context

from app.db.session import make_engine
from app.settings import Settings
from migrations.metadata import metadata


def run() -> None:
    """Migrate in one transaction, so that a failed migration leaves nothing behind."""
    url = context.config.attributes.get("database_url") or Settings().database_url
    engine = make_engine(url)
    with engine.connect() as connection:
        context.configure(connection=connection, target_metadata=metadata, compare_type=True)
        with context.begin_transaction():
            context.run_migrations()
    engine.dispose()


run()
