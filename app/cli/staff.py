"""`flask staff`: people who may sign in."""

import click

from app.cli.group import PlainGroup
from app.httpkit.container import container
from app.staff import service
from app.staff.models import Role

staff = PlainGroup("staff", help="People who may sign in.")


@staff.command("create")
@click.argument("username")
@click.option("--name", required=True, help="The name that colleagues see.")
@click.option("--role", type=click.Choice([role.value for role in Role]), default=Role.AGENT.value, show_default=True)
@click.password_option(help="Asked for when not given.")
def create(username: str, name: str, role: str, password: str) -> None:
    """Create an account."""
    with container().transaction() as session:
        service.create_staff(session, username=username, display_name=name, password=password, role=Role(role))
    click.echo(f"{username} can sign in as {role}.")


@staff.command("disable")
@click.argument("username")
def disable(username: str) -> None:
    """Shut a person out, at once and everywhere."""
    with container().transaction() as session:
        service.set_active(session, username=username, active=False)
    click.echo(f"{username} can't sign in any more.")


@staff.command("enable")
@click.argument("username")
def enable(username: str) -> None:
    """Let a person in again who was shut out."""
    with container().transaction() as session:
        service.set_active(session, username=username, active=True)
    click.echo(f"{username} can sign in again.")


@staff.command("password")
@click.argument("username")
@click.password_option(help="Asked for when not given.")
def password(username: str, password: str) -> None:
    """Give a person a new password; they are signed out everywhere."""
    with container().transaction() as session:
        service.change_password(session, username=username, password=password)
    click.echo(f"{username} has a new password.")


@staff.command("sign-out")
@click.argument("username")
def sign_out(username: str) -> None:
    """End every session of a person; they can sign in again."""
    with container().transaction() as session:
        service.sign_out_everywhere(session, username=username)
    click.echo(f"{username} is signed out everywhere.")
