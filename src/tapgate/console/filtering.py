"""Filtered lists. Invalid filters are dropped and reported on the page."""

from collections.abc import Mapping
from typing import Any, NamedTuple

from tapgate.console.labels import use_console_terms
from tapgate.console.page_request import PageRequest
from tapgate.errors import ApiError, Code


class FilteredList(NamedTuple):
    page: Any
    #: Error messages for the filters that were dropped.
    problems: list[str]


async def get_filtered_list(
    request: PageRequest, path: str, labels: Mapping[str, str]
) -> FilteredList:
    """Load a list, dropping the filters that the API rejects.

    `labels` maps the API's filter names to the labels on the page.
    """
    filters = request.query.pick(*labels, "cursor")
    problems: list[str] = []
    while True:
        try:
            return FilteredList(await request.get(path, filters), problems)
        except ApiError as error:
            invalid = _get_invalid_filters(error, filters)
            if not invalid:
                raise
        for name, message in invalid.items():
            del filters[name]
            problems.append(f"{labels.get(name, name)} {use_console_terms(message)}.")


def _get_invalid_filters(error: ApiError, filters: Mapping[str, str]) -> dict[str, str]:
    if error.code is Code.OTP_REQUIRED and "card_serial" in filters:
        # The message must not reveal whose card it is.
        return {
            "card_serial": "belongs to a restricted customer. Request an access code on their page"
        }
    if error.code is not Code.VALIDATION_FAILED:
        return {}
    fields: Mapping[str, str] = (error.details or {}).get("fields", {})
    return {name: message for name, message in fields.items() if name in filters}
