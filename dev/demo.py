"""Loads the demo before the first start, in a process of its own: the model stays out of the launcher."""

import subprocess
import sys

from app.bootstrap import build_container
from app.demo.loader import is_loaded
from app.settings import ROOT, Settings
from dev.processes import child_environment
from dev.services import CannotStart, say


def load_demo(settings: Settings) -> None:
    """Load what of the demo is missing, with visible progress. Raises CannotStart when that fails."""
    container = build_container(settings)
    try:
        if is_loaded(container):
            return
    finally:
        container.engine.dispose()
        container.redis.close()
    say("Loading the demo ...")
    values = {"DATABASE_URL": settings.database_url, "REDIS_URL": settings.redis_url, "DEMO": "1"}
    # A session of its own: Ctrl-C reaches the launcher, which ends this process without a trace of it.
    done = subprocess.run(
        [sys.executable, "-m", "flask", "--app", "wsgi", "demo", "load"],
        env=child_environment(values),
        cwd=ROOT,
        start_new_session=True,
        check=False,
    )
    if done.returncode != 0:
        raise CannotStart("The demo could not be loaded; the lines above say why.")
