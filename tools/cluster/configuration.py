"""Configuration of etcd, Patroni, PostgreSQL, Valkey, HAProxy and the Tapgate nodes."""

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, Final

import msgspec

from tapgate.core.settings.dev_secrets import load_dev_form_key, load_dev_secrets
from tools.cluster.layout import (
    ADMIN_EMAIL,
    GATEWAYS,
    MESSENGERS,
    OWNER,
    PRIMARY,
    REPLICAS,
    REPLICATION_USER,
    REWIND_USER,
    SUPERUSER,
    Layout,
)

HOST: Final = "127.0.0.1"
DATABASE_NAME: Final = "tapgate"
#: Seconds until the standbys replace a leader that stopped responding. Patroni allows no less.
LEADER_TTL_SECONDS: Final = 20

#: Settings that all members share, stored in etcd. Loop and retry intervals are as short as the TTL
#: allows. A commit waits for any one standby, and with the strict mode never for none.
_SHARED_SETTINGS: Final = {
    "ttl": LEADER_TTL_SECONDS,
    "loop_wait": 2,
    "retry_timeout": 5,
    "failsafe_mode": True,  # the leader continues without etcd while it reaches all members
    "primary_start_timeout": 0,  # fail over immediately if PostgreSQL crashes
    "synchronous_mode": "quorum",
    "synchronous_mode_strict": True,
    "postgresql": {
        "use_pg_rewind": True,
        "use_slots": True,
        "parameters": {"max_connections": 200, "shared_buffers": "64MB", "wal_keep_size": "64MB"},
    },
}
_HAPROXY_BACKEND: Final = """
listen {name}
    bind {host}:{port}
    mode {mode}
    {options}
    option httpchk GET {check}
    http-check expect status 200
    default-server inter 500ms fastinter 250ms fall 2 rise 1 {server_options}
"""
_HAPROXY_GLOBAL: Final = """
global
    maxconn 4000
defaults
    option redispatch 1
    timeout connect 2s
    timeout check 1s
    timeout client 70s
    timeout server 70s
    timeout http-keep-alive 70s
"""


def build_url(layout: Layout, name: str) -> str:
    return f"http://{HOST}:{layout.ports[name]}"


def build_database_url(
    layout: Layout, user: str = OWNER, database: str = DATABASE_NAME, *, host: str = HOST
) -> str:
    """Return the primary's URL through HAProxy."""
    login = f"{user}:{layout.passwords[user]}"
    return f"postgresql://{login}@{host}:{layout.ports[PRIMARY]}/{database}"


def build_multi_host_url(layout: Layout) -> str:
    """Return the URL of all PostgreSQL nodes, for a client that finds the primary."""
    hosts = ",".join(f"{HOST}:{layout.ports[name]}" for name in layout.size.list_names("postgres"))
    login = f"{OWNER}:{layout.passwords[OWNER]}"
    return f"postgresql://{login}@{hosts}/{DATABASE_NAME}?target_session_attrs=read-write"


def build_etcd_arguments(layout: Layout, name: str, folder: Path) -> list[str]:
    peers = {item: build_url(layout, f"{item} peer") for item in layout.size.list_names("etcd")}
    members = ",".join(f"{item}={url}" for item, url in peers.items())
    options = {
        "name": name,
        "data-dir": folder / "data",
        "listen-peer-urls": peers[name],
        "initial-advertise-peer-urls": peers[name],
        "listen-client-urls": build_url(layout, name),
        "advertise-client-urls": build_url(layout, name),
        "initial-cluster": members,
        "logger": "zap",
        "log-level": "warn",
    }
    return [f"--{option}={value}" for option, value in options.items()]


def build_valkey_arguments(layout: Layout, folder: Path) -> list[str]:
    options = {
        "bind": HOST,
        "port": layout.ports["valkey"],
        "dir": folder,
        "save": "",
        "appendonly": "no",
    }
    return [word for name, value in options.items() for word in (f"--{name}", str(value))]


def build_patroni_configuration(
    layout: Layout, name: str, folder: Path, programs: Path
) -> dict[str, Any]:
    """Return a member's configuration. It is JSON, which is also YAML."""
    rest_api, postgres = (f"{HOST}:{layout.ports[f'{name}{part}']}" for part in (" api", ""))
    return {
        "scope": "tapgate",
        "name": name,
        "restapi": {"listen": rest_api, "connect_address": rest_api},
        "etcd3": {
            "hosts": [f"{HOST}:{layout.ports[item]}" for item in layout.size.list_names("etcd")]
        },
        "bootstrap": {
            "dcs": _SHARED_SETTINGS,
            "initdb": [
                {"encoding": "UTF8"},
                {"locale-provider": "builtin"},
                {"builtin-locale": "C.UTF-8"},
                {"locale": "C"},
                "data-checksums",
            ],
        },
        "postgresql": {
            "listen": postgres,
            "connect_address": postgres,
            "data_dir": str(folder / "data"),
            "bin_dir": str(programs),
            "pgpass": str(folder / "pgpass"),
            "authentication": {
                role: {"username": user, "password": layout.passwords[user]}
                for role, user in (
                    ("superuser", SUPERUSER),
                    ("replication", REPLICATION_USER),
                    ("rewind", REWIND_USER),
                )
            },
            "parameters": {"unix_socket_directories": ""},
            "pg_hba": [
                f"host replication {REPLICATION_USER} {HOST}/32 scram-sha-256",
                f"host all all {HOST}/32 scram-sha-256",
            ],
            "basebackup": [{"checkpoint": "fast"}],
            # A member that diverged and cannot be rewound is copied from the leader again.
            "remove_data_directory_on_rewind_failure": True,
            "remove_data_directory_on_diverged_timelines": True,
        },
    }


def build_haproxy_configuration(layout: Layout, database_hosts: Iterable[str] = ()) -> str:
    """Return the configuration; the primary is also reachable at the database hosts."""
    gateways, messengers = layout.size.list_names("gateway"), layout.size.list_names("messenger")
    http = {"mode": "http", "options": "option forwardfor", "server_options": "maxconn 900"}
    tcp = {
        "mode": "tcp",
        # Connections that listen for notifications are idle most of the time.
        "options": "option clitcpka\n    option srvtcpka\n    timeout client 24h\n"
        "    timeout server 24h",
        # A session on a former primary must not outlive its role.
        "server_options": "on-marked-down shutdown-sessions",
    }
    binds = "".join(f"bind {host}:{layout.ports[PRIMARY]}\n    " for host in database_hosts)
    return _HAPROXY_GLOBAL + "".join(
        (
            _build_backend(layout, GATEWAYS, gateways, check="/ready", **http),
            _build_backend(layout, MESSENGERS, messengers, check="/ready", **http),
            _build_database_backend(
                layout, PRIMARY, check="/primary", **(tcp | {"options": binds + tcp["options"]})
            ),
            _build_database_backend(layout, REPLICAS, check="/replica", **tcp),
        )
    )


def _build_backend(layout: Layout, name: str, servers: Sequence[str], **values: str) -> str:
    head = _HAPROXY_BACKEND.format(name=name, host=HOST, port=layout.ports[name], **values)
    return head + "".join(
        f"    server {server} {HOST}:{layout.ports[server]} check\n" for server in servers
    )


def _build_database_backend(layout: Layout, name: str, **values: str) -> str:
    """Build a PostgreSQL entry point; Patroni's REST API reports each node's role."""
    head = _HAPROXY_BACKEND.format(name=name, host=HOST, port=layout.ports[name], **values)
    return head + "".join(
        f"    server {server} {HOST}:{layout.ports[server]}"
        f" check port {layout.ports[f'{server} api']}\n"
        for server in layout.size.list_names("postgres")
    )


def build_tapgate_environ(layout: Layout, folder: Path) -> dict[str, str]:
    """Return the settings that all gateway and messenger nodes share."""
    secrets = load_dev_secrets(folder)
    load_dev_form_key(folder)
    return {
        "TAPGATE_DATABASE_URL": build_database_url(layout),
        "TAPGATE_CACHE_URL": f"redis://{HOST}:{layout.ports['valkey']}",
        "TAPGATE_PUBLIC_URL": build_url(layout, GATEWAYS),
        "TAPGATE_GATEWAY_URL": build_url(layout, GATEWAYS),
        "TAPGATE_MESSENGER_URL": build_url(layout, MESSENGERS),
        "TAPGATE_TRUSTED_PROXIES": HOST,
        "TAPGATE_DRAIN_SECONDS": "3",  # longer than HAProxy takes to detect it
        "TAPGATE_REQUIRE_SYNC_REPLICATION": "on",
        "TAPGATE_JWT_SECRET": secrets.jwt_secret,
        "TAPGATE_SECRET_KEY": secrets.secret_key,
        "TAPGATE_SERVICE_SECRETS": msgspec.json.encode(secrets.service_secrets).decode(),
        "TAPGATE_MESSENGER_FLOW_PRIVATE_KEY": str(folder / "forms.pem"),
        "TAPGATE_ADMIN_EMAIL": ADMIN_EMAIL,
        "TAPGATE_ADMIN_PASSWORD": layout.admin_password,
    }


def build_node_environ(layout: Layout, name: str, folder: Path) -> dict[str, str]:
    """Return the settings of one gateway or messenger node."""
    variable = "TAPGATE_PORT" if name.startswith("gateway") else "TAPGATE_MESSENGER_PORT"
    return {"TAPGATE_DATA_DIR": str(folder), variable: str(layout.ports[name])}
