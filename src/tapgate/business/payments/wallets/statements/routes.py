"""Endpoints for account statements."""

import asyncio

from tapgate.auth.owners import parse_owner
from tapgate.business.branding.operations import get_branding
from tapgate.business.customers.subscribers import queries as subscribers
from tapgate.business.customers.subscribers.pins import pin_operations
from tapgate.business.payments.wallets.statements import csv_file, operations, owner_statements
from tapgate.business.payments.wallets.statements.model import (
    Statement,
    build_period,
    parse_period,
    to_entry_records,
    to_owner_record,
    to_record,
)
from tapgate.business.payments.wallets.statements.operations import StatementLink
from tapgate.business.payments.wallets.statements.queries import StatementFile
from tapgate.core.records import require_id
from tapgate.http.api.access import Access
from tapgate.http.api.guards import Unguarded
from tapgate.http.api.notice_declarations import Unnoticed
from tapgate.http.api.object_access import ObjectAccess
from tapgate.http.api.owner_access import NEVER, Binding, OwnerAccess
from tapgate.http.api.request_context import RequestContext
from tapgate.http.endpoint import FILE_MEDIA_TYPE, Endpoints, Reply
from tapgate_client import clock, ids
from tapgate_client.errors import Code, invalid_field
from tapgate_client.schemas.admin import Scope
from tapgate_client.schemas.wallets import (
    OwnerStatementRecord,
    OwnerStatementRequest,
    StatementFields,
    StatementFormat,
    StatementRecord,
    StatementRequest,
)

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
    file = await _render_file(request, statement, body.format)
    async with services.transaction() as tx:
        link = await operations.issue_file(
            tx, request.actor, subscriber, statement, file, vault=services.vault
        )
    _add_link(request, record, link)
    return record


@endpoints.post(
    _FILES_PATH,
    access=Access(roles="AFS"),
    owners=OwnerAccess(
        binding=Binding.BODY,
        roles="MPG",
        parameter="owner_id",
        scopes=(Scope.PAYMENTS_READ,),
        while_suspended=True,
    ),
    errors=(Code.PROCESSOR_NOT_FOUND, Code.PARTNER_NOT_FOUND, Code.AGENT_NOT_FOUND),
    heavy=True,
    report=True,
    unguarded=Unguarded.NO_EFFECT,
    objects=ObjectAccess.ANY,
    effect="reads",
    unnoticed=Unnoticed.NO_CHANGE,
)
async def create_owner_statement(
    request: RequestContext, body: OwnerStatementRequest
) -> OwnerStatementRecord:
    """Create an account statement for a processor, partner or agent.

    The period, the entries and the files are as in a subscriber's statement; an agent's statement
    covers the float. Names of customers are abbreviated, and restricted customers have no name.
    Without `owner_id`, the statement is the caller's; admins must name the owner (422).
    """
    services = request.services
    owner = None if body.owner_id is None else parse_owner(body.owner_id)
    if owner is None:
        raise invalid_field("owner_id", "is required")
    period = build_period(body.from_, body.to, fields=("from", "to"))
    statement = await owner_statements.build_statement(services, owner, period)
    record = to_owner_record(statement)
    if body.format == StatementFormat.JSON:
        record.entries = await asyncio.to_thread(to_entry_records, statement)
        return record
    file = await _render_file(request, statement, body.format)
    async with services.transaction() as tx:
        link = await owner_statements.issue_file(tx, request.actor, owner, statement, file)
    _add_link(request, record, link)
    return record


async def _render_file(
    request: RequestContext, statement: Statement, format: StatementFormat
) -> StatementFile:
    services = request.services
    branding = await get_branding(services.database, services.settings, services.clock())
    return await operations.render_file(statement, format, services.vault, branding=branding)


def _add_link(request: RequestContext, record: StatementFields, link: StatementLink) -> None:
    public_url = request.services.settings.public_url
    record.statement_url = f"{public_url}{_FILES_PATH}/{link.token}"
    record.expires_at = clock.format_rfc3339(link.expires_at)


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
