"""The flask commands: each does its one thing and says what is wrong in one line."""

import pytest
from click.testing import Result
from flask import Flask
from sqlalchemy import select

from app.bootstrap import Container
from app.staff.models import ApiToken, AuditEntry, Staff
from app.staff.passwords import check_password
from app.staff.tokens import verify_token
from tests.conftest import Login


def flask(app: Flask, *arguments: str, answers: str | None = None) -> Result:
    return app.test_cli_runner().invoke(args=list(arguments), input=answers)


def test_staff_create(app: Flask, container: Container) -> None:
    done = flask(app, "staff", "create", "wang", "--name", "王伟", "--role", "supervisor", answers="geheim9\ngeheim9\n")
    assert done.exit_code == 0
    assert "geheim9" not in done.output
    with container.sessions() as session:
        person = session.scalars(select(Staff)).one()
        assert (person.username, person.display_name, person.role) == ("wang", "王伟", "supervisor")
    again = flask(app, "staff", "create", "wang", "--name", "王伟", "--password", "x")
    assert (again.exit_code, again.output.strip()) == (1, "Error: The account name wang is taken.")


def test_staff_are_shut_out_and_let_in_again(app: Flask, container: Container, login: Login) -> None:
    client = login("wang")
    assert flask(app, "staff", "disable", "wang").exit_code == 0
    assert client.get("/").status_code == 302
    assert flask(app, "staff", "enable", "wang").exit_code == 0
    assert client.get("/").status_code == 302, "the session from before must not come back"
    assert login("wang").get("/").status_code == 200
    with container.sessions() as session:
        assert session.scalars(select(AuditEntry.action)).all() == ["staff_disabled", "staff_enabled"]


def test_a_new_password_ends_sessions(app: Flask, container: Container, login: Login) -> None:
    client = login("wang")
    done = flask(app, "staff", "password", "wang", answers="geheim9\ngeheim9\n")
    assert done.exit_code == 0
    assert "geheim9" not in done.output
    assert client.get("/").status_code == 302
    with container.sessions() as session:
        assert check_password(session.scalars(select(Staff.password_hash)).one(), "geheim9").right


def test_staff_are_signed_out_everywhere(app: Flask, login: Login) -> None:
    desk, phone = login("wang"), login("wang")
    assert flask(app, "staff", "sign-out", "wang").exit_code == 0
    assert [client.get("/").status_code for client in (desk, phone)] == [302, 302]
    again = flask(app, "staff", "sign-out", "nobody")
    assert (again.exit_code, again.output.strip()) == (1, "Error: There is no such account.")


def test_token_issue_and_revoke(app: Flask, container: Container) -> None:
    token = flask(app, "token", "issue", "shop-backend", "--source", "shop").output.strip()
    with container.transaction() as session:
        assert verify_token(session, token)
    assert flask(app, "token", "revoke", "shop-backend").exit_code == 0
    with container.transaction() as session:
        assert verify_token(session, token) is None
        assert session.scalars(select(ApiToken.revoked_at)).one()
    again = flask(app, "token", "revoke", "shop-backend")
    assert (again.exit_code, again.output.strip()) == (1, "Error: There is no token of that name in use.")


@pytest.mark.parametrize("command", [("staff", "create", "x"), ("token", "issue", "x"), ("token", "issue")])
def test_missing_arguments(app: Flask, command: tuple[str, ...]) -> None:
    assert flask(app, *command).exit_code == 2


def test_the_demo_commands_are_there(app: Flask) -> None:
    listed = flask(app, "demo", "--help").output
    assert all(name in listed for name in ("load", "reset", "check"))
