"""What runs made, written and read by people's commands; the executor's own writes are in `ledger.py`."""

from collections.abc import Mapping
from typing import Any
from uuid import UUID

from sqlalchemy import func, select
from sqlalchemy.orm import Session

from app.ids import new_id
from app.runs.models import Artifact, ArtifactType


def write_artifact(
    session: Session, *, run_id: UUID, kind: ArtifactType, content: Mapping[str, Any], staff_id: UUID | None = None
) -> Artifact:
    """Add the next version of a run's artifact; the thread must be locked, which keeps the versions apart."""
    newest = select(func.coalesce(func.max(Artifact.version), 0)).where(
        Artifact.run_id == run_id, Artifact.type == kind
    )
    artifact = Artifact(
        id=new_id(),
        run_id=run_id,
        type=kind,
        version=session.scalars(newest).one() + 1,
        content=dict(content),
        staff_id=staff_id,
    )
    session.add(artifact)
    session.flush()
    return artifact


def latest_artifact(session: Session, run_id: UUID, kind: ArtifactType) -> Artifact | None:
    """Return the newest version of a run's artifact, if there is one."""
    return session.scalar(
        select(Artifact)
        .where(Artifact.run_id == run_id, Artifact.type == kind)
        .order_by(Artifact.version.desc())
        .limit(1)
    )
