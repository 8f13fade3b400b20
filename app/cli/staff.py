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
