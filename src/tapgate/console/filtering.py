"""A list by what somebody has typed: a filter that is no such thing is left out, and said."""

from collections.abc import Mapping
from typing import Any, NamedTuple

from tapgate.console.visit import Visit
from tapgate.errors import ApiError, Code


class Listed(NamedTuple):
    found: Any
    #: Sentences about the filters that were left out.
    wrong: list[str]


async def listed(visit: Visit, path: str, labels: Mapping[str, str]) -> Listed:
    """`labels`: the filters of the list, as the interface and as the page names them."""
    asked = visit.query.pick(*labels, "cursor")
    wrong: list[str] = []
    while True:
        try:
            return Listed(await visit.get(path, asked), wrong)
        except ApiError as error:
            refused = _refused(error, asked)
            if not refused:
                raise
        for name, sentence in refused.items():
            del asked[name]
            wrong.append(f"{labels.get(name, name)} {sentence}.")


def _refused(error: ApiError, asked: Mapping[str, str]) -> dict[str, str]:
    if error.code is not Code.VALIDATION_FAILED:
        return {}
    fields: Mapping[str, str] = (error.details or {}).get("fields", {})
    return {name: sentence for name, sentence in fields.items() if name in asked}
