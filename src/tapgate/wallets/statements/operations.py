"""Operations on statements: build, issue as a file, download, and remove after expiry."""

import asyncio
import secrets
import zlib
from datetime import datetime, timedelta
from typing import Final, NamedTuple, NoReturn

from tapgate.api.request_context import RequestContext
from tapgate.api.services import Services
from tapgate.audit.trail import AuditTrail
from tapgate.errors import ApiError, Code
from tapgate.runtime.background import run_periodically
from tapgate.runtime.thread_pool import BoundedThreadPool
from tapgate.schemas.wallets import StatementRequest
from tapgate.subscribers import pins
from tapgate.subscribers import queries as subscribers
from tapgate.subscribers.model import Subscriber, decode_subscriber_id
from tapgate.subscribers.restriction import require_subscriber_access
from tapgate.wallets.statements import csv_file, pdf_file, queries
from tapgate.wallets.statements.model import FileFormat, Statement, parse_period
from tapgate.wallets.statements.queries import StatementFile

_trail = AuditTrail("subscriber")

LINK_LIFETIME: Final = timedelta(hours=24)
#: Maximum number of files of one subscriber, including expired files that are not yet removed.
MAX_FILES: Final = 100

_CLEANUP_INTERVAL_SECONDS: Final = 600
_RENDERERS: Final = {"csv": csv_file.render, "pdf": pdf_file.render}
#: Long statements take seconds to render, which would block the event loop.
rendering_threads: Final = BoundedThreadPool("statements", threads=1, max_pending=8)


class StatementLink(NamedTuple):
    """Link to a file. The token is a bearer credential."""

    token: str
    expires_at: datetime


async def build_statement(
    context: RequestContext, request: StatementRequest
) -> tuple[Subscriber, Statement]:
    period = parse_period(request)
    services = context.services
    subscriber = await subscribers.get_accessible(
        services.database,
        context.caller,
        services.clock(),
        decode_subscriber_id(request.subscriber_id),
    )
    if request.pin is not None:
        async with services.transaction() as tx:
            await pins.verify_pin(
                tx, context.actor, subscriber.id, request.pin, pin_verifier=services.pin_verifier
            )
    zone = services.settings.timezone
    generated_at = services.clock()
    activity = await queries.load_activity(
        services.database, subscriber.account_id, period.start(zone), period.end(zone)
    )
    statement = Statement(
        id=services.new_id(),
        subscriber_id=subscriber.id,
        account_id=subscriber.account_id,
        holder_name=subscriber.name,
        phone_number=subscriber.phone_number,
        currency=subscriber.currency,
        zone=zone,
        period=period,
        opening_balance=activity.opening_balance,
        movements=activity.movements,
        generated_at=generated_at,
    )
    return subscriber, statement


async def issue_file(
    request: RequestContext, subscriber: Subscriber, statement: Statement, format: FileFormat
) -> StatementLink:
    """Render and store a file, so that later transactions do not change an issued statement."""
    services = request.services
    compressed = await rendering_threads.run(_render_compressed, statement, format)
    sealed = services.vault.seal(compressed, _get_seal_context(statement.id))
    link = StatementLink(secrets.token_urlsafe(32), statement.generated_at + LINK_LIFETIME)
    async with services.transaction() as tx:
        # The subscriber may have become restricted during rendering. Because of the lock, either
        # this check rejects the file or a later restriction deletes it.
        restricted = await subscribers.lock_restriction(tx, subscriber.id)
        await require_subscriber_access(
            tx, request.caller, services.clock(), subscriber.id, restricted=restricted
        )
        if await queries.count_files(tx, subscriber.id) >= MAX_FILES:
            raise ApiError(
                Code.RATE_LIMITED,
                f"The subscriber already has {MAX_FILES} statement files,"
                " which expire after 24 hours.",
                headers={"Retry-After": str(_CLEANUP_INTERVAL_SECONDS)},
            )
        await queries.add_file(
            tx,
            StatementFile(statement.id, format, statement.period, sealed),
            subscriber,
            token_hash=_hash_token(services, link.token),
            created_at=statement.generated_at,
            expires_at=link.expires_at,
        )
        await _trail.record(tx, request.actor, subscriber.public_id, "statement_issued")
    return link


async def fetch_file(services: Services, token: str) -> tuple[StatementFile, bytes] | None:
    """Return the file and its content for a token, or None if the token is invalid or expired."""
    file = await queries.find_file(
        services.database, _hash_token(services, token), services.clock()
    )
    if file is None:
        return None
    return file, await asyncio.to_thread(_decrypt_file, services, file)


async def remove_expired(services: Services) -> NoReturn:
    """Remove expired files periodically."""

    async def remove_batches() -> None:
        while await queries.remove_expired(services.database, services.clock()):
            pass

    await run_periodically(remove_batches, every=_CLEANUP_INTERVAL_SECONDS, name="statements")


def _render_compressed(statement: Statement, format: FileFormat) -> bytes:
    return zlib.compress(_RENDERERS[format](statement))


def _decrypt_file(services: Services, file: StatementFile) -> bytes:
    return zlib.decompress(services.vault.open(file.sealed, _get_seal_context(file.id)))


def _hash_token(services: Services, token: str) -> bytes:
    return services.vault.keyed_hash("statement link", token.encode())


def _get_seal_context(statement_id: int) -> bytes:
    return b"statement %d" % statement_id
