"""Client generators and the clients that they generate."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tapgate.messenger.openapi import build_document
from tapgate.messenger.routes import ENDPOINTS
from tapgate.server.gateway import build_openapi_document

HERE = Path(__file__).parents[1] / "generators"
GENERATORS = Path(sys.prefix) / "generators"
PYTHON = GENERATORS / "python" / "bin"
NODE_MODULES = GENERATORS / "node" / "node_modules"
TIMEOUT_SECONDS = 300
SERVICES = ("gateway", "messenger")
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


def compile_typescript(folder: Path, *programs: str, options: tuple[str, ...] = ()) -> None:
    """Compile programs and the generated files in a folder to CommonJS modules."""
    if not (folder / "node_modules").exists():
        (folder / "node_modules").symlink_to(NODE_MODULES)
    for name in (*programs, "signing.ts"):
        (folder / name).write_text((HERE / "programs" / name).read_text())
    target = ("--target", "es2022", "--lib", "es2022,dom,dom.iterable")
    modules = ("--module", "commonjs", "--moduleResolution", "node10", "--skipLibCheck")
    run_command(
        NODE_MODULES / ".bin" / "tsc", "--strict", *options, *target, *modules,
        "--outDir", "dist", *programs, folder=folder,
    )  # fmt: skip


def generate_types(folder: Path) -> None:
    """Generate types of both services with openapi-typescript."""
    (folder / "redocly.yaml").write_text(json.dumps(REDOCLY_CONFIGURATION))
    documents = {service: write_document(service, folder) for service in SERVICES}
    run_command(NODE_MODULES / ".bin" / "openapi-typescript", folder=folder)
    for service, document in documents.items():
        types = (folder / f"{service}.ts").read_text()
        for operation in list_operations(document):
            assert f"    {operation['operationId']}: {{" in types


def generate_python_client(service: str, folder: Path) -> Path:
    """Generate a client with openapi-python-client's default options and return its package."""
    document = write_document(service, folder)
    output = run_command(
        "openapi-python-client", "generate", "--path", f"{service}.json", folder=folder
    )
    problems = re.findall(r"^(?:WARNING|ERROR) parsing (.*) within", output, re.MULTILINE)
    # The other content type's form is generated.
    uploads = {
        "POST /api/v1/cards/upload-csv",
        "POST /api/v1/bank-statements",
        "PUT /api/v1/batches/{id}/lines",
    }
    assert set(problems) == (uploads if service == "gateway" else set()), output
    assert "will not be generated" not in output, output
    (package,) = folder.glob("*-client/*_client")
    modules = {item.stem for item in package.glob("api/*/*.py")} - {"__init__"}
    assert modules == {entry["operationId"] for entry in list_operations(document)}
    return package
