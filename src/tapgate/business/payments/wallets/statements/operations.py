"""Operations on statements: build, issue as a file, download, and remove after expiry."""

import asyncio
import secrets
import zlib
from datetime import datetime, timedelta
from typing import Final, NamedTuple
from zoneinfo import ZoneInfo

from tapgate.auth.actors import Actor
from tapgate.business.branding.model import Branding
from tapgate.business.customers.subscribers import queries as subscribers
from tapgate.business.customers.subscribers.model import Subscriber
from tapgate.business.customers.subscribers.restriction import require_subscriber_access
from tapgate.business.payments.wallets.statements import csv_file, queries
from tapgate.business.payments.wallets.statements.model import Period, Statement
from tapgate.business.payments.wallets.statements.queries import StatementFile
from tapgate.core.vault import Vault
from tapgate.events.audit.trail import AuditTrail
from tapgate.runtime import retention
from tapgate.runtime.store.database import Database
from tapgate.runtime.store.transaction import Transaction
from tapgate.runtime.thread_pool import BoundedThreadPool
from tapgate_client import ids
from tapgate_client.errors import ApiError, Code
from tapgate_client.schemas.subscribers import SubscriberStatus
from tapgate_client.schemas.wallets import StatementFormat

_trail = AuditTrail("subscriber")

LINK_LIFETIME: Final = timedelta(hours=24)
#: Maximum number of files of one subscriber, including expired files that are not yet removed.
MAX_FILES: Final = 100

_HASH_PURPOSE: Final = "statement link"

#: Long statements take seconds to render, which would block the event loop.
rendering_threads: Final = BoundedThreadPool("statements", threads=1, max_pending=8)


class StatementLink(NamedTuple):
    """Link to a file. The token is a bearer credential."""

    token: str
    expires_at: datetime


async def build_statement(
    database: Database,
    subscriber: Subscriber,
    period: Period,
    *,
    id: int,
    now: datetime,
    zone: ZoneInfo,
) -> Statement:
    activity = await queries.load_activity(
        database, subscriber.account_id, period.start(zone), period.end(zone)
    )
    return Statement(
        id=id,
        holder_id=ids.encode(ids.SUBSCRIBER, subscriber.id),
        account_id=subscriber.account_id,
        holder_name=subscriber.name,
        phone_number=subscriber.phone_number,
        currency=subscriber.currency,
        zone=zone,
        period=period,
        opening_balance=activity.opening_balance,
        movements=activity.movements,
        generated_at=now,
    )


async def render_file(
    statement: Statement, format: StatementFormat, vault: Vault, *, branding: Branding
) -> StatementFile:
    """Render and encrypt a file, so that later transactions do not change an issued statement."""
    compressed = await rendering_threads.run(_render_compressed, statement, format, branding)
    sealed = vault.seal(compressed, get_seal_context(statement.id))
    return StatementFile(statement.id, format, statement.period, sealed)


def new_link(statement: Statement) -> StatementLink:
    return StatementLink(secrets.token_urlsafe(32), statement.generated_at + LINK_LIFETIME)


def hash_token(vault: Vault, token: str) -> bytes:
    return vault.keyed_hash(_HASH_PURPOSE, token.encode())


async def issue_file(
    tx: Transaction,
    actor: Actor,
    subscriber: Subscriber,
    statement: Statement,
    file: StatementFile,
    *,
    vault: Vault,
) -> StatementLink:
    """Store a file and return its link. `subscriber` is the subscriber before rendering."""
    link = new_link(statement)
    subscriber_id = subscriber.id
    # The subscriber may have lost access during rendering. Because of the lock, either these checks
    # reject the file or a later change deletes it.
    restricted = await subscribers.lock_restriction(tx, subscriber_id)
    await require_subscriber_access(
        tx, actor.principal, tx.now(), subscriber_id, restricted=restricted
    )
    current = await subscribers.get(tx, subscriber_id)
    if current.status not in (subscriber.status, SubscriberStatus.ACTIVE):
        raise ApiError(Code.SUBSCRIBER_BLOCKED)
    if current.phone_number != subscriber.phone_number:
        raise ApiError(Code.SERVICE_UNAVAILABLE, "The phone number has changed. Try again.")
    if await queries.count_files(tx, subscriber_id) >= MAX_FILES:
        raise ApiError(
            Code.RATE_LIMITED,
            f"The subscriber already has {MAX_FILES} statement files, which expire after 24 hours.",
            headers={"Retry-After": str(retention.INTERVAL_SECONDS)},
        )
    await queries.add_file(
        tx,
        file,
        subscriber_id=subscriber_id,
        token_hash=hash_token(vault, link.token),
        created_at=statement.generated_at,
        expires_at=link.expires_at,
    )
    public_id = ids.encode(ids.SUBSCRIBER, subscriber_id)
    await _trail.record(tx, actor, public_id, "statement_issued")
    return link


async def fetch_file(
    database: Database, vault: Vault, token: str, *, now: datetime
) -> tuple[StatementFile, bytes]:
    """Return the file and its content for a token, or raise NOT_FOUND."""
    file = await queries.find_file(
        database, vault.list_keyed_hashes(_HASH_PURPOSE, token.encode()), now
    )
    if file is None:
        raise ApiError(Code.NOT_FOUND, "The statement does not exist or the link has expired.")
    return file, await asyncio.to_thread(_decrypt_file, vault, file)


def _render_compressed(statement: Statement, format: StatementFormat, branding: Branding) -> bytes:
    return zlib.compress(_render(statement, format, branding))


def _render(statement: Statement, format: StatementFormat, branding: Branding) -> bytes:
    if format == StatementFormat.CSV:
        return csv_file.render(statement)
    # Imported for the first PDF file: ReportLab would delay the start of every process.
    from tapgate.business.payments.wallets.statements import pdf_file  # noqa: PLC0415

    return pdf_file.render(statement, branding)


def _decrypt_file(vault: Vault, file: StatementFile) -> bytes:
    return zlib.decompress(vault.open(file.sealed, get_seal_context(file.id)))


def get_seal_context(statement_id: int) -> bytes:
    return b"statement %d" % statement_id
