"""Run a flask command on the services of `make run`, beside it or without it: `python -m dev.command demo reset`."""

import subprocess
import sys
from collections.abc import Sequence

from app.embedded import ServiceFailed
from app.settings import ROOT
from dev.database import bring_up_to_date
from dev.processes import child_environment
from dev.services import CannotStart, read_settings, say, services_for


def main(arguments: Sequence[str]) -> int:
    """Run the command and return its exit code."""
    try:
        with services_for(read_settings(), leave_running=True) as services:
            settings = services.settings
            bring_up_to_date(settings.database_url)
            values = {
                "DATABASE_URL": settings.database_url,
                "REDIS_URL": settings.redis_url,
                "DEMO": str(int(settings.demo)),
            }
            command = [sys.executable, "-m", "flask", "--app", "wsgi", *arguments]
            return subprocess.run(command, env=child_environment(values), cwd=ROOT, check=False).returncode
    except (CannotStart, ServiceFailed, OSError) as problem:
        say(str(problem))
        return 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
