"""Starts, supervises and stops all cluster processes."""

import asyncio
import contextlib
import platform
import signal
import sys
import time
from collections.abc import Awaitable, Callable, Container, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Final

import asyncpg
import msgspec
import psutil

from tapgate.core import private_files
from tapgate.runtime.store.file_lock import FileLock
from tapgate.runtime.store.server_user import ServerUser, resolve_server_user
from tools.cluster import ClusterError, configuration
from tools.cluster.layout import OWNER, SUPERUSER, Layout, Size, is_free, load_layout
from tools.cluster.processes import NodeProcess, find_postmaster, send_signal
from tools.cluster.programs import Program, Programs, find_programs
from tools.cluster.status import StatusReader

_START_TIMEOUT_SECONDS: Final = 120.0
_STOP_TIMEOUT_SECONDS: Final = 30.0
_POLL_SECONDS: Final = 0.2
_TAPGATE: Final = Path(sys.executable).with_name("tapgate")


class Cluster:
    """All cluster nodes by name, for example `postgres-1` and `gateway-2`.

    `settings` override the settings of all Tapgate nodes. Nodes in `multi_host_nodes` find the
    primary themselves instead of through HAProxy. `database_hosts` are nodes with an address of
    their own for HAProxy's database entry.
    """

    def __init__(
        self,
        folder: Path,
        *,
        size: Size | None = None,
        settings: Mapping[str, str] = MappingProxyType({}),
        multi_host_nodes: Container[str] = (),
        database_hosts: Mapping[str, str] = MappingProxyType({}),
    ) -> None:
        self.folder = folder.resolve()
        self.nodes: dict[str, NodeProcess] = {}
        self._requested_size = size or Size()
        self._settings = settings
        self._multi_host_nodes = multi_host_nodes
        self._database_hosts = database_hosts
        self.lock = FileLock(self.folder / "lock")
        self._layout: Layout | None = None

    @property
    def layout(self) -> Layout:
        assert self._layout is not None
        return self._layout

    def prepare(self) -> None:
        """Choose the layout and write all configuration, without starting a process."""
        self.folder.mkdir(mode=0o711, parents=True, exist_ok=True)
        if not self.lock.acquire():
            raise ClusterError(f"another cluster is already running in {self.folder}")
        user = resolve_server_user(self.folder / "postgres-1")
        if not user.can_search(self.folder):
            raise ClusterError(
                f"PostgreSQL cannot run as root, and its system user cannot access {self.folder}."
                " Start the cluster as a regular user, or choose another folder: make cluster DATA="
            )
        programs = find_programs(user)
        self._layout = load_layout(self.folder, self._requested_size)
        self._kill_leftovers()
        for name, port in self.layout.ports.items():
            if not is_free(port):
                raise ClusterError(f"port {port} of {name} is in use by another program")
        self._build_nodes(programs, user)

    async def start(self, report: Callable[[str], None] = lambda _: None) -> None:
        """Start all nodes and wait until they serve requests, or raise ClusterError."""
        async with StatusReader(self.layout) as status:
            report("Starting etcd, Patroni with PostgreSQL, Valkey and HAProxy ...")
            self._start_nodes("etcd", "valkey", "haproxy", "postgres")
            await self._wait_for("a primary with a synchronous standby", status.is_replicating)
            await self._create_database()
            report("Starting the gateway and messenger nodes ...")
            self._start_nodes("gateway", "messenger")
            await self._wait_for("all Tapgate nodes", status.is_serving)

    async def supervise(self) -> None:
        """Restart processes that exit, as a service manager does, until canceled."""
        while True:
            for node in self.nodes.values():
                if node.is_wanted and not node.is_running:
                    node.start()
                    self._record_processes()
            await asyncio.sleep(_POLL_SECONDS)

    async def stop(self) -> None:
        """Stop all processes gracefully; kill those that do not exit in time."""
        leader = await self._find_leader()
        names = list(self.nodes)
        replicas = [name for name in names if name.startswith("postgres") and name != leader]
        steps = (
            [name for name in names if name.startswith(("gateway", "messenger"))],
            # The leader stops last, so that no standby is promoted in between.
            [*replicas, "haproxy", "valkey"],
            [name for name in names if name == leader],
            [name for name in names if name.startswith("etcd")],
        )
        for step in steps:
            nodes = [self.nodes[name] for name in step if name in self.nodes]
            for node in nodes:
                node.terminate()
            await asyncio.gather(*(node.wait(_STOP_TIMEOUT_SECONDS) for node in nodes))
        self._get_record().unlink(missing_ok=True)
        self.lock.release()

    async def _find_leader(self) -> str | None:
        if self._layout is None or not self.nodes:
            return None
        async with StatusReader(self.layout) as status:
            return await status.find_leader()

    def _start_nodes(self, *kinds: str) -> None:
        for name, node in self.nodes.items():
            if name.startswith(kinds):
                node.start()
        self._record_processes()

    async def _wait_for(self, target: str, is_reached: Callable[[], Awaitable[bool]]) -> None:
        deadline = time.monotonic() + _START_TIMEOUT_SECONDS
        while not await is_reached():
            for node in self.nodes.values():
                if node.is_wanted and not node.is_running:
                    raise ClusterError(f"{node.name} exited during startup. See {node.log}")
            if time.monotonic() > deadline:
                raise ClusterError(
                    f"{target} did not start within {_START_TIMEOUT_SECONDS:.0f} seconds."
                    f" See the logs in {self.folder}"
                )
            await asyncio.sleep(_POLL_SECONDS)

    async def _create_database(self) -> None:
        """Create the database, retrying while the primary is still being promoted."""
        deadline = time.monotonic() + _START_TIMEOUT_SECONDS
        while True:
            try:
                return await self._try_to_create_database()
            except (OSError, asyncpg.PostgresError, asyncpg.InterfaceError) as error:
                if time.monotonic() > deadline:
                    raise ClusterError(f"the primary is not available: {error}") from error
            await asyncio.sleep(_POLL_SECONDS)

    async def _try_to_create_database(self) -> None:
        url = configuration.build_database_url(self.layout, SUPERUSER, "postgres")
        connection = await asyncpg.connect(url, timeout=5)
        try:
            if not await connection.fetchval("SELECT 1 FROM pg_roles WHERE rolname = $1", OWNER):
                password = self.layout.passwords[OWNER]  # URL-safe characters only
                await connection.execute(f"CREATE ROLE {OWNER} LOGIN PASSWORD '{password}'")
            await connection.execute(f"GRANT pg_monitor TO {OWNER}")  # to see the standbys
            with contextlib.suppress(asyncpg.DuplicateDatabaseError):
                await connection.execute(
                    f"CREATE DATABASE {configuration.DATABASE_NAME} OWNER {OWNER}"
                )
        finally:
            connection.terminate()

    def _build_nodes(self, programs: Programs, user: ServerUser) -> None:
        layout = self.layout
        for name in layout.size.list_names("etcd"):
            folder = self._make_folder(name)
            arguments = configuration.build_etcd_arguments(layout, name, folder)
            # Debian builds etcd 3.4 also for processors that its authors do not support.
            self._add(name, programs.etcd, arguments, ETCD_UNSUPPORTED_ARCH=_get_go_architecture())
        folder = self._make_folder("valkey")
        self._add("valkey", programs.valkey, configuration.build_valkey_arguments(layout, folder))
        folder = self._make_folder("haproxy")
        file = folder / "haproxy.cfg"
        file.write_text(
            configuration.build_haproxy_configuration(layout, self._database_hosts.values())
        )
        self._add("haproxy", programs.haproxy, ["-db", "-f", str(file)])
        for name in layout.size.list_names("postgres"):
            self._add_postgres(name, programs, user)
        shared = configuration.build_tapgate_environ(layout, self.folder) | dict(self._settings)
        for kind, command in (("gateway", "serve"), ("messenger", "messenger")):
            for name in layout.size.list_names(kind):
                own = configuration.build_node_environ(layout, name, self._make_folder(name))
                if name in self._multi_host_nodes:
                    own["TAPGATE_DATABASE_URL"] = configuration.build_multi_host_url(layout)
                if host := self._database_hosts.get(name):
                    own["TAPGATE_DATABASE_URL"] = configuration.build_database_url(
                        layout, host=host
                    )
                self._add(name, Program([str(_TAPGATE)], {}), [command], **(shared | own))

    def _add_postgres(self, name: str, programs: Programs, user: ServerUser) -> None:
        folder = self._make_folder(name)
        user.chown(folder)
        settings = configuration.build_patroni_configuration(
            self.layout, name, folder, programs.postgres_dir
        )
        file = folder / "patroni.yml"
        private_files.write(file, [msgspec.json.encode(settings).decode()])
        user.chown(file)
        self.nodes[name] = NodeProcess(
            name,
            [*programs.patroni.command, str(file)],
            folder,
            environ=programs.patroni.environ,
            user=user,
            pgdata=folder / "data",
        )

    def _add(self, name: str, program: Program, arguments: list[str], **environ: str) -> None:
        self.nodes[name] = NodeProcess(
            name,
            [*program.command, *arguments],
            self.folder / name,
            environ={**program.environ, **environ},
        )

    def _make_folder(self, name: str) -> Path:
        folder = self.folder / name
        folder.mkdir(mode=0o700, exist_ok=True)
        return folder

    def _get_record(self) -> Path:
        return self.folder / "processes.json"

    def _record_processes(self) -> None:
        """Store the processes for the next start, in case this process is killed."""
        started = {}
        for node in self.nodes.values():
            with contextlib.suppress(psutil.NoSuchProcess):
                if node.pid is not None:
                    started[str(node.pid)] = psutil.Process(node.pid).create_time()
        private_files.write(self._get_record(), [msgspec.json.encode(started).decode()])

    def _kill_leftovers(self) -> None:
        """Kill processes that an earlier cluster left running in this folder."""
        found = []
        if lines := private_files.read(self._get_record()):
            for pid, created in msgspec.json.decode(lines[0], type=dict[int, float]).items():
                with contextlib.suppress(psutil.NoSuchProcess):
                    process = psutil.Process(pid)
                    if process.create_time() == created:
                        found += [process, *process.children(recursive=True)]
        for name in self.layout.size.list_names("postgres"):
            if postmaster := find_postmaster(self.folder / name / "data"):
                found += [postmaster, *postmaster.children()]
        send_signal(found, signal.SIGKILL)
        psutil.wait_procs(found, timeout=_STOP_TIMEOUT_SECONDS)


def _get_go_architecture() -> str:
    machine = {"aarch64": "arm64", "x86_64": "amd64"}
    return machine.get(platform.machine(), platform.machine())
