"""Status transitions of records, each with its event name and error code."""

from collections.abc import Mapping
from typing import Generic, NamedTuple, TypeVar

from tapgate_client.errors import ApiError, Code

S = TypeVar("S", bound=str)


class Transition(NamedTuple, Generic[S]):
    """Allowed status change of a record.

    `allowed` maps each valid current status to the new one. From any other status, `apply` raises
    `error_code`.
    """

    event: str
    allowed: Mapping[S, S]
    error_code: Code

    def apply(self, status: S) -> S:
        new_status = self.allowed.get(status)
        if new_status is None:
            raise ApiError(self.error_code)
        return new_status
