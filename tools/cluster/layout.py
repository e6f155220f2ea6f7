"""Cluster names, ports, folders and secrets, chosen at the first start and then kept."""

import secrets
import socket
from pathlib import Path
from typing import Final

import msgspec

from tapgate.core import private_files
from tools.cluster import ClusterError

#: Below the ephemeral range, so that an outgoing connection cannot take a port.
_PORTS: Final = range(10_000, 30_000)
_FILE_NAME: Final = "cluster.json"


class Size(msgspec.Struct, frozen=True, kw_only=True):
    etcd: int = 3
    postgres: int = 3
    gateway: int = 3
    messenger: int = 2

    def list_names(self, kind: str) -> list[str]:
        return [f"{kind}-{number}" for number in range(1, getattr(self, kind) + 1)]


class Layout(msgspec.Struct, frozen=True, kw_only=True):
    """Contents of `cluster.json`."""

    size: Size
    #: By name: `etcd-1`, `etcd-1 peer`, `postgres-1`, `postgres-1 api`, `valkey`, `gateway-1`, ...
    ports: dict[str, int]
    admin_password: str
    #: By PostgreSQL role.
    passwords: dict[str, str]

    def __repr__(self) -> str:
        return "Layout(...)"


#: Entry points of HAProxy.
GATEWAYS: Final = "gateways"
MESSENGERS: Final = "messengers"
PRIMARY: Final = "primary"
REPLICAS: Final = "replicas"
#: PostgreSQL roles.
SUPERUSER: Final = "postgres"
REPLICATION_USER: Final = "replicator"
REWIND_USER: Final = "rewinder"
OWNER: Final = "tapgate"

ADMIN_EMAIL: Final = "admin@example.com"


def load_layout(folder: Path, size: Size) -> Layout:
    """Return the layout stored in the folder, or create one of this size."""
    path = folder / _FILE_NAME
    if path.exists():
        try:
            return msgspec.json.decode(path.read_bytes(), type=Layout)
        except msgspec.MsgspecError as error:
            raise ClusterError(f"{path} is damaged. Delete {folder} to start over") from error
    layout = Layout(
        size=size,
        ports=_choose_ports(size),
        admin_password=secrets.token_urlsafe(12),
        passwords={
            role: secrets.token_urlsafe(18)
            for role in (SUPERUSER, REPLICATION_USER, REWIND_USER, OWNER)
        },
    )
    private_files.write(path, [msgspec.json.format(msgspec.json.encode(layout)).decode()])
    return layout


def _choose_ports(size: Size) -> dict[str, int]:
    names = [GATEWAYS, MESSENGERS, PRIMARY, REPLICAS, "valkey"]
    for kind in ("etcd", "postgres", "gateway", "messenger"):
        names += size.list_names(kind)
    names += [f"{name} peer" for name in size.list_names("etcd")]
    names += [f"{name} api" for name in size.list_names("postgres")]
    ports: dict[str, int] = {}
    while len(ports) < len(names):
        port = secrets.choice(_PORTS)
        if port not in ports.values() and is_free(port):
            ports[names[len(ports)]] = port
    return ports


def is_free(port: int) -> bool:
    try:
        with socket.create_server(("127.0.0.1", port)):
            return True
    except OSError:
        return False
