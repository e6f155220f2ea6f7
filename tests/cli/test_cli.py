"""Output and exit status of the `tapgate` command line."""

import contextlib
import signal
import socket
import subprocess
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest
from typer.testing import CliRunner

from cases import each
from drivers.processes import TAPGATE_EXECUTABLE, build_environ, free_port, run_command
from tapgate import VERSION
from tapgate.cli import app
from tapgate.runtime.store.postgres_programs import read_embedded_version


@each(
    "command",
    [[], *([word] for word in "up serve messenger migrate demo chat backup restore".split())],
)
def test_help_shows_the_command_usage(command: list[str]) -> None:
    result = CliRunner().invoke(app, [*command, "--help"], prog_name="tapgate")
    assert result.exit_code == 0
    assert f"Usage: {' '.join(['tapgate', *command])}" in result.output


@pytest.mark.parametrize(
    ("command", "variables", "line"),
    [
        (
            "migrate",
            {"TAPGATE_SECRET_KEY_FILE": "/nowhere"},
            "TAPGATE_SECRET_KEY_FILE: /nowhere cannot be read: No such file or directory",
        ),
        ("up", {"TAPGATE_PORT": "0"}, "TAPGATE_PORT must be a whole number from 1 to 65535"),
        (
            "up",
            {"TAPGATE_ENVIRONMENT": "production"},
            "TAPGATE_PUBLIC_URL must be set in production",
        ),
        (
            "migrate",
            {"TAPGATE_DATABASE_URL": "postgresql:///tapgate?host=/nowhere"},
            "the database cannot be reached: [Errno 2] No such file or directory",
        ),
        (
            "serve",
            {"TAPGATE_DATABASE_URL": "postgresql:///tapgate?host=/nowhere"},
            "the database cannot be reached: [Errno 2] No such file or directory",
        ),
        (
            "verify",
            {"TAPGATE_DATABASE_URL": "postgresql:///tapgate?host=/nowhere"},
            "the database is unavailable: [Errno 2] No such file or directory",
        ),
    ],
)
def test_startup_error_is_reported_in_one_line(
    public_tmp_path: Path, command: str, variables: dict[str, str], line: str
) -> None:
    variables = {"TAPGATE_PORT": str(free_port()), **variables}
    result = run_command(public_tmp_path / "data", command, **variables)
    assert (result.returncode, result.stdout, result.stderr) == (1, "", f"tapgate: {line}\n")


def test_port_in_use_is_reported_in_one_line(public_tmp_path: Path, database_url: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = str(listener.getsockname()[1])
        result = run_command(
            public_tmp_path / "data", "serve", "--port", port, TAPGATE_DATABASE_URL=database_url
        )
    assert (result.returncode, result.stdout) == (1, "")
    (line,) = result.stderr.splitlines()
    assert line.startswith(f"tapgate: the gateway cannot listen on http://127.0.0.1:{port}: ")
    assert line.endswith("or set TAPGATE_PORT")


def test_migrate_brings_the_embedded_database_up_to_date(public_tmp_path: Path) -> None:
    first = run_command(public_tmp_path / "data", "migrate")
    second = run_command(public_tmp_path / "data", "migrate")
    assert first.stdout.splitlines()[0] == "applied 0001_ledger.sql"
    assert second.stdout == "The database is up to date.\n"
    assert (first.stderr, second.stderr) == ("", "")


@pytest.mark.usefixtures("data_dir")  # without it, the first start would run initdb
def test_up_starts_gateway_and_messenger_and_prints_the_first_admin_password_once(
    public_tmp_path: Path,
) -> None:
    ports = {"TAPGATE_PORT": str(free_port()), "TAPGATE_MESSENGER_PORT": str(free_port())}
    with run_up(public_tmp_path, ports) as first:
        in_use = run_command(public_tmp_path / "data", "up", **ports, TAPGATE_HOST="127.0.0.2")
        assert in_use.returncode == 1
        migrated = run_command(public_tmp_path / "data", "migrate")
        assert migrated.stdout == "The database is up to date.\n"
    with run_up(public_tmp_path, ports) as second:
        pass
    assert any("password" in line for line in first)
    assert not any("password" in line for line in second)


@contextlib.contextmanager
def run_up(folder: Path, ports: dict[str, str]) -> Iterator[list[str]]:
    """Run `tapgate up`, check that both services respond, and yield its startup output."""
    variables = build_environ(folder / "data", **ports, TAPGATE_DEMO="off", TAPGATE_WORKERS="1")
    with subprocess.Popen(
        [TAPGATE_EXECUTABLE, "up"], env=variables, cwd=folder, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        lines: list[str] = []
        try:
            while not lines or not lines[-1].startswith("The messenger listens on "):
                line = process.stdout.readline()
                assert line, "the process exited"
                lines.append(line)
            for port in ports.values():
                with urllib.request.urlopen(
                    f"http://127.0.0.1:{port}/health", timeout=30
                ) as response:
                    assert response.status == 200
            yield lines
        finally:
            process.send_signal(signal.SIGTERM)
            assert process.wait(60) == 0


def test_database_without_tables_is_reported_in_one_line(
    public_tmp_path: Path, empty_database_url: str
) -> None:
    result = run_command(
        public_tmp_path / "data", "verify", TAPGATE_DATABASE_URL=empty_database_url
    )
    assert (result.returncode, result.stdout) == (1, "")
    assert result.stderr.startswith("tapgate: the database has no tables yet")
    assert result.stderr.count("\n") == 1


def test_version_option_prints_the_version_of_the_package() -> None:
    result = CliRunner().invoke(app, ["--version"])
    versions = f"tapgate {VERSION}\nPostgreSQL {read_embedded_version()} (embedded)\n"
    assert (result.exit_code, result.output) == (0, versions)
    project = (Path(__file__).parents[2] / "pyproject.toml").read_text()
    assert f'\nversion = "{VERSION}"\n' in project
