"""Clients, generated ones too, and the Postman collection work against a gateway.

`make generators` installs the generators, tsc and newman.
"""

import asyncio
import base64
import json
import os
import re
import shutil
import sys
from collections.abc import AsyncIterator, Collection, Mapping
from pathlib import Path

import pytest

from builders.branding import build_png
from drivers.client_generators import (
    HERE,
    NODE_MODULES,
    PYTHON,
    TIMEOUT_SECONDS,
    compile_typescript,
    generate_python_client,
    generate_types,
    needs_python_generator,
    write_document,
)
from drivers.in_process import ClientFactory
from drivers.network_faults import FlakyServer
from harness import Harness
from tapgate.events.webhooks import model
from tapgate.http.api.services import Services
from tapgate.server.gateway_installation import create_first_admin
from tapgate_client.clock import system_clock

ROOT = Path(__file__).parents[2]
CLIENT = ROOT / "clients" / "typescript"
COLLECTION = ROOT / "docs" / "postman" / "tapgate.postman_collection.json"
BASE_URL = "http://127.0.0.1:8000"
ADMIN = {"email": "ada@example.com", "password": "correct horse battery"}
EXAMPLE_BLOCK = re.compile(r"^```(ts|output)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
SECRET = "whsec_dGFwZ2F0ZS1leGFtcGxlLWRvLW5vdC11c2UtdGhpcyE="

needs_tsc = pytest.mark.skipif(
    not (NODE_MODULES / ".bin" / "tsc").exists(),
    reason="tsc is not installed: run `make generators` (needs npm)",
)
needs_newman = pytest.mark.skipif(
    not (NODE_MODULES / ".bin" / "newman").exists(),
    reason="newman is not installed: run `make generators` (needs npm)",
)


@pytest.fixture
async def base_url(services: Services, harness: Harness) -> AsyncIterator[str]:
    await create_first_admin(services, **ADMIN)
    async with FlakyServer(ClientFactory(services, harness).transport).listen() as server:
        yield server.url


async def run_command(
    *command: str | Path,
    folder: Path,
    variables: Mapping[str, str] = {},
    statuses: Collection[int] = (0,),
) -> str:
    process = await asyncio.create_subprocess_exec(
        *map(str, command),
        cwd=folder,
        env=os.environ
        | {"NO_COLOR": "1", "ADMIN_EMAIL": ADMIN["email"], "ADMIN_PASSWORD": ADMIN["password"]}
        | variables,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    async with asyncio.timeout(TIMEOUT_SECONDS):
        output = (await process.communicate())[0].decode()
    assert process.returncode in statuses, output
    return output


@pytest.fixture
async def terminal_environment(base_url: str, harness: Harness, tmp_path: Path) -> dict[str, str]:
    """Variables for a program that pays with a card at a terminal."""
    subscriber = await harness.create_subscriber(balance="100.00")
    key = await harness.create_processor()
    logo = {"logo": f"data:image/png;base64,{base64.b64encode(build_png()).decode()}"}
    admin = await harness.create_admin("A")
    branding = await harness.client.put("/api/v1/admin/branding", json=logo, auth=admin)
    assert branding.status_code == 200, branding.text
    cards = tmp_path / "cards.csv"
    cards.write_text("Serial No.,MAC Address\nGEN-000001,\n")
    return {
        "BASE_URL": base_url,
        "CARD": await harness.create_card(subscriber["id"]),
        "CARD_FILE": str(cards),
        "KEY_ID": key.id,
        "KEY_SECRET": key.secret,
    }


OUTPUT = "en completed 12.50 SLE\n"


@needs_tsc
async def test_types_of_openapi_typescript_make_a_signed_payment(
    terminal_environment: dict[str, str], tmp_path: Path
) -> None:
    await asyncio.to_thread(generate_types, tmp_path)
    strict = ("--exactOptionalPropertyTypes",)
    await asyncio.to_thread(compile_typescript, tmp_path, "openapi_fetch.ts", options=strict)
    output = await run_command(
        "node", "dist/openapi_fetch.js", folder=tmp_path, variables=terminal_environment
    )
    assert output == OUTPUT


@needs_tsc
async def test_client_of_hey_api_makes_a_signed_payment(
    terminal_environment: dict[str, str], tmp_path: Path
) -> None:
    write_document("gateway", tmp_path)
    (tmp_path / "node_modules").symlink_to(NODE_MODULES)
    await run_command(
        NODE_MODULES / ".bin" / "openapi-ts", "-i", "gateway.json", "-o", "client", folder=tmp_path
    )
    # The generator's own files do not compile with exactOptionalPropertyTypes.
    await asyncio.to_thread(compile_typescript, tmp_path, "hey_api.ts")
    output = await run_command(
        "node", "dist/hey_api.js", folder=tmp_path, variables=terminal_environment
    )
    assert output == OUTPUT


@needs_python_generator
async def test_generated_python_client_passes_strict_checks_and_makes_a_signed_payment(
    terminal_environment: dict[str, str], tmp_path: Path
) -> None:
    package = await asyncio.to_thread(generate_python_client, "gateway", tmp_path)
    program = package.parent / "program.py"
    program.write_text((HERE / "programs" / "python_client.py").read_text())
    checked = await run_command(
        Path(sys.executable).parent / "mypy", "--strict", "--no-error-summary",
        "--python-executable", PYTHON / "python", package.name, program.name,
        folder=package.parent, statuses=(0, 1),
    )  # fmt: skip
    # `client.py` is a fixed part of the generator: its types do not depend on the document.
    own = f"{package.name}/client.py:"
    assert [line for line in checked.splitlines() if not line.startswith(own)] == []
    output = await run_command(
        PYTHON / "python", program.name, folder=package.parent, variables=terminal_environment
    )
    assert output == OUTPUT


@needs_tsc
async def test_examples_of_the_typescript_client_print_the_documented_output(
    base_url: str, tmp_path: Path
) -> None:
    text = (ROOT / "docs" / "typescript.md").read_text()
    blocks = EXAMPLE_BLOCK.findall(text)
    program = "".join(code for language, code in blocks if language == "ts")
    body = model.encode_body("card.linked", system_clock(), '{"id": "x"}').decode()
    headers = model.build_headers(1, [SECRET], body.encode(), system_clock())
    arguments = f"{json.dumps(SECRET)}, {json.dumps(headers)}, {json.dumps(body)}"
    program += f"console.log(await receive({arguments}), await receive({arguments} + ' '));\n"
    output = await run_typescript(program, base_url, tmp_path)
    expected = "".join(text for language, text in blocks if language == "output")
    assert output == expected + "card.linked\n204 400\n"


@needs_tsc
@pytest.mark.parametrize("guide", ["accept-a-card", "refunds"])
async def test_guide_prints_the_documented_output_in_typescript(
    base_url: str, tmp_path: Path, guide: str
) -> None:
    text = (ROOT / "docs" / "guides" / f"{guide}.md").read_text()
    blocks = EXAMPLE_BLOCK.findall(text)
    program = "".join(code for language, code in blocks if language == "ts")
    output = await run_typescript(program, base_url, tmp_path)
    assert output == "".join(code for language, code in blocks if language == "output")


async def run_typescript(program: str, base_url: str, tmp_path: Path) -> str:
    """Compile a program with the client, run it, and return its output."""
    program += "declare const process: { env: Record<string, string | undefined> };\n"
    (tmp_path / "program.ts").write_text(program.replace(BASE_URL, base_url))
    shutil.copytree(CLIENT / "src", tmp_path / "src")
    # The program imports the package that contains it by its name.
    package = {"name": "tapgate", "type": "module", "exports": "./dist/src/index.js"}
    (tmp_path / "package.json").write_text(json.dumps(package))
    configuration = json.loads((CLIENT / "tsconfig.json").read_text())
    configuration["compilerOptions"] |= {"rootDir": ".", "skipLibCheck": True}
    configuration["include"] = ["src", "program.ts"]
    (tmp_path / "tsconfig.json").write_text(json.dumps(configuration))
    await run_command(NODE_MODULES / ".bin" / "tsc", folder=tmp_path)
    return await run_command("node", "dist/program.js", folder=tmp_path)


@needs_newman
async def test_postman_collection_signs_and_takes_a_first_payment(
    base_url: str, tmp_path: Path
) -> None:
    variables = {"base_url": base_url, **{f"admin_{name}": ADMIN[name] for name in ADMIN}}
    options = [part for item in variables.items() for part in ("--env-var", "=".join(item))]
    output = await run_command(
        NODE_MODULES / ".bin" / "newman", "run", COLLECTION,
        "--folder", "First payment", "--reporters", "cli", *options,
        folder=tmp_path,
    )  # fmt: skip
    assert re.search(r"requests │ +12 │ +0 │", output), output


@needs_newman
async def test_whole_postman_collection_keeps_its_session_until_it_logs_out(
    base_url: str, tmp_path: Path
) -> None:
    variables = {"base_url": base_url, **{f"admin_{name}": ADMIN[name] for name in ADMIN}}
    options = [part for item in variables.items() for part in ("--env-var", "=".join(item))]
    await run_command(
        NODE_MODULES / ".bin" / "newman", "run", COLLECTION, "--reporters", "json",
        "--reporter-json-export", "run.json", *options,
        folder=tmp_path, statuses=(0, 1),
    )  # fmt: skip
    run = json.loads((tmp_path / "run.json").read_text())["run"]
    answers = [
        (execution["item"]["name"], execution["response"]["code"])
        for execution in run["executions"]
        if "{{admin_token}}" in json.dumps(execution["item"]["request"].get("auth", {}))
    ]
    assert len(answers) > 100
    assert [name for name, status in answers if status == 401] == []
    assert answers[-1] == (run["executions"][-1]["item"]["name"], 204)
