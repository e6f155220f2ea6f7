"""Database URLs: libpq parameters, validated and translated for asyncpg.

asyncpg sends every parameter that it does not know to the server as a startup setting, and
PgBouncer rejects most of these. This module therefore applies each parameter, ignores it if it has
no effect here, or rejects the URL, so that a misspelled `sslmode` is never ignored.
"""

import functools
import re
import ssl
from collections.abc import Mapping, Sequence
from itertools import zip_longest
from pathlib import Path
from typing import NamedTuple
from urllib.parse import SplitResult, parse_qsl, quote, unquote, urlencode, urlsplit, urlunsplit

from tapgate.runtime.store import StoreError

#: Supported by asyncpg in a DSN.
_DRIVER_PARAMETERS = frozenset(
    "gsslib krbsrvname passfile service ssl_max_protocol_version ssl_min_protocol_version sslcert"
    " sslcrl sslkey sslmode sslnegotiation sslpassword sslrootcert target_session_attrs".split()
)
_FILE_PARAMETERS = ("sslrootcert", "sslcert", "sslkey", "sslcrl")
#: Database location and credentials; `database` is asyncpg's name for `dbname`.
_LOCATION_PARAMETERS = frozenset("host port user password dbname database".split())
_NUMERIC_PARAMETERS = frozenset(
    "connect_timeout keepalives keepalives_count keepalives_idle keepalives_interval"
    " tcp_user_timeout".split()
)
#: Values to ignore, by parameter. Other values require features that asyncpg does not have.
_IGNORED_PARAMETERS: Mapping[str, frozenset[str]] = {
    "channel_binding": frozenset({"disable", "prefer"}),
    "client_encoding": frozenset({"auto", "utf8", "utf-8"}),
    "gssdelegation": frozenset({"0"}),
    "gssencmode": frozenset({"disable", "prefer"}),
    "load_balance_hosts": frozenset({"disable", "random"}),
    "sslcertmode": frozenset({"allow"}),
    "sslcompression": frozenset({"0", "1"}),
    "sslsni": frozenset({"1"}),
}
#: Session settings accepted directly in a URL; others go into `options=-c name=value`.
_SESSION_SETTINGS = frozenset(
    "application_name client_connection_check_interval idle_in_transaction_session_timeout"
    " lock_timeout search_path statement_timeout".split()
)
_APPLIED_PARAMETERS = (
    _DRIVER_PARAMETERS
    | _LOCATION_PARAMETERS
    | _NUMERIC_PARAMETERS
    | _SESSION_SETTINGS
    | {"options", "fallback_application_name"}
)
#: Settings that could lose an acknowledged commit, skip triggers, or corrupt data.
_DANGEROUS_SETTINGS = frozenset(
    "client_encoding session_replication_role standard_conforming_strings synchronous_commit"
    " zero_damaged_pages".split()
)
_SETTING_PATTERN = re.compile(r"([A-Za-z_][A-Za-z0-9_.-]*)=(.*)", re.DOTALL)
_WORD_PATTERN = re.compile(r"(?:\\.|\S)+", re.DOTALL)
_ESCAPE_PATTERN = re.compile(r"\\(.)", re.DOTALL)
_PORT_PATTERN = re.compile(r":\d*$")


class DatabaseUrl(NamedTuple):
    dsn: str  # contains neither the location nor the user and password
    hosts: Sequence[tuple[str | None, int | None]]
    user: str | None
    password: str | None
    database: str | None
    tls: ssl.SSLContext | None
    target_session_attrs: str | None
    settings: Mapping[str, str]
    #: By libpq name, in libpq units: seconds, counts, and milliseconds for tcp_user_timeout.
    numeric_parameters: Mapping[str, int]


@functools.lru_cache(maxsize=16)
def parse_url(url: str) -> DatabaseUrl:
    """Parse and validate a URL, or raise StoreError.

    Error messages quote neither the user nor the password.
    """
    try:
        return _parse(urlsplit(url))
    except StoreError:
        # An unencoded ? turns the rest of a password into parameters, which the error may quote.
        if "@" in url.partition("?")[2]:
            raise _build_unencoded_error() from None
        raise
    except ValueError:  # its message may contain the password
        raise _build_url_error("is not valid. Percent-encode special characters") from None


def replace_database(url: str, name: str) -> str:
    """Return the URL of another database on the same server."""
    parts = urlsplit(url)
    query = [item for item in parse_qsl(parts.query) if item[0] not in ("dbname", "database")]
    return urlunsplit(parts._replace(path=f"/{name}", query=urlencode(query, quote_via=quote)))


def _parse(parts: SplitResult) -> DatabaseUrl:
    query = {name: value for name, value in parse_qsl(parts.query) if value}
    if "@" in parts.path or parts.fragment:
        raise _build_unencoded_error()
    _translate_jdbc(query)
    _require_supported(query)
    settings = _parse_settings(query)
    driver = {name: value for name, value in query.items() if name in _DRIVER_PARAMETERS}
    attributes = driver.pop("target_session_attrs", None)
    login, _, hosts = parts.netloc.rpartition("@")
    user, _, password = login.partition(":")
    return DatabaseUrl(
        tls=_build_system_tls(driver),
        dsn=f"postgresql://?{urlencode(driver, quote_via=quote)}",
        hosts=_parse_hosts(hosts, query),
        user=unquote(user) or query.get("user"),
        password=unquote(password) or query.get("password"),
        database=_get_database(parts, query),
        target_session_attrs=attributes,
        settings=settings,
        numeric_parameters={
            name: _parse_number(name, query[name]) for name in _NUMERIC_PARAMETERS & query.keys()
        },
    )


def _translate_jdbc(query: dict[str, str]) -> None:
    """Translate JDBC's `ssl=true`, which libpq accepts too."""
    if query.get("ssl") == "true":
        del query["ssl"]
        query.setdefault("sslmode", "require")


def _require_supported(query: Mapping[str, str]) -> None:
    for name, value in query.items():
        if name in _IGNORED_PARAMETERS:
            is_certificate_verified = (
                name == "channel_binding" and query.get("sslmode") == "verify-full"
            )
            if value.lower() not in _IGNORED_PARAMETERS[name] and not (
                is_certificate_verified and value == "require"
            ):
                raise _build_unsupported_error(name, value)
        elif name not in _APPLIED_PARAMETERS:
            raise _build_url_error(
                f"has the unsupported parameter {name!r}."
                " Pass session settings as options=-c%20name=value"
            )
    for name in _FILE_PARAMETERS:
        value = query.get(name, "system")
        if value != "system" and not Path(value).is_file():
            raise _build_url_error(f"names a file that does not exist: {name}={value}")


def _build_unsupported_error(name: str, value: str) -> StoreError:
    if name == "channel_binding" and value == "require":
        return _build_url_error(
            "has channel_binding=require, which is accepted only with sslmode=verify-full:"
            " the server's certificate is then verified instead"
        )
    accepted = " or ".join(sorted(_IGNORED_PARAMETERS[name]))
    return _build_url_error(
        f"has {name}={value}, which is not supported. Remove it, or set it to {accepted}"
    )


def _parse_settings(query: Mapping[str, str]) -> dict[str, str]:
    settings = _parse_options(query.get("options", ""))
    settings |= {name: query[name] for name in _SESSION_SETTINGS & query.keys()}
    if fallback := query.get("fallback_application_name"):
        settings.setdefault("application_name", fallback)
    if dangerous := sorted(_DANGEROUS_SETTINGS & settings.keys()):
        raise _build_url_error(f"must not set {dangerous[0]}: Tapgate depends on it")
    return settings


def _parse_options(options: str) -> dict[str, str]:
    """Parse session settings from libpq's `options`, a string of command-line options."""
    settings = {}
    words = (_ESCAPE_PATTERN.sub(r"\1", word) for word in _WORD_PATTERN.findall(options))
    for word in words:
        text = next(words, "") if word == "-c" else word.removeprefix("--").removeprefix("-c")
        match = _SETTING_PATTERN.fullmatch(text)
        if match is None or text == word:
            raise _build_url_error("has options other than -c name=value and --name=value")
        settings[match[1].replace("-", "_").lower()] = match[2]
    return settings


def _build_system_tls(driver: dict[str, str]) -> ssl.SSLContext | None:
    """Return a TLS context for `sslrootcert=system`, or None for any other value.

    The context trusts the system's CAs and verifies the host name. The TLS parameters that it
    replaces are removed from `driver`.
    """
    if driver.get("sslrootcert") != "system":
        return None
    if driver.pop("sslmode", "verify-full") != "verify-full":
        raise _build_url_error("has sslrootcert=system, which requires sslmode=verify-full")
    del driver["sslrootcert"]
    context = ssl.create_default_context()
    context.set_alpn_protocols(["postgresql"])
    if certificate := driver.pop("sslcert", None):
        password = driver.pop("sslpassword", "")
        context.load_cert_chain(certificate, driver.pop("sslkey", None), lambda: password)
    return context


def _parse_hosts(
    location: str, query: Mapping[str, str]
) -> Sequence[tuple[str | None, int | None]]:
    if location:
        parsed_hosts = [urlsplit(f"//{host}") for host in location.split(",")]
        if not all(host.hostname for host in parsed_hosts):
            raise _build_url_error("has an empty host")
        # `hostname` is lowercased, but a host may be a percent-encoded socket directory path.
        names = [unquote(_PORT_PATTERN.sub("", host.netloc)).strip("[]") for host in parsed_hosts]
        ports = [host.port for host in parsed_hosts]
        if "port" in query and not any(ports):
            ports = _parse_ports(query["port"], len(names))
    else:
        names = query["host"].split(",") if "host" in query else []
        ports = _parse_ports(query.get("port", ""), max(1, len(names)))
    return list(zip_longest(names, ports))


def _parse_ports(text: str, count: int) -> list[int | None]:
    ports = [_parse_number("port", port) if port else None for port in text.split(",")]
    if len(ports) == 1:
        return ports * count
    if len(ports) != count:
        raise _build_url_error("must have one port, or as many ports as hosts")
    return ports


def _get_database(parts: SplitResult, query: Mapping[str, str]) -> str | None:
    name = unquote(parts.path.removeprefix("/"))
    return name or query.get("dbname") or query.get("database")


def _parse_number(name: str, text: str) -> int:
    if not re.fullmatch(r"-?\d{1,9}", text):
        raise _build_url_error(f"must have a whole number for {name}")
    return int(text)


def _build_unencoded_error() -> StoreError:
    return _build_url_error(
        "has an unencoded @, :, /, ? or # in its user or password. Percent-encode it"
    )


def _build_url_error(message: str) -> StoreError:
    return StoreError(f"the database URL {message}")
