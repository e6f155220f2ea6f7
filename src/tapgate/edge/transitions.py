"""How records move from state to state: every move is named, and so is its refusal."""

from collections.abc import Mapping
from typing import Generic, NamedTuple, TypeVar

from tapgate.errors import ApiError, Code

S = TypeVar("S", bound=str)


class Transition(NamedTuple, Generic[S]):
    """A change of state: from which states it leads where, and how it is refused from others."""

    event: str
    allowed: Mapping[S, S]
    error_code: Code

    def apply(self, status: S) -> S:
        end = self.allowed.get(status)
        if end is None:
            raise ApiError(self.error_code)
        return end
