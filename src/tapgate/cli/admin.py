"""`tapgate admin`: help an admin who cannot log in, audited like requests over HTTP."""

from typing import Annotated, Any

import typer

from tapgate.cli import operator
from tapgate.cli.keys import run_with_services
from tapgate.errors import ApiError, Code

app = typer.Typer(help="Help admins who cannot log in.", no_args_is_help=True)


@app.callback()
def describe() -> None:
    """Help admins who cannot log in."""


@app.command("reset-password")
def reset_password(
    email: Annotated[str, typer.Argument(help="Email address of the admin.")],
    factors: Annotated[
        bool, typer.Option("--factors", help="Also remove the admin's second factors.")
    ] = False,
) -> None:
    """Print a link with which an admin sets a new password.

    The current password stops working and the admin's sessions end. If approval rules hold changes
    of admins, the command refuses while other admins can make and approve the change.
    """

    async def task(services: Any) -> None:
        from tapgate.admin import operations, queries  # noqa: PLC0415
        from tapgate.approvals.operations import require_unguarded_reset  # noqa: PLC0415

        auth, actor = services.authenticator, operator.build_actor()
        admin = await queries.find_by_email(services.database, email)
        if admin is None:
            raise ApiError(Code.NOT_FOUND, f"there is no admin with the email address {email}")
        unusable_hash = await auth.passwords.hash_unknown()
        async with services.transaction() as tx:
            await require_unguarded_reset(tx, admin["id"])
            if factors:
                await operations.reset_factors(
                    tx, actor, admin["id"], factors=auth.factors, sessions=auth.sessions
                )
            invitation = await operations.reset_password(
                tx,
                actor,
                admin["id"],
                unusable_hash=unusable_hash,
                invitations=auth.invitations,
                sessions=auth.sessions,
            )
        print(invitation.url)

    run_with_services(task)
