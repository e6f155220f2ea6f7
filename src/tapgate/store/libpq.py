"""PostgreSQL's own programs, told the address that the drivers here are told by a URL."""

import os
from collections.abc import Mapping
from typing import NamedTuple
from urllib.parse import parse_qsl, quote, unquote, urlencode, urlsplit

from tapgate.store import StoreError

#: What libpq knows in a URL. Anything else is a setting of the session, as asyncpg has it.
_PARAMETERS = frozenset(
    "application_name channel_binding client_encoding connect_timeout dbname"
    " fallback_application_name gssencmode gsslib host hostaddr keepalives keepalives_count"
    " keepalives_idle keepalives_interval krbsrvname load_balance_hosts passfile port require_auth"
    " requirepeer service servicefile ssl_max_protocol_version ssl_min_protocol_version sslcert"
    " sslcertmode sslcrl sslcrldir sslkey sslmode sslnegotiation sslrootcert sslsni"
    " target_session_attrs tcp_user_timeout user".split()
)


class Address(NamedTuple):
    """Where the database is, and the environment with which a program gets in."""

    url: str  # without a password: every user of the machine can read a command line
    environ: Mapping[str, str]


def address(url: str) -> Address:
    parts = urlsplit(url)
    login, at, hosts = parts.netloc.rpartition("@")
    user, _, password = login.partition(":")
    password = unquote(password)
    kept, options = [], []
    for name, value in parse_qsl(parts.query, keep_blank_values=True):
        if name == "password":
            password = value
        elif name == "sslpassword":
            raise StoreError(  # the environment has no place for it
                "sslpassword would be on the command line of PostgreSQL's programs, for all to see:"
                " keep it in a service file (PGSERVICEFILE), and name the service in the URL"
            )
        elif name == "database":
            kept.append(("dbname", value))
        elif name == "options":
            options.append(value)
        elif name in _PARAMETERS:
            kept.append((name, value))
        else:
            options.append(f"-c {name}={_escaped(value)}")
    if options:
        kept.append(("options", " ".join(options)))
    query = f"?{urlencode(kept, quote_via=quote)}" if kept else ""
    stripped = f"{parts.scheme}://{user}{at}{hosts}{parts.path}{query}"
    return Address(stripped, _environment(password))


def _environment(password: str) -> dict[str, str]:
    """Without Tapgate's own secrets, which are none of their business."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("TAPGATE_")}
    if password:
        kept["PGPASSWORD"] = password
    return kept | {"LC_ALL": "C"}


def _escaped(value: str) -> str:
    return value.replace("\\", "\\\\").replace(" ", "\\ ")
