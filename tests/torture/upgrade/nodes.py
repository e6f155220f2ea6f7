"""Gateway nodes behind a load balancer, each running one release or another."""

import asyncio
import contextlib
import json
import secrets
from collections.abc import AsyncIterator, Mapping, Sequence
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

from drivers.load_balancer import LoadBalancer
from drivers.processes import ADMIN, build_environ, free_port
from torture.upgrade.releases import Release

_NO_LIMIT: Final = "1000000"
#: Longer than the load balancer needs to notice.
_DRAIN_SECONDS: Final = "5"


class GatewayNode:
    def __init__(self, folder: Path, environ: Mapping[str, str], balancer: LoadBalancer) -> None:
        folder.mkdir()
        self._log = folder / "log"
        self._log.touch()
        self._port = free_port()
        self._environ = build_environ(folder / "data", **environ, TAPGATE_PORT=str(self._port))
        self._balancer = balancer
        self._process: asyncio.subprocess.Process | None = None

    @property
    def _address(self) -> str:
        return f"http://127.0.0.1:{self._port}"

    async def start(self, release: Release) -> None:
        """Start a release on this node, and wait until the load balancer uses it."""
        self._process = await self._spawn(release)
        ready = asyncio.create_task(self._balancer.add(self._address))
        exited = asyncio.create_task(self._process.wait())
        await asyncio.wait({ready, exited}, return_when=asyncio.FIRST_COMPLETED)
        for task in (ready, exited):
            task.cancel()
        assert self._process.returncode is None, self._log.read_text()

    async def start_and_exit(self, release: Release) -> tuple[int, str]:
        """Start a release that cannot run; return its exit status and output."""
        offset = self._log.stat().st_size
        process = await self._spawn(release)
        return await process.wait(), self._log.read_bytes()[offset:].decode()

    async def stop(self) -> None:
        """Drain the node with SIGTERM, and require exit status 0."""
        if self._process is None:
            return
        process, self._process = self._process, None
        with contextlib.suppress(ProcessLookupError):
            process.terminate()
        status = await process.wait()
        self._balancer.remove(self._address)
        assert status == 0, self._log.read_text()

    def read_log(self) -> str:
        return self._log.read_text()

    async def _spawn(self, release: Release) -> asyncio.subprocess.Process:
        with self._log.open("ab") as log:
            return await asyncio.create_subprocess_exec(
                *release.build_command("serve"),
                env=release.build_environ(self._environ),
                cwd=release.source,
                stdout=log,
                stderr=log,
            )


class UpgradeTarget:
    """Nodes on one database, as a load target."""

    def __init__(
        self, folder: Path, database_url: str, balancer: LoadBalancer, address: str
    ) -> None:
        self.database_url = database_url
        self.port = urlsplit(address).port or 0
        self._folder = folder
        self._balancer = balancer
        self.environ = build_environ(
            folder / "commands",
            TAPGATE_DATABASE_URL=database_url,
            TAPGATE_SECRET_KEY=secrets.token_hex(32),
            TAPGATE_JWT_SECRET=secrets.token_hex(32),
            TAPGATE_SERVICE_SECRETS=json.dumps(
                {service: secrets.token_hex(32) for service in ("gateway", "messenger")}
            ),
            TAPGATE_ADMIN_EMAIL=ADMIN["email"],
            TAPGATE_ADMIN_PASSWORD=ADMIN["password"],
            TAPGATE_RATE_LIMIT=_NO_LIMIT,
            TAPGATE_RATE_BURST=_NO_LIMIT,
            TAPGATE_DRAIN_SECONDS=_DRAIN_SECONDS,
            TAPGATE_DEMO="off",
            TAPGATE_RECEIPTS="off",
        )
        self.nodes: list[GatewayNode] = []

    def add_node(self, *, workers: int) -> GatewayNode:
        settings = {name: value for name, value in self.environ.items() if "TAPGATE" in name}
        del settings["TAPGATE_DATA_DIR"]
        settings["TAPGATE_WORKERS"] = str(workers)
        folder = self._folder / f"node-{len(self.nodes)}"
        self.nodes.append(GatewayNode(folder, settings, self._balancer))
        return self.nodes[-1]

    def list_ports(self, client: int) -> Sequence[int]:
        return [self.port]

    def restart(self) -> None:
        raise AssertionError("no node is killed")

    async def wait_until_healthy(self, *, workers: int = 1) -> None:
        """Return immediately: there is always a node that is ready."""


@contextlib.asynccontextmanager
async def open_target(folder: Path, database_url: str) -> AsyncIterator[UpgradeTarget]:
    """Open a load balancer without nodes; stop all nodes at the end."""
    async with LoadBalancer.run() as (balancer, address):
        target = UpgradeTarget(folder, database_url, balancer, address)
        try:
            yield target
        finally:
            for node in target.nodes:
                await node.stop()
