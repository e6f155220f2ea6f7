"""The TypeScript client and the Postman collection work against a gateway.

`make generators` installs tsc and newman.
"""

import asyncio
import json
import os
import re
import shutil
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from drivers.in_process import ClientFactory
from drivers.network_faults import FlakyServer
from generators.test_client_generators import NODE_MODULES, TIMEOUT_SECONDS
from harness import Harness
from tapgate.api.services import Services
from tapgate.clock import system_clock
from tapgate.gateway_installation import create_first_admin
from tapgate.webhooks import model

ROOT = Path(__file__).parents[2]
CLIENT = ROOT / "clients" / "typescript"
COLLECTION = ROOT / "docs" / "postman" / "tapgate.postman_collection.json"
BASE_URL = "http://127.0.0.1:8000"
ADMIN = {"email": "ada@example.com", "password": "correct horse battery"}
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


async def run_command(*command: str | Path, folder: Path) -> str:
    process = await asyncio.create_subprocess_exec(
        *map(str, command),
        cwd=folder,
        env=os.environ
        | {"NO_COLOR": "1", "ADMIN_EMAIL": ADMIN["email"], "ADMIN_PASSWORD": ADMIN["password"]},
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    async with asyncio.timeout(TIMEOUT_SECONDS):
        output = (await process.communicate())[0].decode()
    assert process.returncode == 0, output
    return output


@needs_tsc
async def test_examples_of_the_typescript_client_print_the_documented_output(
    base_url: str, tmp_path: Path
) -> None:
    text = (ROOT / "docs" / "typescript.md").read_text()
    blocks = re.findall(r"^```(ts|output)\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
    program = "".join(code for language, code in blocks if language == "ts")
    body = model.encode_body("card.linked", system_clock(), '{"id": "x"}').decode()
    headers = model.build_headers(1, [SECRET], body.encode(), system_clock())
    arguments = f"{json.dumps(SECRET)}, {json.dumps(headers)}, {json.dumps(body)}"
    program += f"console.log(await receive({arguments}), await receive({arguments} + ' '));\n"
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
    output = await run_command("node", "dist/program.js", folder=tmp_path)
    expected = "".join(text for language, text in blocks if language == "output")
    assert output == expected + "card.linked\n204 400\n"


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
