"""`tapgate admin`: help an admin who cannot log in, audited like requests over HTTP."""

from typing import Annotated, Any

import typer

from tapgate.cli import operator
from tapgate.cli.keys import run_with_services
from tapgate_client.errors import ApiError, Code, invalid_field

_MAX_REASON_LENGTH = 255

app = typer.Typer(
    help="Help admins who cannot log in, end sessions, and suspend approvals.", no_args_is_help=True
)


@app.callback()
def describe() -> None:
    """Help admins who cannot log in, end sessions, and suspend approvals."""


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
        from tapgate.business.approvals.operations import require_unguarded_reset  # noqa: PLC0415
        from tapgate.business.staff import operations  # noqa: PLC0415

        auth, actor = services.authenticator, operator.build_actor()
        admin = await _find_admin(services, email)
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
                makers={},
                linked_to=[],
                invitations=auth.invitations,
                sessions=auth.sessions,
            )
        print(invitation.url)

    run_with_services(task)


@app.command()
def confirm(email: Annotated[str, typer.Argument(help="Email address of the admin.")]) -> None:
    """Confirm that an account belongs to its admin.

    For an account whose invitation or reset link other admins may have had, if no third admin can
    confirm it in the console. Check with the person first. If the links belong to other accounts of
    the person, the command names them.
    """

    async def task(services: Any) -> None:
        from tapgate.business.approval_rules.queries import list_unconfirmed  # noqa: PLC0415
        from tapgate.business.staff import operations  # noqa: PLC0415

        admin = await _find_admin(services, email)
        if not admin["link_viewers"]:
            others = await list_unconfirmed(services.database, admin["id"])
            hint = f" Unconfirmed accounts of the same person: {', '.join(others)}."
            print("This account needs no confirmation." + (hint if others else ""))
            return
        async with services.transaction() as tx:
            await operations.confirm(tx, operator.build_actor(), admin["id"])
        print("Confirmed.")

    run_with_services(task)


@app.command("end-sessions")
def end_sessions(
    email: Annotated[str | None, typer.Argument(help="Email address of the admin.")] = None,
    everyone: Annotated[
        bool, typer.Option("--all", help="End the sessions of all admins.")
    ] = False,
) -> None:
    """End one admin's sessions, or all admin sessions. They can sign in again."""

    async def task(services: Any) -> None:
        from tapgate.business.staff import operations, queries  # noqa: PLC0415

        if (email is None) is not everyone:
            raise ApiError(Code.INVALID_REQUEST, "name an admin, or use --all")
        admin = None if email is None else await _find_admin(services, email)
        async with services.transaction() as tx:
            admin_ids = await queries.list_signed_in(tx) if admin is None else [admin["id"]]
            await operations.end_sessions(
                tx, operator.build_actor(), admin_ids, sessions=services.authenticator.sessions
            )
        print(f"Ended the sessions of {len(admin_ids)} admins.")

    run_with_services(task)


async def _find_admin(services: Any, email: str) -> Any:
    from tapgate.business.staff import queries  # noqa: PLC0415

    admin = await queries.find_by_email(services.database, email)
    if admin is None:
        raise ApiError(Code.NOT_FOUND, f"there is no admin with the email address {email}")
    return admin


@app.command("suspend-approvals")
def suspend_approvals(
    reason: Annotated[str, typer.Option(help="Why no approval is possible, for the audit log.")],
) -> None:
    """Suspend the approval rules, if no admin is left who can approve a request.

    Until `tapgate admin resume-approvals`, no request is held, and one admin can add others or
    change the rules. The console shows the suspension on every page.
    """

    async def task(services: Any) -> None:
        from tapgate.business.approvals.operations import suspend  # noqa: PLC0415

        text = reason.strip()
        if not text or len(text) > _MAX_REASON_LENGTH:
            raise invalid_field("--reason", f"must have 1 to {_MAX_REASON_LENGTH} characters")
        async with services.transaction() as tx:
            await suspend(tx, operator.build_actor(), text)
        print("Approvals are suspended.")

    run_with_services(task)


@app.command("resume-approvals")
def resume_approvals() -> None:
    """End the approval rule suspension.

    The command refuses while active admins could not satisfy the rules.
    """

    async def task(services: Any) -> None:
        from tapgate.business.approvals.operations import resume  # noqa: PLC0415
        from tapgate.http.api.guards import collect_guarded_roles  # noqa: PLC0415
        from tapgate.server.gateway import list_endpoints  # noqa: PLC0415

        async with services.transaction() as tx:
            await resume(tx, operator.build_actor(), collect_guarded_roles(list_endpoints()))
        print("Approvals are required again.")

    run_with_services(task)
