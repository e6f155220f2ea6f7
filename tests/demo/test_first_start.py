"""The first start builds the demo, and every command that it prints works."""

import asyncio
import os
import re
import stat
import subprocess
from pathlib import Path
from typing import get_args

import pytest
from typer.testing import CliRunner

from gateway.processes import TAPGATE_EXECUTABLE, RunningGateway, start_tapgate
from production_settings import PRODUCTION_ENVIRON
from tapgate.cli import DemoSize, app
from tapgate.demo.country import SIZES
from tapgate.demo.examples import load_example_phone
from tapgate.settings import DEMO_SIZES, NO_DEMO, SettingsError, load_settings


async def read_hints(running: RunningGateway) -> list[str]:
    """Return the lines printed after startup."""
    text: list[str] = []
    while not text or not text[-1].startswith("Press Ctrl-C"):
        line = (await running.stdout.readline()).decode()
        assert line, text
        text.append(line.rstrip("\n"))
    return text


CURL_PATTERN = re.compile(r"\bcurl -s ")


async def run_shell(line: str) -> tuple[int, str]:
    """Run a line in a shell without the gateway's environment variables."""
    stored = {name: value for name, value in os.environ.items() if "TAPGATE" not in name}
    process = await asyncio.create_subprocess_exec(
        "sh",
        "-c",
        CURL_PATTERN.sub("curl -sS -w '\n%{http_code}' ", line),
        env=stored,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    output, _ = await process.communicate()
    assert process.returncode is not None
    return process.returncode, output.decode()


async def run_all_shell(lines: list[str]) -> list[tuple[int, str]]:
    return await asyncio.gather(*map(run_shell, lines))


async def test_every_command_printed_by_the_first_start_works(
    public_tmp_path: Path, database_url: str
) -> None:
    async with start_tapgate(public_tmp_path, database_url, workers=1, demo="small") as running:
        text = await read_hints(running)
        start = next(i for i, line in enumerate(text) if line.startswith("The demo has "))
        calls = [line.strip() for line in text[start + 1 : -1] if not line.startswith("  #")]
        assert len(calls) >= 7
        replayed = [call for call in calls if "request_id" in call]
        assert len(replayed) == 3
        for group in (calls, replayed):
            for call, (status, output) in zip(group, await run_all_shell(group), strict=True):
                assert status == 0, (call, output)
                if call.startswith("curl"):
                    assert output.endswith("\n200"), (call, output)
                else:
                    assert "passed" in output
                    assert "FAILED" not in output
        again = await run_demo_command(public_tmp_path, database_url)
    assert again.returncode == 1
    assert again.stderr.startswith("tapgate: demo data already exists")
    assert again.stderr.count("\n") == 1
    stored = public_tmp_path / "gateway" / "demo.txt"
    assert stat.S_IMODE(stored.stat().st_mode) == 0o600
    assert stored.read_text().splitlines() == text[start:-1]
    assert load_example_phone(stored.parent) == "+23225000001"
    async with start_tapgate(public_tmp_path, database_url, workers=1, demo="small") as running:
        later = await read_hints(running)
    assert any(str(stored) in line for line in later)


async def run_demo_command(
    folder: Path, database_url: str, **variables: str
) -> subprocess.CompletedProcess[str]:
    stored = {name: value for name, value in os.environ.items() if "TAPGATE" not in name}
    return await asyncio.to_thread(
        subprocess.run,
        [TAPGATE_EXECUTABLE, "demo", "--size", "small"],
        env=stored
        | {"TAPGATE_DATA_DIR": str(folder / "gateway"), "TAPGATE_DATABASE_URL": database_url}
        | variables,
        capture_output=True,
        text=True,
        check=False,
    )


def test_demo_is_rejected_in_production(tmp_path: Path) -> None:
    production = PRODUCTION_ENVIRON | {"TAPGATE_DATA_DIR": str(tmp_path)}
    refused = CliRunner().invoke(app, ["demo"], env=production)
    assert (refused.exit_code, refused.output) == (
        1,
        "tapgate: demo data cannot be loaded in production\n",
    )
    with pytest.raises(SettingsError, match="TAPGATE_DEMO must be off in production"):
        load_settings({**production, "TAPGATE_DEMO": "small"})


def test_demo_sizes_match_the_accepted_settings() -> None:
    assert {NO_DEMO, *SIZES} == set(DEMO_SIZES) == {NO_DEMO, *get_args(DemoSize)}
