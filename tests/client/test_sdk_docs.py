"""The examples in the documents run unchanged against a gateway and print the documented output."""

import asyncio
import contextlib
import io
import os
import re
import shutil
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

import tapgate_client as client
from client.operation_catalog import list_methods
from drivers.in_process import ClientFactory
from drivers.network_faults import FlakyServer
from tapgate.events.webhooks import model
from tapgate.server.gateway_installation import create_first_admin
from tapgate_client.clock import system_clock

DOCS = Path(__file__).parents[2] / "docs"
DOCUMENT = (DOCS / "sdk.md").read_text()
GUIDES = ("onboard-a-merchant", "accept-a-card", "cash-in-app", "payroll", "refunds")
#: Guides with examples in three languages; `tests/generators` runs those in TypeScript.
TRILINGUAL_GUIDES = ("accept-a-card", "refunds")
SHELL_BLOCK = re.compile(r"^```(sh|output)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
BASE_URL = "http://127.0.0.1:8000"
CODE_BLOCK = re.compile(r"^```(python|output)\n(.*?)^```$", re.MULTILINE | re.DOTALL)

ADMIN = {"email": "ada@example.com", "password": "correct horse battery"}


@pytest.fixture
async def base_url(
    client_factory: ClientFactory, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[str]:
    """Start a gateway with its first administrator and yield its URL."""
    await create_first_admin(client_factory.services, **ADMIN)
    monkeypatch.setenv("ADMIN_EMAIL", ADMIN["email"])
    monkeypatch.setenv("ADMIN_PASSWORD", ADMIN["password"])
    async with FlakyServer(client_factory.transport).listen() as server:
        yield server.url


async def test_examples_print_the_documented_output(base_url: str) -> None:
    names: dict[str, Any] = {}
    try:
        await run_examples(base_url, "sdk.md", names)
    finally:
        for name in ("gateway", "admin"):
            names[name].close()
    assert post_events(names["receive"], names["endpoint"].secret) == (204, 400)


@pytest.mark.parametrize("guide", GUIDES)
async def test_guide_prints_the_documented_output(base_url: str, guide: str) -> None:
    await run_examples(base_url, f"guides/{guide}.md", {})


@pytest.mark.skipif(shutil.which("jq") is None, reason="jq is not installed")
@pytest.mark.parametrize("guide", TRILINGUAL_GUIDES)
async def test_guide_prints_the_documented_output_with_curl(
    base_url: str, guide: str, tmp_path: Path
) -> None:
    text = (DOCS / "guides" / f"{guide}.md").read_text()
    blocks = SHELL_BLOCK.findall(text)
    process = await asyncio.create_subprocess_exec(
        "bash", "-eu", "-o", "pipefail", "-c",
        "".join(code for language, code in blocks if language == "sh").replace(BASE_URL, base_url),
        cwd=tmp_path, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.STDOUT,
        env=os.environ | {"PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"},
    )  # fmt: skip
    output = (await process.communicate())[0].decode()
    assert process.returncode == 0, output
    assert output == "".join(code for language, code in blocks if language == "output")


async def test_quick_start_runs_as_printed(base_url: str, tmp_path: Path) -> None:
    """The output contains each line of the `output` blocks, in this order."""
    text = (DOCS / "quick-start.md").read_text()
    script = "\n".join(re.findall(r"^```sh\n(.*?)^```$", text, re.MULTILINE | re.DOTALL))
    (tmp_path / ".tapgate").mkdir()
    (tmp_path / ".tapgate" / "administrator.txt").write_text("\n".join(ADMIN.values()) + "\n")
    process = await asyncio.create_subprocess_exec(
        "bash", "-eu", "-o", "pipefail", "-c",
        script.replace(BASE_URL, base_url)
        .replace("admin@example.com", ADMIN["email"])
        .replace("curl -s", "curl -sS --fail-with-body"),
        cwd=tmp_path, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.STDOUT,
    )  # fmt: skip
    output = (await process.communicate())[0].decode()
    assert process.returncode == 0, output
    start = 0
    for block in re.findall(r"^```output\n(.*?)^```$", text, re.MULTILINE | re.DOTALL):
        for line in block.splitlines():
            start = output.find(line, start) + 1
            assert start, (line, output)


async def run_examples(base_url: str, document: str, names: dict[str, Any]) -> None:
    printed = ""
    for language, text in CODE_BLOCK.findall((DOCS / document).read_text()):
        if language == "output":
            assert printed == text
            printed = ""
            continue
        assert printed == "", "the page does not show the output of an example"
        program = compile(text.replace(BASE_URL, base_url), document, "exec")
        stdout = io.StringIO()
        with contextlib.redirect_stdout(stdout):
            await asyncio.to_thread(exec, program, names)
        printed = stdout.getvalue()


def post_events(receive: Any, secret: str) -> tuple[int, int]:
    body = model.encode_body("card.linked", system_clock(), '{"id": "x"}')
    headers = model.build_headers(1, [secret], body, system_clock())
    with contextlib.redirect_stdout(io.StringIO()):
        return receive(headers, body), receive(headers, body + b" ")


def list_table_names(heading: str) -> set[str]:
    """Return the code in the first table column under a heading on the page."""
    section = DOCUMENT.partition(f"\n## {heading}\n")[2].partition("\n## ")[0]
    cells = re.findall(r"^\| (`[^|]*) \|", section, re.MULTILINE)
    return {name for cell in cells for name in re.findall(r"`\.?(\w+)[^`]*`", cell)}


def test_page_lists_every_operation_group() -> None:
    groups = {part for method in list_methods() for part in str(method).split(".")[:-1]}
    assert list_table_names("Make requests") == groups


def test_page_lists_every_credential_and_exception() -> None:
    exported = {name for name in client.__all__ if name.endswith("Error")}
    assert list_table_names("Errors") == exported
    credentials = "ApiKey Login AccessToken PosKey PartnerKey ServiceSecret"
    assert list_table_names("Authentication") == set(credentials.split())
