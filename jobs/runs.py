"""Jobs of the queue `runs`."""

from uuid import UUID

from jobs.process import runtime


def execute_run(run_id: str) -> None:
    """Drive one run; a second delivery finds it claimed or ended and stops."""
    runtime().execute(UUID(run_id))
