"""Prerequisites for operations that need more than a funded customer.

Examples are a blocked card before it is unblocked, and a payment before its refund.
"""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

from fuzz.callers import Caller
from fuzz.values import RequestSubjects, Values

V1 = "/api/v1"


@dataclass
class Prerequisites:
    """Values that replace generated values and can add fields to the body."""

    path: Values = field(default_factory=dict)
    body: Values = field(default_factory=dict)
    caller: Caller | None = None
    #: Replaces the whole body, with its media type.
    content: tuple[bytes, str] | None = None


Recipe = Callable[[RequestSubjects, Caller], Awaitable[Prerequisites]]
RECIPES: dict[str, Recipe] = {}


def register_recipe(*names: str) -> Callable[[Recipe], Recipe]:
    def add(recipe: Recipe) -> Recipe:
        RECIPES.update(dict.fromkeys(names, recipe))
        return recipe

    return add
