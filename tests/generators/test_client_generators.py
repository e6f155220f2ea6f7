"""Client generators accept both OpenAPI documents, and programs compile against their output.

`make generators` installs the generators into a separate environment.
"""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tapgate.gateway import build_openapi_document
from tapgate.messenger.openapi import build_document
from tapgate.messenger.routes import ENDPOINTS

HERE = Path(__file__).parent
GENERATORS = Path(sys.prefix) / "generators"
PYTHON = GENERATORS / "python" / "bin"
NODE_MODULES = GENERATORS / "node" / "node_modules"
TIMEOUT_SECONDS = 300

SERVICES = ("gateway", "messenger")

needs_node = pytest.mark.skipif(
    not (NODE_MODULES / ".bin" / "openapi-typescript").exists(),
    reason="openapi-typescript is not installed: run `make generators` (needs npm)",
)
needs_python_generator = pytest.mark.skipif(
    not (PYTHON / "openapi-python-client").exists(),
    reason="openapi-python-client is not installed: run `make generators`",
)


def run_command(*command: str | Path, folder: Path) -> str:
    path = f"{PYTHON}{os.pathsep}{os.environ['PATH']}"
    done = subprocess.run(
        [str(part) for part in command],
        cwd=folder,
        env={**os.environ, "PATH": path, "NO_COLOR": "1"},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=TIMEOUT_SECONDS,
        check=False,
    )
    assert done.returncode == 0, done.stdout
    return done.stdout


def write_document(service: str, folder: Path) -> dict[str, Any]:
    """Write a service's document to a file that is named after the service, and return it."""
    document: dict[str, Any] = (
        build_openapi_document() if service == "gateway" else json.loads(build_document(ENDPOINTS))
    )
    (folder / f"{service}.json").write_text(json.dumps(document))
    return document


def list_operations(document: dict[str, Any]) -> list[dict[str, Any]]:
    return [operation for item in document["paths"].values() for operation in item.values()]


#: The output is not in `.d.ts` files, which tsc does not check with `--skipLibCheck`.
REDOCLY_CONFIGURATION = {
    "apis": {
        service: {"root": f"{service}.json", "x-openapi-ts": {"output": f"{service}.ts"}}
        for service in SERVICES
    }
}


@needs_node
def test_typescript_program_compiles_against_the_generated_types(tmp_path: Path) -> None:
    binaries = NODE_MODULES / ".bin"
    (tmp_path / "node_modules").symlink_to(NODE_MODULES)
    (tmp_path / "program.ts").write_text((HERE / "program.ts").read_text())
    (tmp_path / "redocly.yaml").write_text(json.dumps(REDOCLY_CONFIGURATION))
    documents = {service: write_document(service, tmp_path) for service in SERVICES}
    run_command(binaries / "openapi-typescript", folder=tmp_path)
    for service, document in documents.items():
        types = (tmp_path / f"{service}.ts").read_text()
        for operation in list_operations(document):
            assert f"    {operation['operationId']}: {{" in types
    options = ("--strict", "--noEmit", "--target", "es2022", "--module", "esnext")
    resolution = ("--moduleResolution", "bundler", "--skipLibCheck")
    run_command(binaries / "tsc", *options, *resolution, "program.ts", folder=tmp_path)


@needs_python_generator
@pytest.mark.parametrize("service", SERVICES)
def test_generated_python_client_has_every_operation_and_parses_examples(
    service: str, tmp_path: Path
) -> None:
    document = write_document(service, tmp_path)
    client = tmp_path / f"{service}_client"
    output = run_command(
        "openapi-python-client", "generate", "--path", f"{service}.json", "--output-path", client,
        "--config", HERE / "openapi-python-client.yaml", "--meta", "none", "--fail-on-warning",
        folder=tmp_path,
    )  # fmt: skip
    assert "warning" not in output.lower()
    modules = {item.stem for item in client.glob("api/*/*.py")} - {"__init__"}
    assert modules == {entry["operationId"] for entry in list_operations(document)}
    run_command(PYTHON / "python", "-m", "compileall", "-q", client, folder=tmp_path)
    path, program = PROGRAMS[service]
    success = document["paths"][path]["get"]["responses"]["200"]
    example = json.dumps(success["content"]["application/json"]["example"])
    run_command(PYTHON / "python", "-c", program, example, folder=tmp_path)


#: Programs that read the example of a GET response with the generated client.
PROGRAMS = {
    "gateway": (
        "/api/v1/subscribers/{id}",
        """
import json, sys
from gateway_client.models import SubscriberRecord, SubscriberStatus
record = SubscriberRecord.from_dict(json.loads(sys.argv[1]))
assert record.status is SubscriberStatus.ACTIVE
assert record.created_at.year == 2026 and record.date_of_birth.year == 1990
assert record.status_reason is None and record.id.startswith("sub_")
""",
    ),
    "messenger": (
        "/health",
        """
import json, sys
from messenger_client.models import Health, HealthStatus
assert Health.from_dict(json.loads(sys.argv[1])).status is HealthStatus.OK
""",
    ),
}
