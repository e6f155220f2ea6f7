"""Endpoints for account statements."""

import asyncio

from tapgate.business.branding.operations import get_branding
from tapgate.business.customers.subscribers import queries as subscribers
from tapgate.business.customers.subscribers.pins import pin_operations
from tapgate.business.payments.wallets.statements import csv_file, operations
from tapgate.business.payments.wallets.statements.model import (
    parse_period,
    to_entry_records,
    to_record,
)
from tapgate.core.records import require_id
from tapgate.http.api.access import Access
from tapgate.http.api.guards import Unguarded
from tapgate.http.api.notice_declarations import Unnoticed
from tapgate.http.api.object_access import ObjectAccess
from tapgate.http.api.owner_access import NEVER
from tapgate.http.api.request_context import RequestContext
from tapgate.http.endpoint import FILE_MEDIA_TYPE, Endpoints, Reply
from tapgate_client import clock, ids
from tapgate_client.errors import Code
from tapgate_client.schemas.wallets import StatementFormat, StatementRecord, StatementRequest

endpoints = Endpoints("Wallet", owners=NEVER)

_FILES_PATH = "/api/v1/statements"
_CONTENT_TYPES = {"csv": csv_file.CONTENT_TYPE, "pdf": "application/pdf"}


@endpoints.post(
    "/api/v1/wallet/account-statement",
    access=Access(scope="payments:read", roles="AFS", service=True),
    errors=(
        Code.SUBSCRIBER_NOT_FOUND,
        Code.OTP_REQUIRED,
        Code.INVALID_PIN,
        Code.ACCOUNT_LOCKED,
        Code.NOT_CLOSABLE,
        Code.SUBSCRIBER_BLOCKED,
    ),
    heavy=True,
    report=True,
    unguarded=Unguarded.NO_EFFECT,
    objects=ObjectAccess.UNRESTRICTED | ObjectAccess.PIN,
    effect="reads",
    unnoticed=Unnoticed.NO_CHANGE,
)
async def create_statement(request: RequestContext, body: StatementRequest) -> StatementRecord:
    """Create an account statement for a subscriber.

    The period includes both dates, in the platform's time zone, and has at most 366 days. Entries
    are in the order in which money moved, and each fee is a separate entry. If the request contains
    a `pin`, the PIN must be correct. A file can be downloaded for 24 hours with its link, which
    requires no other credential. The link ends earlier if the subscriber is blocked, closed or
    restricted, or changes the phone number. A subscriber can have at most 100 files at a time.
    Further requests for a file fail with `RATE_LIMITED`.

    A CSV file has the columns `date`, `time`, `transaction_id`, `type`, `description`, `debit`,
    `credit`, `balance` and `currency`. Date and time are in the platform's time zone. The first row
    is the opening balance, with the type `opening_balance` and no transaction.
    """
    services, period = request.services, parse_period(body)
    subscriber = await subscribers.get_accessible(
        services.database,
        request.caller,
        services.clock(),
        require_id(ids.SUBSCRIBER, body.subscriber_id),
    )
    if body.pin is not None:
        async with services.transaction() as tx:
            await pin_operations.verify(
                tx, request.actor, subscriber.id, body.pin, pin_verifier=services.pin_verifier
            )
    statement = await operations.build_statement(
        await services.get_report_database(),
        subscriber,
        period,
        id=services.new_id(),
        now=services.clock(),
        zone=services.settings.timezone,
    )
    record = to_record(statement)
    if body.format == StatementFormat.JSON:
        # In a thread, because thousands of entries would block the event loop.
        record.entries = await asyncio.to_thread(to_entry_records, statement)
        return record
    file = await operations.render_file(
        statement,
        body.format,
        services.vault,
        branding=await get_branding(services.database, services.settings, services.clock()),
    )
    async with services.transaction() as tx:
        link = await operations.issue_file(
            tx, request.actor, subscriber, statement, file, vault=services.vault
        )
    record.statement_url = f"{services.settings.public_url}{_FILES_PATH}/{link.token}"
    record.expires_at = clock.format_rfc3339(link.expires_at)
    return record


@endpoints.get(
    f"{_FILES_PATH}/{{token}}",
    access=Access(public=True),
    media=(FILE_MEDIA_TYPE, "text/csv", "application/pdf"),
    any_query="Apps that open links add parameters.",
    heavy=True,
    report=True,
    objects=ObjectAccess.LINK,
)
async def download_statement(request: RequestContext, token: str) -> Reply[bytes]:
    """Download a statement file (CSV or PDF) with its link."""
    services = request.services
    file, content = await operations.fetch_file(
        services.database, services.vault, token, now=services.clock()
    )
    name = f"statement-{file.period.first}-{file.period.last}.{file.format}"
    return Reply(
        content,
        headers={"Content-Disposition": f'attachment; filename="{name}"'},
        content_type=request.negotiate_file_type(_CONTENT_TYPES[file.format]),
    )
