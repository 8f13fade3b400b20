"""A demo is for those who may see it: its secret is its own, and public passwords are not offered to a network."""

import stat
from pathlib import Path

import pytest

from app.bootstrap import Container
from app.demo.loader import ACCOUNTS
from app.settings import DEMO_SECRET, Settings
from app.staff.service import change_password, create_staff, set_active
from dev.demo import open_accounts, secret_of
from dev.services import only_this_machine

EVERYWHERE = "0.0.0.0"  # noqa: S104 - compared only


def test_a_demo_gets_a_secret_of_its_own_and_keeps_it(tmp_path: Path) -> None:
    settings = Settings(_env_file=None, demo=True, var_dir=tmp_path)
    secret = secret_of(settings)
    assert len(secret) == 64
    assert secret != DEMO_SECRET
    assert stat.S_IMODE((tmp_path / "secret_key").stat().st_mode) == 0o600
    assert secret_of(settings) == secret
    assert secret_of(Settings(_env_file=None, demo=True, var_dir=tmp_path, secret_key="given")) == "given"


@pytest.mark.parametrize(
    ("host", "private"),
    [("127.0.0.1", True), ("localhost", True), ("::1", True), (EVERYWHERE, False), ("::", False), ("", False)],
)
def test_what_others_can_reach(host: str, private: bool) -> None:
    assert only_this_machine(host) is private


def test_accounts_with_public_passwords_are_found(container: Container) -> None:
    with container.transaction() as session:
        for account in ACCOUNTS:
            create_staff(
                session,
                username=account.username,
                display_name=account.display_name,
                password=account.password,
                role=account.role,
            )
    assert open_accounts(container.settings) == ["admin", "agent", "lead"]
    with container.transaction() as session:
        set_active(session, username="agent", active=False)
        change_password(session, username="lead", password="a-better-one-4711")
    assert open_accounts(container.settings) == ["admin"]
