"""`flask token`: bearer tokens for the API."""

import click

from app.cli.group import PlainGroup
from app.httpkit.container import container
from app.staff.tokens import issue_token, revoke_token

token = PlainGroup("token", help="Bearer tokens for the API.")


@token.command("issue")
@click.argument("name")
@click.option("--source", required=True, help="The system it is for; names the space of its idempotency keys.")
def issue(name: str, source: str) -> None:
    """Make a token and print it; it is shown this once only."""
    with container().transaction() as session:
        made = issue_token(session, name=name, source=source)
    click.echo(made)


@token.command("revoke")
@click.argument("name")
def revoke(name: str) -> None:
    """End a token at once."""
    with container().transaction() as session:
        revoke_token(session, name)
    click.echo(f"The token {name} opens nothing any more.")
