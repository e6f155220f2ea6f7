"""Requests to an operation, which code examples write in several languages."""

from collections.abc import Mapping
from typing import Any, NamedTuple
from urllib.parse import urlencode

from tapgate.sites.guide.reference.operations import Operation


class ExampleRequest(NamedTuple):
    """Request with its values. `body` is None if there is no JSON body."""

    method: str
    path: str  # with placeholders such as `{id}`
    path_values: Mapping[str, str]
    query: Mapping[str, Any]
    body: Any

    @property
    def target(self) -> str:
        """Return the path with its values, and the query."""
        path = self.path
        for name, value in self.path_values.items():
            path = path.replace(f"{{{name}}}", value)
        return f"{path}?{urlencode(self.query)}" if self.query else path


def build_example_request(operation: Operation) -> ExampleRequest:
    """Return a request with the examples that the declarations have."""
    method, path = operation.routes[0]
    return ExampleRequest(
        method,
        path,
        {
            item["name"]: str(item["schema"]["examples"][0])
            for item in operation.list_parameters("path")
        },
        {
            item["name"]: item["schema"]["examples"][0]
            for item in operation.list_parameters("query")
            if item.get("required") and "examples" in item["schema"]
        },
        operation.body_example,
    )
