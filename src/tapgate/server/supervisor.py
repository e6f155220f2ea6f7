"""Supervisor that starts, restarts and stops PostgreSQL and the workers of all services.

It binds the ports, starts PostgreSQL (unless a database URL is set), migrates the database, and
then starts the workers. Until a worker is ready, it responds on the ports itself. Processes that
exit after startup are restarted. On a stop signal, workers stop first and PostgreSQL last. If the
supervisor is killed, its workers detect that and exit. PostgreSQL keeps running until the next
start, which stops it before starting a new server.
"""

import asyncio
import contextlib
import errno
import signal
import socket
import time
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from tapgate.core.settings import Settings
from tapgate.core.settings.network import format_url
from tapgate.runtime.handover import LISTEN_BACKLOG
from tapgate.runtime.store import FolderInUseError, StoreError, postgres_releases
from tapgate.runtime.store.connection_budget import list_capacity_warnings
from tapgate.runtime.store.embedded import EmbeddedPostgres
from tapgate.runtime.store.migrate import check_schema, migrate
from tapgate.runtime.store.postgres_programs import read_embedded_version
from tapgate.server.child_process import ChildProcess, StartError, print_line
from tapgate.server.startup_responder import StartupResponder

_BIND_TIMEOUT_SECONDS = 2.0
_POSTGRES_CHECK_SECONDS = 0.5
#: Response bytes that the kernel accepts for a connection before it sends them.
MAX_UNSENT_BYTES = 32 * 1024
STOP_SIGNALS = [signal.SIGINT, signal.SIGTERM]
if signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:  # ignored under `nohup`
    STOP_SIGNALS.append(signal.SIGHUP)

_FIRST_ADMIN_VARIABLES = frozenset(
    {Settings.admin_email.variable, Settings.admin_password.variable}
)

#: Runs before the services start, and yields lines for the operator.
PrepareHook = Callable[[Settings, str], AsyncIterator[str]]
#: Returns the lines to print for the operator once all workers are ready.
StartupHints = Callable[[], Sequence[str]]


class Service(NamedTuple):
    name: str
    module: str  # run with `python -m`
    host: str
    port: int
    processes: int
    #: Unix socket on which the service listens, instead of a port.
    socket_path: Path | None = None
    #: Environment variables for this service only.
    variables: Mapping[str, str] = {}
    #: Maximum database connections of each process.
    database_connections: int = 0
    #: Environment variables with secrets that this service must not receive.
    withheld_variables: frozenset[str] = frozenset()

    @property
    def url(self) -> str:
        if self.socket_path is not None:
            return str(self.socket_path)
        return format_url(self.host, self.port)


def run(
    settings: Settings,
    environ: Mapping[str, str],
    services: Sequence[Service],
    prepare: PrepareHook,
    hints: StartupHints = tuple,
) -> None:
    """Run the services until a stop signal. Raise an error if they cannot be started."""
    interrupt_on_signals()
    with contextlib.suppress(KeyboardInterrupt), contextlib.ExitStack() as stack:
        listeners = [stack.enter_context(bind_with_retries(service)) for service in services]
        postgres = stack.enter_context(run_embedded_postgres(settings))
        url = postgres.url if postgres is not None else str(settings.database_url)
        environ = {**environ, "TAPGATE_DATABASE_URL": url, "TAPGATE_NODE_ID": settings.node_id}
        responders = [
            StartupResponder(listener) if service.socket_path is None else None
            for service, listener in zip(services, listeners, strict=True)
        ]
        children = [
            ChildProcess(
                service.name,
                service.module,
                listener,
                _build_environ(service, environ),
                responder=responder,
                drain_seconds=settings.drain_seconds,
            )
            for service, listener, responder in zip(services, listeners, responders, strict=True)
            for _ in range(service.processes)
        ]

        def release_ports() -> None:
            """Leave the ports to the workers, which close them once they have drained."""
            for responder in filter(None, responders):
                responder.close()
            for listener in listeners:
                listener.close()

        async def serve() -> None:
            cancel_on_signals(release_ports)
            with contextlib.suppress(asyncio.CancelledError):
                for service, listener in zip(services, listeners, strict=True):
                    _listen(service, listener)
                for responder in filter(None, responders):
                    responder.open()
                await _prepare_database(url, services, auto_migrate=settings.auto_migrate)
                async for line in prepare(settings, url):
                    print_line(line)
                listening = [
                    f"The {service.name} listens on {service.url}."
                    for service in services
                    if service.socket_path is None
                ]
                await _supervise(children, [*listening, *hints()], postgres)

        asyncio.run(serve())


async def _prepare_database(url: str, services: Sequence[Service], *, auto_migrate: bool) -> None:
    await (migrate if auto_migrate else check_schema)(url, report=print_line)
    needed = sum(service.processes * service.database_connections for service in services)
    for line in await list_capacity_warnings(url, needed):
        print_line(line)


def _build_environ(service: Service, environ: Mapping[str, str]) -> dict[str, str]:
    """Return a service's environment, without secrets that it does not need.

    A process cannot leak a secret that it never received. No service receives the first admin's
    credentials, because the `prepare` hook creates this admin.
    """
    withheld = service.withheld_variables | _FIRST_ADMIN_VARIABLES
    kept = {name: value for name, value in environ.items() if name not in withheld}
    return {**kept, **service.variables}


@contextlib.contextmanager
def provide_database_url(settings: Settings, *, exclusive: bool = False) -> Iterator[str]:
    """Provide the database URL to a CLI command, starting embedded PostgreSQL if necessary.

    With `exclusive`, raise FolderInUseError if another process runs the embedded PostgreSQL. A
    configured database URL is provided without this check.
    """
    if settings.database_url is not None:
        yield settings.database_url
        return
    postgres = EmbeddedPostgres(settings.data_dir)
    with contextlib.ExitStack() as stack:
        stack.callback(postgres.stop)
        try:
            postgres.start()
        except FolderInUseError:
            if exclusive:
                raise
        yield postgres.url


@contextlib.contextmanager
def run_embedded_postgres(settings: Settings) -> Iterator[EmbeddedPostgres | None]:
    if settings.database_url is not None:
        yield None
        return
    if settings.is_production:
        print_line("Warning: data is stored on this machine only. See TAPGATE_DATABASE_URL.")
    postgres = EmbeddedPostgres(settings.data_dir)
    postgres.start()
    for line in postgres_releases.list_warnings(read_embedded_version()):
        print_line(line)
    try:
        yield postgres
    finally:
        for number in STOP_SIGNALS:
            signal.signal(number, signal.SIG_IGN)  # already stopping
        postgres.stop()


async def _supervise(
    children: Sequence[ChildProcess],
    startup_lines: Sequence[str],
    postgres: EmbeddedPostgres | None,
) -> None:
    try:
        async with asyncio.TaskGroup() as group:
            if postgres is not None:
                group.create_task(_supervise_postgres(postgres))
            for child in children:
                group.create_task(child.supervise())
            for child in children:
                await child.ready.wait()
            for line in startup_lines:
                print_line(line)
    except ExceptionGroup as failures:
        first = failures.exceptions[0]
        raise first if isinstance(first, StartError) else failures from None


async def _supervise_postgres(postgres: EmbeddedPostgres) -> None:
    while True:
        await asyncio.sleep(_POSTGRES_CHECK_SECONDS)
        if not postgres.is_alive:
            print_line("PostgreSQL stopped. Restarting it.")
            try:
                postgres.start()
            except StoreError as error:
                print_line(str(error))


def interrupt_on_signals() -> None:
    """Raise KeyboardInterrupt on every stop signal."""
    for number in STOP_SIGNALS:
        signal.signal(number, signal.default_int_handler)


def cancel_on_signals(on_stop: Callable[[], object] = lambda: None) -> None:
    """Cancel the current task on a stop signal, so that everything it started is cleaned up."""
    task = asyncio.current_task()
    assert task is not None

    def stop() -> None:
        on_stop()
        task.cancel()

    for number in STOP_SIGNALS:
        asyncio.get_running_loop().add_signal_handler(number, stop)


def bind_with_retries(service: Service) -> socket.socket:
    """Bind the service's port, without listening; retry briefly while the port is in use."""
    deadline = time.monotonic() + _BIND_TIMEOUT_SECONDS
    while True:
        try:
            if service.socket_path is not None:
                return _bind_unix(service.socket_path)
            return bind_port(service.host, service.port)
        except OSError as error:
            # A killed supervisor's workers release the port shortly after it exits.
            if error.errno != errno.EADDRINUSE or time.monotonic() > deadline:
                raise _build_listen_error(service, error) from error
        time.sleep(0.05)


def bind_port(host: str, port: int) -> socket.socket:
    addresses = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    family, kind, _, _, address = addresses[0]
    with contextlib.ExitStack() as unless_bound:
        listener = unless_bound.enter_context(socket.socket(family, kind))
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        _limit_unsent(listener)
        listener.bind(address)
        unless_bound.pop_all()
        return listener


def _limit_unsent(listener: socket.socket) -> None:
    """Limit what the kernel stores for a client that does not read, without slowing others.

    Otherwise, the send buffer of each connection could grow to several megabytes. Accepted
    connections inherit the option.
    """
    option = getattr(socket, "TCP_NOTSENT_LOWAT", None)  # not available on every platform
    if option is not None:
        listener.setsockopt(socket.IPPROTO_TCP, option, MAX_UNSENT_BYTES)


def _bind_unix(path: Path) -> socket.socket:
    """Bind a socket that only this user can connect to. Replace the one of an earlier start."""
    with contextlib.ExitStack() as unless_bound:
        listener = unless_bound.enter_context(socket.socket(socket.AF_UNIX, socket.SOCK_STREAM))
        path.unlink(missing_ok=True)
        listener.bind(str(path))
        path.chmod(0o600)
        unless_bound.pop_all()
        return listener


def _listen(service: Service, listener: socket.socket) -> None:
    try:
        listener.listen(LISTEN_BACKLOG)
    except OSError as error:
        raise _build_listen_error(service, error) from error


def _build_listen_error(service: Service, error: OSError) -> StartError:
    if error.errno == errno.EADDRINUSE:
        setting = "TAPGATE_MESSENGER_PORT" if service.name == "messenger" else "TAPGATE_PORT"
        reason = (
            "the port is already in use. Stop the program that uses it, perhaps another Tapgate, "
            f"or set {setting}"
        )
    else:
        reason = error.strerror or str(error)
    return StartError(f"the {service.name} cannot listen on {service.url}: {reason}")
