"""Client generators accept both OpenAPI documents, and programs compile against their output.

`make generators` installs the generators into a separate environment.
"""

from pathlib import Path

import pytest

from drivers.client_generators import (
    NODE_MODULES,
    PYTHON,
    compile_typescript,
    generate_python_client,
    generate_types,
    needs_python_generator,
    run_command,
)

needs_node = pytest.mark.skipif(
    not (NODE_MODULES / ".bin" / "openapi-typescript").exists(),
    reason="openapi-typescript is not installed: run `make generators` (needs npm)",
)


@needs_node
def test_typescript_program_compiles_against_the_generated_types(tmp_path: Path) -> None:
    generate_types(tmp_path)
    compile_typescript(tmp_path, "types.ts", options=("--exactOptionalPropertyTypes",))


@needs_python_generator
def test_generated_python_client_of_the_messenger_has_every_operation(tmp_path: Path) -> None:
    package = generate_python_client("messenger", tmp_path)
    run_command(PYTHON / "python", "-m", "compileall", "-q", package, folder=tmp_path)
