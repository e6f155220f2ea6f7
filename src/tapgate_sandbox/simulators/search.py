"""Search-as-you-type for the simulators."""

from typing import Any

from tapgate.sites.console.page_request import PageRequest
from tapgate_client.errors import ApiError, Code


async def search_records(
    request: PageRequest, path: str, search: str, limit: int
) -> list[dict[str, Any]]:
    """Return the matching records, or an empty list if the search text is invalid."""
    try:
        found = await request.get(path, {"search": search, "limit": limit})
    except ApiError as error:
        if error.code is not Code.VALIDATION_FAILED:
            raise
        return []
    data: list[dict[str, Any]] = found["data"]
    return data
