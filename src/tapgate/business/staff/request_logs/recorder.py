"""Records requests: queued in memory and written in batches, outside the request.

Failed requests are what people search for, so all of them are logged, up to a rate at which
something else is wrong. Of successful requests a sample is enough at high load: a node writes at
most `MAX_SUCCEEDED_PER_SECOND`, so their cost and table size are bounded. Requests that find the
queue full are not logged, only counted.
"""

import asyncio
import contextlib
from collections.abc import Callable
from typing import Final, NamedTuple, NoReturn, TypeVar

import asyncpg
import msgspec

from tapgate.auth.principals import Principal
from tapgate.business.staff.request_logs.redaction import (
    MAX_BODY_BYTES,
    is_word,
    redact_body,
    redact_error,
    redact_path,
    redact_query,
)
from tapgate.core.id_generator import IdGenerator
from tapgate.core.settings import Settings
from tapgate.http.api.request_context import RequestContext
from tapgate.http.endpoint import Endpoint
from tapgate.runtime.background import run_periodically
from tapgate.runtime.store.database import Database
from tapgate_client import ids
from tapgate_client.errors import ApiError

T = TypeVar("T", bound=msgspec.Struct)

#: Per node; each worker has an equal share.
MAX_SUCCEEDED_PER_SECOND: Final = 25
#: Per process.
MAX_FAILED_PER_SECOND: Final = 1_000
#: Queues hold this many seconds of requests, for bursts and while the database is unavailable.
_MAX_QUEUED_SECONDS: Final = 5
_FLUSH_INTERVAL_SECONDS: Final = 1.0
_COLUMNS: Final = (
    "id", "key_id", "caller_type", "caller_name", "method", "endpoint", "path", "query", "status",
    "code", "duration_us", "request_id", "ip", "request_body", "response_body", "idempotency_key",
    "transaction_id", "owner_id",
)  # fmt: skip
_MAX_DURATION_US: Final = 2**31 - 1


class _PendingRequest(NamedTuple):
    id: int
    key_id: int
    caller_type: str
    caller_name: str
    method: str
    endpoint: Endpoint
    path: str
    query: bytes
    status: int
    seconds: float
    request_id: str
    ip: str
    request_body: bytes
    response_body: bytes
    idempotency_header: str | None
    owner_id: int | None


class _ErrorBody(msgspec.Struct):
    code: str | None = None


class _MoneyRequest(msgspec.Struct):
    request_id: str | None = None


class _Receipt(msgspec.Struct):
    transaction_id: str | None = None


class _Queue:
    """Requests to write, at most `rate` per second."""

    def __init__(self, rate: int) -> None:
        self.rate = rate
        self.requests: list[_PendingRequest] = []

    @property
    def is_full(self) -> bool:
        return len(self.requests) >= self.rate * _MAX_QUEUED_SECONDS

    def get_batch(self) -> list[_PendingRequest]:
        return self.requests[: self.rate]

    def remove_batch(self, size: int) -> None:
        del self.requests[:size]


class RequestLog:
    """Request log of one process. Requests that are not written are reported to `count_dropped`."""

    def __init__(
        self,
        settings: Settings,
        database: Database,
        new_id: IdGenerator,
        count_dropped: Callable[[int], None],
    ) -> None:
        self.is_enabled = settings.request_log_days > 0
        self.has_bodies = settings.request_log_bodies
        self.database = database
        self._new_id = new_id
        self.failed = _Queue(MAX_FAILED_PER_SECOND)
        self.succeeded = _Queue(max(1, MAX_SUCCEEDED_PER_SECOND // settings.workers))
        self._flush_lock = asyncio.Lock()
        self._count_dropped = count_dropped

    def add(
        self,
        context: RequestContext,
        endpoint: Endpoint,
        status: int,
        seconds: float,
        response_body: bytes,
    ) -> None:
        """Queue a request, unless its caller has no key. Called for every request."""
        caller = context.caller
        if caller is None or caller.key_id is None or not self.is_enabled:
            return
        queue = self.succeeded if status < 400 else self.failed
        if queue.is_full:
            self._count_dropped(1)
            return
        # The bodies of a payment name its idempotency key and its transaction.
        has_bodies = self.has_bodies or endpoint.moves_money
        is_kept = has_bodies and len(response_body) <= MAX_BODY_BYTES
        queue.requests.append(
            _PendingRequest(
                id=self._new_id(),
                key_id=caller.key_id,
                caller_type=caller.kind,
                caller_name=caller.name,
                method=context.method,
                endpoint=endpoint,
                path=context.path,
                query=context.query,
                status=status,
                seconds=seconds,
                request_id=context.request_id,
                ip=context.ip,
                request_body=context.body if has_bodies else b"",
                # An error code is always logged.
                response_body=response_body if is_kept or status >= 400 else b"",
                idempotency_header=context.get_header(b"idempotency-key"),
                owner_id=_get_owner_id(caller),
            )
        )

    async def run(self) -> NoReturn:
        await run_periodically(self.flush, every=_FLUSH_INTERVAL_SECONDS, name="request_log")

    async def flush(self) -> None:
        """Write a batch of queued requests. They stay queued if the database is unavailable."""
        async with self._flush_lock:
            failed = self.failed.get_batch()
            succeeded = self.succeeded.get_batch()
            batch = failed + succeeded
            if not batch:
                return
            try:
                await self._write(batch)
            except ApiError:
                raise
            except BaseException:
                self._count_dropped(len(batch))
                self._remove(len(failed), len(succeeded))
                raise
            self._remove(len(failed), len(succeeded))

    def _remove(self, failed: int, succeeded: int) -> None:
        self.failed.remove_batch(failed)
        self.succeeded.remove_batch(succeeded)

    async def stop(self) -> None:
        """Write the last requests, unless the database is unavailable."""
        with contextlib.suppress(ApiError, asyncpg.PostgresError, OSError):
            while self.failed.requests or self.succeeded.requests:
                await self.flush()

    async def _write(self, batch: list[_PendingRequest]) -> None:
        rows = [self._build_row(request) for request in batch]
        async with self.database.transaction() as tx:
            # A lost request after a crash does not matter, so the write need not wait for the disk.
            await tx.execute("SET LOCAL synchronous_commit = off")
            await tx.copy_records_to_table("request_logs", columns=_COLUMNS, records=rows)

    def _build_row(self, request: _PendingRequest) -> tuple[object, ...]:
        is_failed = request.status >= 400
        return (
            request.id,
            request.key_id,
            request.caller_type,
            request.caller_name,
            request.method,
            request.endpoint.path,
            redact_path(request.path, request.endpoint.path),
            redact_query(request.query, request.endpoint.query_type),
            request.status,
            _get_code(request.response_body) if is_failed else None,
            min(int(request.seconds * 1_000_000), _MAX_DURATION_US),
            request.request_id,
            request.ip,
            self._redact_request(request) if self.has_bodies else None,
            self._redact_response(request) if self.has_bodies else None,
            *_find_payment(request),
            request.owner_id,
        )

    def _redact_request(self, request: _PendingRequest) -> str | None:
        endpoint = request.endpoint
        return redact_body(request.request_body, endpoint.body_struct, endpoint.response_type)

    def _redact_response(self, request: _PendingRequest) -> str | None:
        if request.status >= 400:
            return redact_error(request.response_body)
        endpoint = request.endpoint
        return redact_body(request.response_body, endpoint.response_type, endpoint.body_struct)


def _get_owner_id(caller: Principal) -> int | None:
    """Return the processor, partner or agent whose key made the request."""
    if caller.owner is not None:
        return caller.owner.id
    return caller.processor_id or caller.partner_id


def _get_code(body: bytes) -> str | None:
    return _decode(body, _ErrorBody).code


def _find_payment(request: _PendingRequest) -> tuple[str | None, int | None]:
    """Return the idempotency key and the transaction of a request that moves money."""
    if not request.endpoint.moves_money:
        return None, None
    key = request.idempotency_header or _decode(request.request_body, _MoneyRequest).request_id
    public_id = _decode(request.response_body, _Receipt).transaction_id or ""
    return key if key and is_word(key) else None, ids.decode(ids.TRANSACTION, public_id)


def _decode(body: bytes, kind: type[T]) -> T:
    """Return the part of a JSON object that a struct declares, empty if it is something else."""
    try:
        return msgspec.json.decode(body, type=kind)
    except (msgspec.MsgspecError, ValueError, RecursionError):
        return kind()
