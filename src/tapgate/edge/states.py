"""How records move from state to state: every move is named, and so is its refusal."""

from collections.abc import Mapping
from typing import Generic, NamedTuple, TypeVar

from tapgate.errors import ApiError, Code

S = TypeVar("S", bound=str)


class Move(NamedTuple, Generic[S]):
    """A change of state: from which states it leads where, and how it is refused from others."""

    done: str
    leads: Mapping[S, S]
    refusal: Code

    def after(self, status: S) -> S:
        end = self.leads.get(status)
        if end is None:
            raise ApiError(self.refusal)
        return end
