"""The filter `assignee` of work queues."""

from typing import Annotated, Any, Final

from tapgate_client import ids
from tapgate_client.schemas.fields import IdRule, InvalidValueError

#: Value of the filter for items that are assigned to no admin.
UNASSIGNED: Final = "none"


class AssigneeRule(IdRule):
    """Admin ID, or `none`."""

    def __init__(self) -> None:
        super().__init__(ids.ADMIN)

    def check(self, value: str) -> str:
        if value != UNASSIGNED and ids.decode(ids.ADMIN, value) is None:
            raise InvalidValueError(f"must be an ID that starts with {ids.ADMIN}, or {UNASSIGNED}")
        return value

    def to_json_schema(self) -> dict[str, Any]:
        return {
            "pattern": f"^({ids.ADMIN}[0-9a-z]{{13}}|{UNASSIGNED})$",
            "description": f"ID of an admin, or `{UNASSIGNED}` for items without an assignee",
        }


AssigneeFilter = Annotated[str, AssigneeRule()]
