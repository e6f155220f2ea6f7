"""Supervisor: starts services, restarts services that exit, and leaves no orphan process."""

import contextlib
import http.client
import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest

from drivers.processes import free_port
from tapgate.core.settings import load_settings
from tapgate.runtime.store.postgres_programs import read_embedded_version
from tapgate.runtime.store.postgres_releases import list_warnings
from tapgate.server import supervisor
from tapgate.server.gateway_services import open_idle_cores

#: Program that supervises the stub service.
_SUPERVISOR_SCRIPT = """
import asyncio, os, sys
from tapgate.server import supervisor
from tapgate.server.child_process import StartError
from tapgate.core.settings import load_settings
from tapgate.runtime.store import StoreError

async def prepare(settings, url):
    print("preparing", flush=True)
    await asyncio.sleep(float(os.environ.get("STUB_PREPARE_SECONDS", "0")))
    yield "first line"
    yield "second line"

settings = load_settings(os.environ)
service = supervisor.Service(
    "gateway", "stub_service", settings.host, settings.port, settings.workers
)
try:
    supervisor.run(settings, os.environ, [service], prepare)
except (StartError, StoreError) as error:
    sys.exit(str(error))
"""


def wait_until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 30
    while not condition():
        assert time.monotonic() < deadline, "the condition was not met in time"
        time.sleep(0.02)


class SupervisorProcess:
    """A supervisor in a separate process."""

    def __init__(self, data_dir: Path, **variables: str) -> None:
        self.port = int(variables.pop("TAPGATE_PORT", free_port()))
        self.data_dir = data_dir
        self._output = data_dir.with_name(f"{self.port}.out")
        self._errors = data_dir.with_name(f"{self.port}.err")
        with self._output.open("w") as output, self._errors.open("w") as errors:
            self._process = subprocess.Popen(
                [sys.executable, "-c", _SUPERVISOR_SCRIPT],
                env=os.environ
                | {
                    "PYTHONPATH": str(Path(__file__).parents[1]),
                    "TAPGATE_PORT": str(self.port),
                    "TAPGATE_DATA_DIR": str(self.data_dir),
                }
                | variables,
                stdout=output,
                stderr=errors,
            )
        self._seen_processes: set[psutil.Process] = set()

    @property
    def output_lines(self) -> list[str]:
        return self._output.read_text().splitlines()

    @property
    def error_lines(self) -> list[str]:
        return self._errors.read_text().splitlines()

    def get_worker_pid(self, path: str = "/") -> int | None:
        """Return the responding worker's process ID, or None if the request fails."""
        try:
            with urllib.request.urlopen(
                f"http://127.0.0.1:{self.port}{path}", timeout=30
            ) as response:
                return int(response.read())
        except OSError:  # refused connection or timeout
            return None

    def wait_until_ready(self) -> "SupervisorProcess":
        listens = f"The gateway listens on http://127.0.0.1:{self.port}."
        wait_until(lambda: self._process.poll() is not None or listens in self.output_lines)
        assert self._process.poll() is None, self.error_lines
        self.list_processes()
        return self

    def list_processes(self) -> list[psutil.Process]:
        """Return the current descendant processes and record them for `list_orphans`."""
        processes: list[psutil.Process] = []
        with contextlib.suppress(psutil.NoSuchProcess):
            processes = psutil.Process(self._process.pid).children(recursive=True)
        self._seen_processes.update(processes)
        return processes

    def list_workers(self) -> list[psutil.Process]:
        return [process for process in self.list_processes() if is_worker(process)]

    def list_orphans(self) -> list[psutil.Process]:
        return [process for process in self._seen_processes if is_running(process)]

    def send_signal(self, number: int) -> None:
        self._process.send_signal(number)

    def wait_for_exit(self) -> int:
        """Wait up to a minute for the supervisor to end and return its exit status."""
        return self._process.wait(60)

    def kill(self) -> None:
        self.list_processes()
        self._process.kill()
        self._process.wait()
        for process in self.list_orphans():
            with contextlib.suppress(psutil.NoSuchProcess):
                process.kill()


def get_status_and_body(port: int, path: str) -> tuple[int, dict[str, Any]]:
    with contextlib.closing(http.client.HTTPConnection("127.0.0.1", port, timeout=30)) as client:
        client.request("GET", path)
        response = client.getresponse()
        return response.status, json.loads(response.read())


def is_worker(process: psutil.Process) -> bool:
    try:
        return "stub_service" in process.cmdline()
    except psutil.Error:
        return False  # a PostgreSQL process that has ended


def is_running(process: psutil.Process) -> bool:
    try:
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


@pytest.fixture
def start_supervisor(public_tmp_path: Path) -> Iterator[Callable[..., SupervisorProcess]]:
    started: list[SupervisorProcess] = []
    (public_tmp_path / "data").mkdir(exist_ok=True)

    def start(**variables: str) -> SupervisorProcess:
        started.append(SupervisorProcess(public_tmp_path / "data", **variables))
        return started[-1]

    yield start
    for running in started:
        running.kill()


StartSupervisor = Callable[..., SupervisorProcess]


@pytest.mark.usefixtures("data_dir")
@pytest.mark.parametrize(
    ("number", "workers"), [(signal.SIGINT, 1), (signal.SIGTERM, 2), (signal.SIGHUP, 1)]
)
def test_supervisor_starts_and_stops_without_leaving_a_process(
    start_supervisor: StartSupervisor, number: int, workers: int
) -> None:
    # The tests themselves may run under `nohup`, and a signal that is ignored stays ignored.
    previous = signal.signal(number, signal.SIG_DFL)
    try:
        running = start_supervisor(TAPGATE_WORKERS=str(workers)).wait_until_ready()
    finally:
        signal.signal(number, previous)
    assert len(running.list_processes()) > 1 + workers  # workers and PostgreSQL
    assert len(running.list_workers()) == workers
    running.send_signal(number)
    assert (running.wait_for_exit(), running.error_lines) == (0, [])
    assert running.output_lines == [
        *list_warnings(read_embedded_version()),
        "preparing",
        "first line",
        "second line",
        f"The gateway listens on http://127.0.0.1:{running.port}.",
    ]
    assert running.list_orphans() == []
    assert not (running.data_dir / "pgdata" / "postmaster.pid").exists()


def test_supervisor_ignores_sighup_when_started_with_nohup(
    start_supervisor: StartSupervisor, database_url: str
) -> None:
    previous = signal.signal(signal.SIGHUP, signal.SIG_IGN)  # as `nohup` does
    try:
        running = start_supervisor(TAPGATE_DATABASE_URL=database_url).wait_until_ready()
    finally:
        signal.signal(signal.SIGHUP, previous)
    running.send_signal(signal.SIGHUP)
    assert running.get_worker_pid() is not None
    running.send_signal(signal.SIGTERM)
    assert running.wait_for_exit() == 0


def test_request_in_progress_gets_its_response_before_shutdown(
    start_supervisor: StartSupervisor, database_url: str
) -> None:
    running = start_supervisor(TAPGATE_DATABASE_URL=database_url).wait_until_ready()
    responses: list[int | None] = []
    request = threading.Thread(target=lambda: responses.append(running.get_worker_pid("/late")))
    request.start()
    wait_until((running.data_dir / "request_received").exists)
    (worker,) = running.list_workers()
    running.send_signal(signal.SIGTERM)
    request.join()
    assert responses == [worker.pid]
    assert running.wait_for_exit() == 0


def test_workers_accept_connections_while_draining(
    start_supervisor: StartSupervisor, database_url: str
) -> None:
    running = start_supervisor(
        TAPGATE_DATABASE_URL=database_url, TAPGATE_WORKERS="2", TAPGATE_DRAIN_SECONDS="2"
    ).wait_until_ready()
    statuses: list[tuple[int, str | None]] = []

    def send_request() -> bool:
        """Send a request on a new connection. Return False once the port is closed."""
        client = http.client.HTTPConnection("127.0.0.1", running.port, timeout=30)
        try:
            client.connect()
        except ConnectionRefusedError:
            return False
        with contextlib.closing(client):
            client.request("GET", "/")
            response = client.getresponse()
            response.read()
            statuses.append((response.status, response.getheader("Connection")))
        return True

    assert send_request()
    running.send_signal(signal.SIGTERM)
    wait_until(lambda: not send_request())
    assert running.wait_for_exit() == 0
    assert statuses[0] == (200, None)
    # Only the workers' signal handlers separate the two kinds of response.
    assert set(statuses[-1:]) == {(200, "close")}
    assert {status for status, _ in statuses} == {200}


@pytest.mark.usefixtures("data_dir")
def test_killed_worker_and_killed_postgres_are_restarted(start_supervisor: StartSupervisor) -> None:
    running = start_supervisor().wait_until_ready()
    first = running.get_worker_pid()
    assert first is not None
    os.kill(first, signal.SIGKILL)
    wait_until(lambda: running.get_worker_pid() not in {None, first})
    running.list_processes()
    pid_file = running.data_dir / "pgdata" / "postmaster.pid"
    postmaster = pid_file.read_text().split()[0]
    os.kill(int(postmaster), signal.SIGKILL)

    def is_restarted() -> bool:
        with contextlib.suppress(FileNotFoundError):
            text = pid_file.read_text()
            return "ready" in text and text.split()[0] != postmaster
        return False

    wait_until(is_restarted)
    running.list_processes()
    running.send_signal(signal.SIGTERM)
    assert running.wait_for_exit() == 0
    assert "The gateway exited with status -9. Restarting it." in running.output_lines
    assert running.list_orphans() == []


@pytest.mark.usefixtures("data_dir")
def test_children_end_when_the_supervisor_is_killed_and_a_new_one_can_start(
    start_supervisor: StartSupervisor,
) -> None:
    killed = start_supervisor(TAPGATE_WORKERS="2").wait_until_ready()
    workers = killed.list_workers()
    assert len(workers) == 2
    killed.send_signal(signal.SIGKILL)
    killed.wait_for_exit()
    wait_until(lambda: not any(is_running(worker) for worker in workers))
    again = start_supervisor(TAPGATE_PORT=str(killed.port)).wait_until_ready()
    again.send_signal(signal.SIGTERM)
    assert again.wait_for_exit() == 0
    wait_until(lambda: killed.list_orphans() == [])


def test_port_released_shortly_after_startup_is_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    """A killed supervisor's workers may still hold the port when a new supervisor starts."""
    with socket.create_server(("127.0.0.1", 0)) as held, monkeypatch.context() as patched:
        port = held.getsockname()[1]
        patched.setattr(time, "sleep", lambda _: held.close())
        with supervisor.bind_with_retries(
            supervisor.Service("gateway", "", "127.0.0.1", port, 1)
        ) as listener:
            assert listener.getsockname()[1] == port


def test_external_database_is_used_and_no_server_is_started(
    start_supervisor: StartSupervisor, database_url: str
) -> None:
    running = start_supervisor(TAPGATE_DATABASE_URL=database_url).wait_until_ready()
    assert len(running.list_processes()) == 1  # the worker
    assert not (running.data_dir / "pgdata" / "postmaster.pid").exists()
    (worker,) = running.list_workers()
    assert open_idle_cores(load_settings(worker.environ())) is None
    running.send_signal(signal.SIGTERM)
    assert running.wait_for_exit() == 0


@pytest.mark.usefixtures("data_dir")
def test_workers_beside_embedded_postgres_measure_idle_cores(
    start_supervisor: StartSupervisor,
) -> None:
    running = start_supervisor(TAPGATE_WORKERS="2").wait_until_ready()
    for worker in running.list_workers():
        assert open_idle_cores(load_settings(worker.environ())) is not None


@pytest.mark.usefixtures("data_dir")
def test_supervisor_stops_when_signaled_during_preparation(
    start_supervisor: StartSupervisor,
) -> None:
    running = start_supervisor(STUB_PREPARE_SECONDS="60")
    wait_until(lambda: "preparing" in running.output_lines)
    running.list_processes()
    assert get_status_and_body(running.port, "/live") == (200, {"live": True})
    for path in ("/ready", "/api/v1/pos/payment"):
        status, body = get_status_and_body(running.port, path)
        assert (status, body["code"]) == (503, "SERVICE_UNAVAILABLE")
        assert [reason["code"] for reason in body["reasons"]] == ["starting"]
    running.send_signal(signal.SIGTERM)
    assert running.wait_for_exit() == 0
    assert running.list_orphans() == []


def test_port_in_use_is_reported_in_one_line(start_supervisor: StartSupervisor) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = str(listener.getsockname()[1])
        running = start_supervisor(TAPGATE_PORT=port)
        assert running.wait_for_exit() == 1
    address = f"http://127.0.0.1:{port}"
    (line,) = running.error_lines
    assert line.startswith(f"the gateway cannot listen on {address}: the port is already in use. ")
    assert line.endswith("or set TAPGATE_PORT")


def test_address_of_another_machine_is_reported_in_one_line(
    start_supervisor: StartSupervisor,
) -> None:
    running = start_supervisor(TAPGATE_HOST="192.0.2.1")
    assert running.wait_for_exit() == 1
    assert len(running.error_lines) == 1
    assert running.error_lines[0].startswith("the gateway cannot listen on http://192.0.2.1:")


@pytest.mark.usefixtures("data_dir")
def test_data_folder_in_use_is_reported_in_one_line(start_supervisor: StartSupervisor) -> None:
    first = start_supervisor().wait_until_ready()
    second = start_supervisor()
    assert second.wait_for_exit() == 1
    (line,) = second.error_lines
    assert line.startswith(f"another Tapgate instance is already using {first.data_dir}. Stop it")
    assert first.get_worker_pid() is not None


@pytest.mark.usefixtures("data_dir")
def test_service_that_fails_to_start_is_reported_in_one_line_and_postgres_is_stopped(
    start_supervisor: StartSupervisor,
) -> None:
    running = start_supervisor(STUB_FAILS="1")
    assert running.wait_for_exit() == 1
    assert running.error_lines == ["the gateway exited with status 7 during startup"]
    assert not (running.data_dir / "pgdata" / "postmaster.pid").exists()


def test_kernel_stores_little_for_a_client_that_does_not_read() -> None:
    with (
        contextlib.closing(supervisor.bind_port("127.0.0.1", 0)) as listener,
        socket.socket() as client,
    ):
        listener.listen()
        client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        client.connect(listener.getsockname())
        connection, _ = listener.accept()
        with connection, pytest.raises(BlockingIOError):
            connection.setblocking(False)
            sent = 0
            while True:
                sent += connection.send(b"x" * 1024)
                assert sent < 4 * supervisor.MAX_UNSENT_BYTES
