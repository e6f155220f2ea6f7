"""Work queues: the next item, and the filter by assignee."""

from collections.abc import Mapping
from typing import Final

from tapgate.sites.console.actions import Action
from tapgate.sites.console.page_request import PageRequest
from tapgate_client.schemas.assignees import UNASSIGNED

#: One item may be the one that is skipped.
_CANDIDATES: Final = 2


async def find_next(
    request: PageRequest, path: str, query: Mapping[str, str | int], id_field: str = "id"
) -> str | None:
    """Return the ID of the next item in a queue, or None if no other item waits.

    Items that are assigned to the admin come first, then unassigned items. `after` in the query of
    the page is the item to skip.
    """
    skipped = request.query.get("after")
    for assignee in (request.principal.id, UNASSIGNED):
        page = await request.get(path, {**query, "assignee": assignee, "limit": _CANDIDATES})
        for item in page["data"]:
            if item[id_field] != skipped:
                next_id: str = item[id_field]
                return next_id
    return None


def build_assign_actions(prefix: str, path: str, noun: str) -> tuple[Action, Action]:
    """Return the actions for `POST {path}/assign` and `POST {path}/unassign`."""
    return (
        Action(
            name=f"{prefix}.assign",
            endpoint=f"POST {path}/assign",
            title="Assign to me?",
            description=f"Shows the team that you handle this {noun}.",
            button="Assign to me",
            success_message=f"{noun.capitalize()} assigned to you.",
        ),
        Action(
            name=f"{prefix}.unassign",
            endpoint=f"POST {path}/unassign",
            title="Remove the assignee?",
            description=f"Any colleague can then handle this {noun}.",
            button="Unassign",
            success_message=f"{noun.capitalize()} unassigned.",
        ),
    )
