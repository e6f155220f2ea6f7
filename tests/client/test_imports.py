"""Importing the client loads no server code."""

import subprocess
import sys

_PROGRAM = """
import sys
import tapgate.client
print("\\n".join(sys.modules))
"""
ALLOWED_PACKAGES = {
    "client", "schemas", "clock", "errors", "ids", "money", "signing",
}  # fmt: skip
SERVER_LIBRARIES = {
    "PIL", "argon2", "asyncpg", "jinja2", "prometheus_client", "reportlab", "structlog", "typer",
    "uvicorn", "uvloop",
}  # fmt: skip


def test_client_imports_no_server_package() -> None:
    result = subprocess.run(
        [sys.executable, "-c", _PROGRAM], check=True, capture_output=True, text=True
    )
    modules = [name.split(".") for name in result.stdout.split()]
    packages = {name[1] for name in modules if name[0] == "tapgate" and len(name) > 1}
    assert "client" in packages
    assert packages <= ALLOWED_PACKAGES
    assert SERVER_LIBRARIES.isdisjoint(name[0] for name in modules)
