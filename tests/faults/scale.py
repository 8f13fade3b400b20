"""The product's times, scaled down for a process of the harness: the order of things stays, the waiting goes."""

from dataclasses import dataclass
from datetime import timedelta

import app.delivery.service
import app.live.cancel
import app.runs.recovery
import jobs.lanes
import jobs.runtime
import jobs.worker

LEASE_S = 0.6
RENEW_EVERY_S = 0.15
SWEEP_EVERY_S = 0.2
UNCLAIMED_AFTER = timedelta(seconds=0.5)
RESTART_AFTER_S = 0.1
"""So long a supervisor takes to start a process again."""
SETTLE_LIMIT_S = 30.0
"""After the last fault everything must come to rest within this; it takes a second or two."""


@dataclass(frozen=True, slots=True)
class _Scaled:
    module: object
    name: str
    value: object


_TABLE = (
    _Scaled(app.delivery.service, "LEASE", timedelta(seconds=LEASE_S)),
    _Scaled(app.delivery.service, "OVERDUE", timedelta(seconds=0.3)),
    _Scaled(app.runs.recovery, "UNCLAIMED_AFTER", UNCLAIMED_AFTER),
    _Scaled(app.runs.recovery, "SETTLED_AFTER", timedelta(seconds=LEASE_S)),
    _Scaled(app.live.cancel, "RECONNECT_S", 0.1),
    _Scaled(jobs.runtime, "RESTART_S", 0.1),
    _Scaled(jobs.runtime, "STOP_LIMIT_S", 1.0),
    _Scaled(jobs.worker, "RECONNECT_S", 0.1),
    _Scaled(jobs.lanes.LaneWorker, "max_connection_wait_time", 0.2),
)


def scale_times() -> None:
    """Shorten what this process waits for. A time that the product no longer has is an error."""
    for row in _TABLE:
        if not hasattr(row.module, row.name):
            raise AttributeError(f"{row.module} has no {row.name} any more")
        setattr(row.module, row.name, row.value)
