"""Connections to a database, directly or through PgBouncer in session mode.

Session settings are applied after connecting, because PgBouncer rejects most of them as startup
parameters.
"""

import asyncio
import contextlib
import socket
from collections.abc import Collection, Iterable, Mapping, Sized
from types import SimpleNamespace
from typing import Any, Final

import asyncpg
from asyncpg import connect_utils

from tapgate.runtime.store import StoreError
from tapgate.runtime.store.hosts import FAILOVER_ERRORS, Host, connect_to_one
from tapgate.runtime.store.pipeline import PipelineProtocol
from tapgate.runtime.store.url import DatabaseUrl, parse_url

#: How long the probe waits for a server process for its second connection. A pooler in session mode
#: provides none while its pool is exhausted, so a timeout is not an error.
_PROBE_TIMEOUT_SECONDS = 2.0
_PROBE_ROUNDS = 3
_APPLICATION_NAME = "application_name"

APPLY_SETTINGS = """
    SELECT pg_backend_pid(),
           (SELECT count(set_config(name, value, false))
            FROM unnest($1::text[], $2::text[]) AS setting (name, value))"""

#: Prepared statement errors that occur if a pooler shares connections between transactions.
_SHARED_CONNECTION_ERRORS = (
    asyncpg.DuplicatePreparedStatementError,
    asyncpg.InvalidSQLStatementNameError,
)
#: Part of PgBouncer's error when a transaction begins in statement mode.
_STATEMENT_MODE = "statement pooling mode"
_NOT_SESSION_MODE = (
    "the connection pooler in front of PostgreSQL shares connections between transactions. Set"
    " pool_mode = session (PgBouncer), or connect to PostgreSQL directly"
)

#: PostgreSQL's built-in types have the same IDs, below this one, on every server.
_MAX_STABLE_TYPE_ID: Final = 10_000
#: Built-in type definitions that this process's connections have looked up, by type ID.
builtin_types: dict[int, list[Any]] = {}
_NAMED_STATEMENT: Final = SimpleNamespace(name="not executed")

#: URLs whose pooler has passed the session mode check.
session_pooled_urls: set[str] = set()


class Connection(asyncpg.Connection):  # type: ignore[misc]
    """Connection that looks built-in types up only once per process.

    asyncpg looks up each array type once per connection, which takes PostgreSQL longer than most
    statements.
    """

    __slots__ = ()

    async def _introspect_types(
        self, type_ids: Collection[int], seconds: float | None
    ) -> tuple[list[Any], Any]:
        if builtin_types.keys() >= set(type_ids):
            found = {id(types): types for types in map(builtin_types.__getitem__, type_ids)}
            return [item for types in found.values() for item in types], _NAMED_STATEMENT
        types, statement = await super()._introspect_types(type_ids, seconds)
        if max(type_ids) < _MAX_STABLE_TYPE_ID:
            builtin_types.update(dict.fromkeys(type_ids, types))
        return types, statement


class Record(asyncpg.Record):  # type: ignore[misc]
    """Result row that asyncpg does not reuse.

    asyncpg 0.31 and 0.32 link freed rows into a free list through their first column. A row without
    columns (`SELECT FROM accounts WHERE ... FOR UPDATE`) has no space for this link, so asyncpg
    writes past its end. The free list is for `asyncpg.Record` only, not for subclasses.
    """

    __slots__ = ()


def _create_protocol(*arguments: Any) -> asyncpg.protocol.Protocol:
    """Create a connection's protocol; other users of asyncpg in the process keep its own class."""
    is_own = any(argument is Record for argument in arguments)
    return (PipelineProtocol if is_own else asyncpg.protocol.Protocol)(*arguments)


# asyncpg has no parameter for the protocol class.
connect_utils.protocol = SimpleNamespace(Protocol=_create_protocol)


def _avoid_abstract_array_checks() -> None:
    """Let asyncpg recognize the usual array elements without calls of Python functions.

    asyncpg checks every element of an array argument against three abstract base classes, to find
    arrays of arrays. `isinstance` with several classes stops at the first that matches.
    """
    internals: Any = asyncpg.protocol.protocol
    internals.IterableABC = (tuple, list, str, bytes, Iterable)
    internals.SizedABC = (tuple, list, str, bytes, Sized)
    internals.MappingABC = dict


_avoid_abstract_array_checks()


async def open_connection(
    url: str,
    *,
    timeout: float,  # noqa: ASYNC109  a default; the URL may have another
    command_timeout: float | None = None,
    defaults: Mapping[str, str] | None = None,
    settings: Mapping[str, str] | None = None,
) -> asyncpg.Connection:
    """Connect to an available host in the URL; if it has several, to one that accepts writes.

    Settings in the URL override `defaults`, and `settings` override both, except for the
    application name. Raise StoreError if a pooler does not run in session mode.
    """
    target = parse_url(url)
    session = {**(defaults or {}), **target.settings, **(settings or {})}
    if _APPLICATION_NAME in target.settings:
        session[_APPLICATION_NAME] = target.settings[_APPLICATION_NAME]
    # `connect_timeout` applies to each host.
    seconds = float(max(0, target.numeric_parameters.get("connect_timeout", 0))) or timeout
    connection = await connect_once(target, seconds, command_timeout)
    try:
        _set_keepalives(connection, target.numeric_parameters)
        pid, _ = await connection.fetchrow(
            APPLY_SETTINGS, list(session), list(session.values()), timeout=seconds
        )
        # A pooler reports its own process id to its clients.
        if pid != connection.get_server_pid() and url not in session_pooled_urls:
            await _require_session_mode(connection, pid, target, seconds)
            session_pooled_urls.add(url)
    except _SHARED_CONNECTION_ERRORS as error:
        connection.terminate()
        raise StoreError(_NOT_SESSION_MODE) from error
    except BaseException:
        connection.terminate()
        raise
    return connection


async def connect_once(
    target: DatabaseUrl, seconds: float, command_timeout: float | None
) -> asyncpg.Connection:
    default = "read-write" if len(target.hosts) > 1 else None
    attributes = target.target_session_attrs or default
    if attributes != "prefer-standby":
        return await _connect_with(attributes, target, seconds, command_timeout)
    try:  # in half of the time, because silent standbys must not prevent use of the primary
        return await _connect_with("standby", target, seconds / 2, command_timeout)
    except FAILOVER_ERRORS:
        return await _connect_with("any", target, seconds, command_timeout)


async def _connect_with(
    attribute: str | None, target: DatabaseUrl, seconds: float, command_timeout: float | None
) -> asyncpg.Connection:
    async def connect(address: Host) -> asyncpg.Connection:
        host, port = address
        return await asyncpg.connect(
            target.dsn,
            host=host,
            port=port,
            user=target.user,
            password=target.password,
            database=target.database,
            ssl=target.tls,
            target_session_attrs=attribute,
            timeout=seconds,
            command_timeout=command_timeout,
            connection_class=Connection,
            record_class=Record,
        )

    return await connect_to_one(target.hosts, attribute, connect, seconds)


def _set_keepalives(connection: asyncpg.Connection, numbers: Mapping[str, int]) -> None:
    """Apply libpq's keepalive parameters: on by default, with the system's intervals."""
    sock: Any = connection._transport.get_extra_info("socket")
    if sock is None or sock.family not in (socket.AF_INET, socket.AF_INET6):
        return
    is_on = numbers.get("keepalives", 1) != 0
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, int(is_on))
    options = {"tcp_user_timeout": "TCP_USER_TIMEOUT"}
    if is_on:
        options |= {
            "keepalives_idle": "TCP_KEEPIDLE",
            "keepalives_interval": "TCP_KEEPINTVL",
            "keepalives_count": "TCP_KEEPCNT",
        }
    for name, option in options.items():
        if numbers.get(name, 0) > 0 and hasattr(socket, option):
            sock.setsockopt(socket.IPPROTO_TCP, getattr(socket, option), numbers[name])


async def _require_session_mode(
    connection: asyncpg.Connection, pid: int, target: DatabaseUrl, seconds: float
) -> None:
    """Require that the connection keeps its PostgreSQL server process.

    Raise StoreError or one of `_SHARED_CONNECTION_ERRORS` if it does not. A pooler in transaction
    mode assigns the same process to a second connection, or several processes in turn to the first
    connection.
    """
    pids = set()
    other = await connect_once(target, seconds, None)
    try:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_PROBE_TIMEOUT_SECONDS), other.transaction():
                if await _get_backend_pid(other) == pid:
                    raise StoreError(_NOT_SESSION_MODE)
                pids.add(await _get_backend_pid(connection))
    except asyncpg.ConnectionDoesNotExistError as error:
        if _STATEMENT_MODE in str(error):
            raise StoreError(_NOT_SESSION_MODE) from error
        raise
    finally:
        other.terminate()
    for _ in range(_PROBE_ROUNDS):
        pids.add(await _get_backend_pid(connection))
    if pids != {pid}:
        raise StoreError(_NOT_SESSION_MODE)


async def _get_backend_pid(connection: asyncpg.Connection) -> int:
    return int(await connection.fetchval("SELECT pg_backend_pid()"))
