"""A sender that hangs between sending and sent: `python -m tests.delivery.stuck_sender <delivery id>`."""

import sys
from uuid import UUID

from app.bootstrap import build_container
from app.delivery.service import deliver
from app.settings import Settings
from tests.delivery.channels import Stuck

if __name__ == "__main__":
    deliver(build_container(Settings()).transaction, UUID(sys.argv[1]), [Stuck()])
