"""The cluster under test, as a load target."""

import asyncio
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from drivers.processes import ADMIN
from tapgate_sandbox.clock import ERROR_FILE_NAME, write_offset
from tools.cluster import configuration
from tools.cluster.cluster import Cluster
from tools.cluster.layout import GATEWAYS, MESSENGERS, Size
from tools.cluster.status import LEADER, SYNC_STANDBY, StatusReader
from torture.cluster import isolation
from torture.cluster.isolation import SmallDisk, is_isolated
from torture.cluster.readiness import ReadinessWatch
from torture.cluster.relay import SlowRelay
from torture.installation import UnhealthyError

_HEALTHY_TIMEOUT_SECONDS: Final = 120.0
_NO_LIMIT: Final = "1000000"
MAX_CLOCK_OFFSET: Final = 10
_SETTINGS: Final = {
    "TAPGATE_ADMIN_EMAIL": ADMIN["email"],
    "TAPGATE_ADMIN_PASSWORD": ADMIN["password"],
    "TAPGATE_RATE_LIMIT": _NO_LIMIT,
    "TAPGATE_RATE_BURST": _NO_LIMIT,
    "TAPGATE_MESSENGER_RATE": _NO_LIMIT,
    "TAPGATE_DEMO": "off",
    "TAPGATE_RECEIPTS": "off",
    "TAPGATE_MAX_CLOCK_OFFSET": str(MAX_CLOCK_OFFSET),
}
#: Both ways to reach the primary are tested: HAProxy, and several hosts in the URL.
_MULTI_HOST_NODES: Final = ("gateway-2",)
#: The node that loses the way to the database.
_CUT_NODE: Final = "gateway-3"
#: Role of all PostgreSQL nodes except the leader.
STANDBYS: Final = "standbys"


class ClusterTarget:
    def __init__(
        self, folder: Path, size: Size, settings: Mapping[str, str], cache_relay: SlowRelay
    ) -> None:
        folder.chmod(0o755)  # PostgreSQL may run as another user
        self.cluster = Cluster(
            folder / "cluster",
            size=size,
            settings=_SETTINGS
            | {"TAPGATE_CACHE_URL": f"redis://{configuration.HOST}:{cache_relay.port}"}
            | dict(settings),
            multi_host_nodes=_MULTI_HOST_NODES,
            database_hosts={_CUT_NODE: isolation.DATABASE_ADDRESS} if is_isolated() else {},
        )
        self.cache_relay = cache_relay
        self._disks = {
            name: SmallDisk(self.cluster.folder / name) for name in size.list_names("postgres")
        }
        #: Set while a fault lasts.
        self.fault_started = asyncio.Event()
        self.readiness = ReadinessWatch({})  # until `prepare` chooses the ports

    def prepare(self) -> None:
        if is_isolated():
            isolation.prepare_network()
            for disk in self._disks.values():
                disk.mount()
        self.cluster.prepare()
        self.cache_relay.upstream_port = self.cluster.layout.ports["valkey"]
        self.readiness = ReadinessWatch(self.list_gateway_ports())
        for name in self.list_gateway_ports():
            self.set_clock_error(name, 0)

    def get_disk(self, name: str) -> SmallDisk:
        """Return the disk of a PostgreSQL node."""
        return self._disks[name]

    async def stop(self) -> None:
        await self.cluster.stop()
        if is_isolated():
            for disk in self._disks.values():
                disk.unmount()

    def set_clock_error(self, gateway: str, seconds: float) -> None:
        write_offset(self.cluster.folder / gateway / ERROR_FILE_NAME, seconds)

    @property
    def port(self) -> int:
        return self.cluster.layout.ports[GATEWAYS]

    @property
    def database_url(self) -> str:
        return configuration.build_database_url(self.cluster.layout)

    @property
    def messenger_url(self) -> str:
        return configuration.build_url(self.cluster.layout, MESSENGERS)

    def list_gateway_ports(self) -> dict[str, int]:
        layout = self.cluster.layout
        return {name: layout.ports[name] for name in layout.size.list_names("gateway")}

    def list_ports(self, client: int) -> Sequence[int]:
        """Return HAProxy's port and two gateway ports: duplicates go to different nodes."""
        gateways = list(self.list_gateway_ports().values())
        return [self.port, *(gateways[(client + step) % len(gateways)] for step in range(2))]

    def restart(self) -> None:
        raise AssertionError("the cluster restarts its processes itself")

    async def find_node(self, role: str, choice: int = 0) -> str:
        """Return a node by its role in replication, or by its kind."""
        names = await self.list_nodes(role)
        return names[choice % len(names)]

    async def list_nodes(self, role: str) -> list[str]:
        """Return nodes by their role in replication, or by their kind."""
        if role not in (LEADER, SYNC_STANDBY, STANDBYS):
            return [name for name in self.cluster.nodes if name.startswith(role)]
        async with StatusReader(self.cluster.layout) as status:
            members = await status.list_members()
        if role == STANDBYS:
            return [member.name for member in members if member.role != LEADER]
        return [member.name for member in members if member.role == role]

    async def wait_until_healthy(self, *, workers: int = 1) -> None:
        """Wait until all nodes are up and replicating; raise UnhealthyError on timeout."""
        deadline = time.monotonic() + _HEALTHY_TIMEOUT_SECONDS
        async with StatusReader(self.cluster.layout) as status:
            while not (await status.is_replicating() and await status.is_serving()):
                if time.monotonic() > deadline:
                    members = await status.list_members()
                    raise UnhealthyError(
                        f"not healthy after {_HEALTHY_TIMEOUT_SECONDS:.0f} seconds: {members}"
                    )
                await asyncio.sleep(0.5)
