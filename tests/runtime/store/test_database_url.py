"""Database URLs: parameters of managed databases are honored, ignored or rejected."""

import socket

import pytest

from cases import each
from drivers.processes import free_port
from runtime.store.conftest import TlsProxy
from tapgate.runtime.store import StoreError
from tapgate.runtime.store.connect import open_connection
from tapgate.runtime.store.database import Database
from tapgate.runtime.store.migrate import migrate, open_checked_connection
from tapgate.runtime.store.signals import Signals
from tapgate.runtime.store.url import parse_url

SECRET = "s3cret"


def add_parameters(url: str, parameters: str) -> str:
    return f"{url}&{parameters}"


@each(
    "url, hosts, login",
    [
        ("postgresql://ada:s3cret@db/x", [("db", None)], ("ada", SECRET, "x")),
        ("postgres://ada:p%40s%3A%2F%25@db/x", [("db", None)], ("ada", "p@s:/%", "x")),
        ("postgresql://one:5433,two:5434/x", [("one", 5433), ("two", 5434)], (None, None, "x")),
        ("postgresql://one,two/x?port=5,6", [("one", 5), ("two", 6)], (None, None, "x")),
        ("postgresql:///x?host=one,two&port=7", [("one", 7), ("two", 7)], (None, None, "x")),
        ("postgresql://%2FRun%2Fa/x", [("/Run/a", None)], (None, None, "x")),
        ("postgresql://[::1]:5433/x", [("::1", 5433)], (None, None, "x")),
        (
            "postgresql://?user=ada&password=s3cret&dbname=a+b",
            [(None, None)],
            ("ada", SECRET, "a b"),
        ),
        ("postgresql:///x", [(None, None)], (None, None, "x")),
    ],
)
def test_url_yields_hosts_and_credentials(
    url: str, hosts: list[tuple[str | None, int | None]], login: tuple[str | None, ...]
) -> None:
    parsed = parse_url(url)
    assert parsed.hosts == hosts
    assert (parsed.user, parsed.password, parsed.database) == login
    assert SECRET not in parsed.dsn


@each(
    "parameters, settings",
    [
        (
            "options=-c%20search_path%3Da%2Cb%20--lock-timeout%3D5s",
            {"search_path": "a,b", "lock_timeout": "5s"},
        ),
        ("options=-cwork_mem%3D4MB", {"work_mem": "4MB"}),
        ("options=-c%20search_path%3D%22a%5C%20b%22", {"search_path": '"a b"'}),
        (
            "search_path=a&statement_timeout=60000",
            {"search_path": "a", "statement_timeout": "60000"},
        ),
        ("application_name=shop&fallback_application_name=other", {"application_name": "shop"}),
        ("fallback_application_name=other", {"application_name": "other"}),
    ],
)
def test_url_yields_session_settings(parameters: str, settings: dict[str, str]) -> None:
    assert parse_url(f"postgresql://db/x?{parameters}").settings == settings


@each(
    "parameters, error",
    [
        (
            "sslmod=require",
            "has the unsupported parameter 'sslmod'. Pass session settings as",
        ),
        ("require_auth=scram-sha-256", "unsupported parameter 'require_auth'"),
        ("requirepeer=postgres", "unsupported parameter 'requirepeer'"),
        ("replication=database", "unsupported parameter 'replication'"),
        ("pgbouncer=true", "unsupported parameter 'pgbouncer'"),
        ("ssl=false", "unsupported parameter 'ssl'"),
        (
            "channel_binding=require&sslmode=require",
            "channel_binding=require, which is accepted only with sslmode=verify-full",
        ),
        ("gssencmode=require", "gssencmode=require, which is not supported. Remove it, or set"),
        ("sslsni=0", "sslsni=0, which is not supported"),
        ("client_encoding=latin1", "client_encoding=latin1, which is not supported"),
        ("connect_timeout=soon", "must have a whole number for connect_timeout"),
        ("keepalives_idle=1.5", "must have a whole number for keepalives_idle"),
        ("sslrootcert=/nowhere.pem", "names a file that does not exist: sslrootcert=/nowhere.pem"),
        (
            "sslrootcert=system&sslmode=require",
            "sslrootcert=system, which requires sslmode=verify-full",
        ),
        ("options=endpoint%3Dx", "has options other than -c name=value"),
        ("options=-c", "has options other than -c name=value"),
        ("options=-c%20synchronous_commit%3Doff", "must not set synchronous_commit"),
        ("options=--Session-Replication-Role%3Dreplica", "must not set session_replication_role"),
        ("host=a,b&port=1,2,3", "must have one port, or as many ports as hosts"),
    ],
)
async def test_unsupported_parameter_is_rejected_in_one_line_without_the_password(
    parameters: str, error: str
) -> None:
    location = "" if parameters.startswith("host=") else "db"
    url = f"postgresql://ada:{SECRET}@{location}/x?{parameters}"
    for attempt in (Database.connect, open_checked_connection):
        with pytest.raises(StoreError) as raised:
            await attempt(url)
        message = str(raised.value)
        assert message.startswith("the database URL ")
        assert error in message
        assert SECRET not in message
        assert "\n" not in message


@each(
    "url",
    [
        "postgresql://ada:s3cret/more@db/x",
        "postgresql://ada:12/s3cret@db/x",
        "postgresql://ada:s3cret#more@db/x",
        "postgresql://ada:12?s3cret=more@db/x",
        "postgresql://ada:12?sslrootcert=s3cret@db/x",
        "postgresql://ada:more@12?gssencmode=s3cret@db/x",
        "postgresql://ada:12/more?s3cret=more@db/x",
        "postgresql://ada:[s3cret@db/x",
        "postgresql://ada:s3cret@db:s3cret/x",
        "postgresql://ada:s3cret\u2100@db/x",
        "postgresql://ada:s3cret@,db/x",
    ],
)
async def test_malformed_url_is_rejected_without_the_password(url: str) -> None:
    with pytest.raises(StoreError) as raised:
        await open_checked_connection(url)
    assert SECRET not in str(raised.value)


async def test_harmless_parameters_of_managed_databases_are_accepted(database_url: str) -> None:
    harmless = (
        "channel_binding=prefer&gssencmode=disable&sslmode=prefer&sslcompression=0&sslsni=1"
        "&connect_timeout=10&keepalives=1&keepalives_idle=30&keepalives_interval=10"
        "&keepalives_count=3&tcp_user_timeout=30000&target_session_attrs=read-write"
        "&load_balance_hosts=random&client_encoding=UTF8&sslcertmode=allow&sslnegotiation=postgres"
    )
    connection = await open_checked_connection(add_parameters(database_url, harmless))
    try:
        assert await connection.fetchval("SELECT 1") == 1
    finally:
        await connection.close()


def test_channel_binding_is_accepted_when_the_certificate_is_verified() -> None:
    assert parse_url("postgresql://db/x?sslmode=verify-full&channel_binding=require")


def test_system_certificates_also_verify_the_host_name() -> None:
    context = parse_url("postgresql://db/x?sslrootcert=system").tls
    assert context is not None
    assert context.check_hostname


def test_jdbc_ssl_parameter_requires_tls() -> None:
    assert "sslmode=require" in parse_url("postgresql://db/x?ssl=true").dsn


async def test_session_settings_are_applied(database_url: str) -> None:
    url = add_parameters(
        database_url, "application_name=shop&options=-c%20lock_timeout%3D7s%20-c%20jit%3Don"
    )
    database = await Database.connect(url)
    try:
        values = [
            await database.fetchval("SELECT current_setting($1)", name)
            for name in ("application_name", "lock_timeout", "jit")
        ]
    finally:
        await database.close()
    assert values == ["shop", "7s", "off"]  # Tapgate's own settings take precedence


async def test_unknown_session_setting_is_rejected(database_url: str) -> None:
    with pytest.raises(StoreError, match='unrecognized configuration parameter "no_such"'):
        await open_checked_connection(add_parameters(database_url, "options=-c%20no_such%3D1"))


async def test_unresponsive_host_does_not_prevent_connecting_to_the_next(database_url: str) -> None:
    """The first host's socket accepts connections and never reads from them."""
    folder = parse_url(database_url).hosts[0][0]
    with socket.create_server(("127.0.0.1", 0)) as silent:
        port = silent.getsockname()[1]
        url = database_url.replace(f"host={folder}", f"host=127.0.0.1,{folder}&port={port},5432")
        connection = await open_checked_connection(
            add_parameters(url, "connect_timeout=1&sslmode=disable")
        )
    await connection.close()


async def test_host_that_refuses_connections_does_not_prevent_connecting_to_the_next(
    database_url: str,
) -> None:
    folder = parse_url(database_url).hosts[0][0]
    ports = f"port={free_port()},5432"
    url = database_url.replace(f"host={folder}", f"host=127.0.0.1,{folder}&{ports}")
    await (await open_checked_connection(url)).close()


async def test_server_with_other_session_attributes_is_not_used(database_url: str) -> None:
    with pytest.raises(StoreError, match="None of the hosts match"):
        await open_checked_connection(add_parameters(database_url, "target_session_attrs=standby"))
    await (
        await open_checked_connection(
            add_parameters(database_url, "target_session_attrs=prefer-standby")
        )
    ).close()


@pytest.mark.parametrize("keepalives", [0, 1])
async def test_keepalives_are_set_on_the_socket(tcp_url: str, keepalives: int) -> None:
    connection = await open_connection(
        f"{tcp_url}?keepalives={keepalives}&keepalives_idle=42&keepalives_interval=7"
        "&keepalives_count=3&tcp_user_timeout=9000",
        timeout=30,
    )
    try:
        sock = connection._transport.get_extra_info("socket")
        assert sock.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE) == keepalives
        values = [
            sock.getsockopt(socket.IPPROTO_TCP, option)
            for option in (socket.TCP_KEEPIDLE, socket.TCP_KEEPINTVL, socket.TCP_KEEPCNT)
        ]
        assert (values == [42, 7, 3]) == bool(keepalives)
        assert sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT) == 9000
    finally:
        await connection.close()


async def test_tls_is_used_by_migrations_queries_and_signals(
    database_url: str, tls_proxy: TlsProxy
) -> None:
    verified = (
        f"sslmode=verify-full&sslrootcert={tls_proxy.root_certificate}&channel_binding=require"
    )
    url = f"{tls_proxy.build_url(database_url)}?{verified}"
    assert await migrate(url) == []
    database, signals = await Database.connect(url), Signals(url)
    try:
        assert await database.fetchval("SELECT 1") == 1
        await signals.start()
        assert signals.is_listening
    finally:
        await signals.stop()
        await database.close()
