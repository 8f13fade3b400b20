"""What the launcher does for the demo: loads it before the first start, and keeps it to those who may see it."""

import os
import secrets
import subprocess
import sys

from sqlalchemy import select

from app.bootstrap import build_container
from app.demo.loader import ACCOUNTS, is_loaded
from app.settings import DEMO_SECRET, ROOT, Settings
from app.staff.models import Staff
from app.staff.passwords import check_password
from dev.processes import child_environment
from dev.services import CannotStart, say


def load_demo(settings: Settings) -> None:
    """Load what of the demo is missing, with visible progress. Raises CannotStart when that fails.

    In a process of its own: the model stays out of the launcher.
    """
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


def secret_of(settings: Settings) -> str:
    """Return SECRET_KEY, or for a demo without one the data folder's own, made on the first start."""
    given = settings.secret_key.get_secret_value()
    if given not in ("", DEMO_SECRET):
        return given
    path = settings.var_dir / "secret_key"
    if not path.exists():
        fresh = path.with_suffix(".new")
        fresh.unlink(missing_ok=True)
        with open(os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
            file.write(secrets.token_hex())
        fresh.replace(path)
    return path.read_text()


def open_accounts(settings: Settings) -> list[str]:
    """Return the accounts, now or earlier of the demo, that still take the password that everybody knows."""
    container = build_container(settings)
    passwords = {account.username: account.password for account in ACCOUNTS}
    active = select(Staff.username, Staff.password_hash).where(Staff.username.in_(passwords), Staff.is_active)
    try:
        with container.sessions() as session:
            kept = session.execute(active).all()
    finally:
        container.engine.dispose()
        container.redis.close()
    return sorted(name for name, kept_hash in kept if check_password(kept_hash, passwords[name]).right)
