"""The allowlist matches the API and the documented settings, and gives reasons."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any, get_args, get_origin

import msgspec

from secret_leaks import allowlist
from secret_leaks.capture import is_secret_field
from tapgate.server.gateway import ENDPOINT_GROUPS


def list_fields(kind: Any) -> Iterator[str]:
    """Yield the field names in a response type and all nested types."""
    if isinstance(get_origin(kind) or kind, type) and issubclass(
        get_origin(kind) or kind, msgspec.Struct
    ):
        for field in msgspec.structs.fields(kind):
            yield field.encode_name
            yield from list_fields(field.type)
    else:
        for inner in get_args(kind):
            yield from list_fields(inner)


def test_allowed_responses_match_the_endpoints_that_return_secrets() -> None:
    returned = {
        (endpoint.name, field)
        for noun in ENDPOINT_GROUPS
        for endpoint in noun
        for field in list_fields(endpoint.response_type)
        if is_secret_field(field)
    }
    assert returned == set(allowlist.ALLOWED_IN_RESPONSES)


def test_allowed_environment_variables_are_documented_settings() -> None:
    documented = (Path(__file__).parents[2] / "docs" / "settings.md").read_text()
    for environment in allowlist.ALLOWED_IN_ENVIRONMENTS.values():
        assert all(f"`{name}`" in documented for name in environment)


def test_every_exception_has_a_reason() -> None:
    tables = (
        allowlist.ALLOWED_IN_RESPONSES,
        allowlist.ALLOWED_IN_FILES,
        *allowlist.ALLOWED_IN_ENVIRONMENTS.values(),
    )
    assert all(reason for table in tables for reason in table.values())
