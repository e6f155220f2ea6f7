"""The first start builds the demo, and every sample request that it stores works."""

import asyncio
import os
import re
import stat
from pathlib import Path
from typing import get_args

import pytest
from typer.testing import CliRunner

from drivers.processes import RunningGateway, run_command, start_tapgate
from harness import PRODUCTION_ENVIRON
from tapgate.cli import app
from tapgate.cli.development import DemoSize
from tapgate.core.settings import load_settings
from tapgate.core.settings.declaration import SettingsError
from tapgate.core.settings.nodes import Demo
from tapgate_sandbox.demo.country import SIZES
from tapgate_sandbox.demo.examples import load_example_phone


async def read_hints(running: RunningGateway) -> list[str]:
    """Return the lines printed after startup, up to the line about Ctrl-C."""
    text: list[str] = []
    while not text or not text[-1].startswith("Press Ctrl-C"):
        line = (await running.stdout.readline()).decode()
        assert line, text
        text.append(line.rstrip("\n"))
    return text


CURL_PATTERN = re.compile(r"\bcurl -s ")


async def run_shell(line: str) -> tuple[int, str]:
    """Run a command line without TAPGATE variables; return its exit status and output."""
    inherited = {name: value for name, value in os.environ.items() if "TAPGATE" not in name}
    process = await asyncio.create_subprocess_exec(
        "sh",
        "-c",
        CURL_PATTERN.sub("curl -sS -w '\n%{http_code}' ", line),
        env=inherited,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    output, _ = await process.communicate()
    assert process.returncode is not None
    return process.returncode, output.decode()


async def run_all_shell(lines: list[str]) -> list[tuple[int, str]]:
    return await asyncio.gather(*map(run_shell, lines))


async def test_every_sample_request_of_the_first_start_works(
    public_tmp_path: Path, database_url: str
) -> None:
    async with start_tapgate(public_tmp_path, database_url, workers=1, demo="small") as running:
        hints = await read_hints(running)
        assert len(hints) < 16
        demo_file = public_tmp_path / "gateway" / "demo.txt"
        assert f"  Sample requests:   cat {demo_file}" in hints
        heading, *lines = demo_file.read_text().splitlines()
        assert heading.startswith("The demo has ")
        commands = [line.strip() for line in lines if not line.startswith("  #")]
        assert len(commands) >= 7
        idempotent_commands = [command for command in commands if "request_id" in command]
        assert len(idempotent_commands) == 3
        for group in (commands, idempotent_commands):
            for command, (status, output) in zip(group, await run_all_shell(group), strict=True):
                assert status == 0, (command, output)
                if command.startswith("curl"):
                    assert output.endswith("\n200"), (command, output)
                else:
                    assert "passed" in output
                    assert "FAILED" not in output
        second_run = await asyncio.to_thread(
            run_command, public_tmp_path / "gateway", "demo", TAPGATE_DATABASE_URL=database_url
        )
    assert second_run.returncode == 1
    assert second_run.stderr.startswith("tapgate: demo data already exists")
    assert second_run.stderr.count("\n") == 1
    assert stat.S_IMODE(demo_file.stat().st_mode) == 0o600
    assert load_example_phone(demo_file.parent) == "+23225000001"


def test_demo_is_rejected_in_production(tmp_path: Path) -> None:
    production = PRODUCTION_ENVIRON | {"TAPGATE_DATA_DIR": str(tmp_path)}
    result = CliRunner().invoke(app, ["demo"], env=production)
    assert (result.exit_code, result.output) == (
        1,
        "tapgate: demo data cannot be loaded in production\n",
    )
    with pytest.raises(SettingsError, match="TAPGATE_DEMO must be off in production"):
        load_settings({**production, "TAPGATE_DEMO": "small"})


def test_demo_sizes_match_the_accepted_settings() -> None:
    assert {Demo.OFF, *SIZES} == set(Demo) == {Demo.OFF, *get_args(DemoSize)}
