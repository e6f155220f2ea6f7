"""Prerequisites for operations that need more than a funded customer.

Examples are a blocked card before it is unblocked, and a payment before its refund.
"""

import re
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from drivers.actors import require_success
from fuzz.callers import Caller
from fuzz.values import RequestSubjects, Values

V1 = "/api/v1"


@dataclass
class Prerequisites:
    """Values that replace generated values and can add fields to the body."""

    path: Values = field(default_factory=dict)
    body: Values = field(default_factory=dict)
    query: Values = field(default_factory=dict)
    caller: Caller | None = None
    #: Replaces the whole body, with its media type.
    content: tuple[bytes, str] | None = None


Recipe = Callable[[RequestSubjects, Caller], Awaitable[Prerequisites]]
#: Creates a record, in the records that the path names before it, and returns its ID.
CreateRecord = Callable[[RequestSubjects, Values], Awaitable[str]]
RECIPES: dict[str, Recipe] = {}
#: How records of a kind are created, by the path of their list.
KINDS: dict[str, CreateRecord] = {}


def register_recipe(*names: str) -> Callable[[Recipe], Recipe]:
    def add(recipe: Recipe) -> Recipe:
        RECIPES.update(dict.fromkeys(names, recipe))
        return recipe

    return add


def register_kind(path: str) -> Callable[[CreateRecord], CreateRecord]:
    """Register how to create the record that a path with this beginning names."""

    def add(create: CreateRecord) -> CreateRecord:
        KINDS[f"{V1}/{path}"] = create
        return create

    return add


def register_earlier_step(operation: str, step: str, method: str = "POST", **body: Any) -> None:
    """Register a step of the same record that an operation needs first, such as its suspension."""
    path = operation.partition(" ")[2]
    step_path = f"{path.rpartition('/')[0]}/{step}"

    @register_recipe(operation)
    async def prepare(subjects: RequestSubjects, _: Caller) -> Prerequisites:
        values = await find_records(subjects, path, {})
        admin = subjects.fixtures.admin
        require_success(
            await admin.client.request(
                method, step_path.format(**values), json=body, auth=admin.auth
            )
        )
        return Prerequisites(values)


async def find_records(subjects: RequestSubjects, path: str, known: Mapping[str, Any]) -> Values:
    """Return the unknown parameters of a path: new records if their kind is registered.

    Otherwise they are existing records, from the list with the same beginning of the path.
    """
    values = dict(known)
    for parameter in re.finditer(r"\{(\w+)\}", path):
        name, collection = parameter[1], path[: parameter.start() - 1]
        if name in values:
            continue
        if collection in KINDS:
            values[name] = await KINDS[collection](subjects, values)
        elif collection in subjects.fixtures.list_paths:
            admin = subjects.fixtures.admin
            listed = await admin.client.get(collection.format(**values), auth=admin.auth)
            records = require_success(listed)["data"]
            assert records, f"No record in {collection}"
            record = subjects.rng.choice(records)
            values[name] = record.get(name, record.get("id"))
    return values
