"""Signed requests mutated byte by byte: none may be accepted or write anything."""

import asyncio
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from random import Random

import asyncpg

from fuzz import mutations
from fuzz.connection_pool import ConnectionPool
from fuzz.signed_requests import SignedRequest

_CONCURRENCY = 16
_CASE_INSENSITIVE_HEX_HEADERS = ("x-webhook-signature", "x-hub-signature-256")
_KINDS_WITH_UNSIGNED_QUERY = ("pos", "partner", "partner webhook", "provider", "provider's form")


@dataclass(frozen=True)
class Forgery:
    signed: SignedRequest
    part: str
    mutation: str
    value: bytes

    def __str__(self) -> str:
        return f"{self.signed.kind}, {self.part}, {self.mutation}: {self.value!r}"

    def encode(self) -> bytes:
        return self.signed.with_part(self.part, self.value).encode()


def build_forgeries(signed: SignedRequest) -> Iterator[Forgery]:
    """Yield all mutations to the signed parts, except those that may be accepted."""
    for part, value in signed.parts.items():
        if part in signed.unsigned_parts:
            continue
        changes = mutations.mutate(value) if part == "body" else mutations.mutate_header(value)
        for mutation, mutant in changes:
            if explain_acceptance(signed, part, mutant) is None:
                yield Forgery(signed, part, mutation, mutant)


def explain_acceptance(signed: SignedRequest, part: str, mutant: bytes) -> str | None:
    """Return why the mutated request may be accepted, or None if it must be rejected."""
    original = signed.parts[part]
    if part not in ("method", "target", "body") and mutant.strip(b" \t") == original:
        return "HTTP strips white space around a header value"
    if part in ("method", "target") and mutant.strip(b" ") == original:
        return "several spaces in the request line are read as one"
    if part in _CASE_INSENSITIVE_HEX_HEADERS and mutant.lower() == original:
        return "the hex digits of a webhook signature are case-insensitive"
    return _explain_accepted_target(signed, mutant) if part == "target" else None


def _explain_accepted_target(signed: SignedRequest, mutant: bytes) -> str | None:
    original, path = signed.parts["target"], mutant.partition(b"?")[0]
    if mutant == b"/":
        return "the gateway redirects everybody from / to the console"
    if signed.kind not in _KINDS_WITH_UNSIGNED_QUERY:
        return None
    if path == original:
        return "the query is not signed, and these operations ignore it"
    if signed.kind == "provider's form" and path == original.removesuffix(b"/flows"):
        return "the provider signs only the body, and its other path ignores this body"
    return None


def sample_forgeries(forgeries: Iterable[Forgery], divisor: int, seed: int) -> list[Forgery]:
    rng = Random(seed)
    return [item for item in forgeries if rng.randrange(divisor) == 0]


async def find_accepted(
    forgeries: Iterable[Forgery], pools: dict[str, ConnectionPool]
) -> list[str]:
    """Send all forgeries and return those that were accepted or caused a server error."""
    pending, accepted = iter(forgeries), []

    async def work() -> None:
        for forgery in pending:
            status = await send_and_get_status(forgery.encode(), pools[forgery.signed.service])
            if status is not None and not 400 <= status < 500:
                accepted.append(f"{status} {forgery}")

    async with asyncio.TaskGroup() as group:
        for _ in range(_CONCURRENCY):
            group.create_task(work())
    return accepted


async def send_and_get_status(data: bytes, pool: ConnectionPool) -> int | None:
    """Return the status, or None if the connection was closed on an unreadable request."""
    try:
        return (await pool.send_bytes(data)).status_code
    except (asyncio.IncompleteReadError, ConnectionError):
        return None


async def wait_until_idle(database_url: str) -> dict[str, str]:
    """Wait up to 50 seconds until no table changes and no background work is due.

    Tables must stay equal for two seconds, because a queued message on a busy machine may be sent
    later than the poll interval. Returns the table digests.
    """
    digests, equal_count = await digest_tables(database_url), 0
    for _ in range(100):
        await asyncio.sleep(0.5)
        before, digests = digests, await digest_tables(database_url)
        equal_count = equal_count + 1 if digests == before else 0
        if equal_count >= 4 and await _is_work_done(database_url):
            return digests
    raise AssertionError("the installation does not become idle")


async def _is_work_done(database_url: str) -> bool:
    """Return whether audit entries are sealed, and new numbers compared with the other book."""
    connection = await asyncpg.connect(database_url)
    try:
        has_work = await connection.fetchval(
            """SELECT EXISTS (SELECT FROM audit_entries WHERE hash IS NULL)
                      OR EXISTS (SELECT FROM number_checks)"""
        )
        return not has_work
    finally:
        await connection.close()


async def digest_tables(database_url: str) -> dict[str, str]:
    """Return a digest of each table.

    Equal digests mean that no row was inserted, updated, or deleted. `last_used_at` of API keys is
    excluded because it is stored a few seconds after use, and `nodes` because nodes
    report their state.
    """
    connection = await asyncpg.connect(database_url)
    try:
        tables = await connection.fetch(
            """SELECT format('%I.%I', schemaname, tablename) AS name FROM pg_tables
               WHERE schemaname IN ('public', 'messenger') AND tablename <> 'nodes' ORDER BY 1"""
        )
        return {
            name: await connection.fetchval(
                f"SELECT count(*) || ' ' || coalesce(sum(hashtext("
                f"(to_jsonb(t) - 'last_used_at')::text)), 0) FROM {name} t"
            )
            for (name,) in tables
        }
    finally:
        await connection.close()
