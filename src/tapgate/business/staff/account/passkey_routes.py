"""Endpoints for the authenticated admin's own passkeys."""

from operator import itemgetter

import asyncpg
import msgspec

from tapgate.auth.passkeys import InvalidPasskeyError
from tapgate.business.staff import queries as admin_queries
from tapgate.business.staff.account import operations, queries
from tapgate.business.staff.account.first_factor import require_first_factor_proof
from tapgate.core.pagination import paginate
from tapgate.core.records import PasskeyId, build_record
from tapgate.http.api.access import Access
from tapgate.http.api.guards import Unguarded
from tapgate.http.api.object_access import ObjectAccess
from tapgate.http.api.owner_access import OWN_USER
from tapgate.http.api.request_context import RequestContext
from tapgate.http.endpoint import Endpoints
from tapgate.runtime.store.transaction import Transaction
from tapgate_client import ids
from tapgate_client.errors import invalid_field
from tapgate_client.schemas.pagination import Page, PageQuery
from tapgate_client.schemas.passkeys import (
    CreationOptions,
    EnrolledPasskey,
    NewPasskey,
    PasskeyEnrollment,
    PasskeyRecord,
)

endpoints = Endpoints(
    "Account",
    "/api/v1/admin/me/passkeys",
    access=Access(roles="ACSF"),
    objects=ObjectAccess.OWN,
    owners=OWN_USER,
)


@endpoints.post("/options", step_up=True, enrolls=True, unguarded=Unguarded.OWN_ACCOUNT)
async def start_passkey(request: RequestContext, body: PasskeyEnrollment) -> CreationOptions:
    """Create the options for a new passkey.

    Pass them to `navigator.credentials.create()`, and send the result to
    `POST /api/v1/admin/me/passkeys` within five minutes and in the same session. They work once.

    An admin without a second factor must send `current_password`, because a passkey logs in
    without a password. A wrong password fails with 422 and counts as a failed login. Admins who use
    single sign-on have no password, and their passkeys only verify sensitive actions.
    """
    admin_id, session_id = request.admin_and_session_ids
    auth = request.services.authenticator
    operations.require_enabled(auth.factors)
    await require_first_factor_proof(request, body.current_password, accepts_recent_login=False)
    admin = await admin_queries.get(request.services.database, admin_id)
    return await auth.passkeys.build_creation_options(admin, session_id)


@endpoints.post("", status=201, step_up=True, enrolls=True, unguarded=Unguarded.OWN_ACCOUNT)
async def enroll_passkey(request: RequestContext, body: NewPasskey) -> EnrolledPasskey:
    """Enroll a passkey.

    `credential` is the result of `navigator.credentials.create()`, as `toJSON()` returns it. The
    authenticator must verify the user, by a PIN or biometrics. The passkey then logs in without a
    password, and is a second factor: each login requires it or another factor. An admin can have 20
    passkeys.

    If the admin has no recovery codes, the response contains ten. Each works once as `otp`,
    together with the password. They are shown only here. The first factor ends your other sessions.

    A token with `enroll_only` remains limited; log in again.
    """
    admin_id, session_id = request.admin_and_session_ids
    services, auth = request.services, request.services.authenticator
    operations.require_enabled(auth.factors)
    try:
        verified = await auth.passkeys.verify_new(admin_id, session_id, body.credential)
    except InvalidPasskeyError:
        raise invalid_field(
            "credential", "is not valid for the latest options. Request new options and try again"
        ) from None
    async with services.transaction() as tx:
        row, codes = await operations.add_passkey(
            tx, request.actor, admin_id, body.name, verified, auth=auth, session_id=session_id
        )
    return build_record(
        EnrolledPasskey,
        row,
        id=ids.encode(ids.PASSKEY, row["id"]),
        recovery_codes=msgspec.UNSET if codes is None else codes,
    )


@endpoints.get("")
async def list_passkeys(request: RequestContext, query: PageQuery) -> Page[PasskeyRecord]:
    """List your passkeys.

    Newest first.
    """
    admin_id, _ = request.admin_and_session_ids
    rows = await queries.list_passkeys(request.services.database, query, admin_id)
    return paginate(rows, query, _to_record, itemgetter("id"))


@endpoints.delete("/{id}", step_up=True, unguarded=Unguarded.OWN_ACCOUNT)
async def remove_passkey(request: RequestContext, tx: Transaction, id: PasskeyId) -> None:
    """Remove one of your passkeys.

    It no longer logs in. Where a second factor is required, the last one cannot be removed (403).
    """
    admin_id, _ = request.admin_and_session_ids
    await operations.remove_passkey(
        tx, request.actor, admin_id, id, auth=request.services.authenticator
    )


def _to_record(row: asyncpg.Record) -> PasskeyRecord:
    return build_record(PasskeyRecord, row, id=ids.encode(ids.PASSKEY, row["id"]))
