"""Every endpoint by which an admin changes something has a guard, or a reason for none."""

import msgspec
import pytest

from tapgate.business.approvals.model import NEVER_STORED_FIELDS
from tapgate.http.api.guards import Unguarded, collect_guarded_roles
from tapgate.http.endpoint import Endpoint
from tapgate.server.gateway import list_endpoints
from tapgate_client.schemas.admin import AdminRole
from tapgate_client.schemas.approvals import Operation


def list_changing_endpoints() -> list[Endpoint]:
    return [
        endpoint
        for endpoint in list_endpoints()
        if endpoint.method != "GET" and (endpoint.access.roles or endpoint.access.scope)
    ]


@pytest.mark.parametrize("endpoint", list_endpoints(), ids=lambda endpoint: endpoint.name)
def test_every_changing_endpoint_declares_a_guard_or_a_reason(endpoint: Endpoint) -> None:
    declarations = [endpoint.guard, endpoint.unguarded]
    expected = 1 if endpoint in list_changing_endpoints() else 0
    count = len([item for item in declarations if item is not None])
    assert count == expected, "declare `guard` or `unguarded`, see tapgate.http.api.guards"
    assert endpoint.unguarded is None or endpoint.unguarded in tuple(Unguarded)


def test_every_operation_has_an_endpoint_that_admins_can_call() -> None:
    roles = collect_guarded_roles(list_endpoints())
    assert roles.keys() == set(Operation)
    assert all(AdminRole.SYSTEM_ADMIN in names for names in roles.values())


GUARDED_ENDPOINTS = [endpoint for endpoint in list_changing_endpoints() if endpoint.guard]


@pytest.mark.parametrize("endpoint", GUARDED_ENDPOINTS, ids=lambda endpoint: endpoint.name)
def test_no_pin_or_password_is_stored(endpoint: Endpoint) -> None:
    if endpoint.body_type is None:
        return
    names = {field.encode_name for field in msgspec.structs.fields(endpoint.body_type)}
    secrets = {name for name in names if {"pin", "password", "otp"} & set(name.split("_"))}
    secrets -= {"no_pin_limit"}
    assert secrets <= NEVER_STORED_FIELDS
    assert not (NEVER_STORED_FIELDS & names) - secrets


@pytest.mark.parametrize("endpoint", GUARDED_ENDPOINTS, ids=lambda endpoint: endpoint.name)
def test_approval_ends_in_the_same_database_transaction_as_its_effect(endpoint: Endpoint) -> None:
    ends_in_ledger = endpoint.moves_money or endpoint.guard.ends_in_ledger
    assert endpoint.takes_tx != ends_in_ledger, "declare `tx`, or end the approval in the ledger"
