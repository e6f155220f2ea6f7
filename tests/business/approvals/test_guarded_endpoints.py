"""Every endpoint by which an admin changes something has a guard, or a reason for none."""

import msgspec

from cases import each
from tapgate.business.approvals.model import NEVER_STORED_FIELDS
from tapgate.http.api.guards import Unguarded, collect_guarded_roles
from tapgate.http.endpoint import Endpoint
from tapgate.server.gateway import list_endpoints
from tapgate_client.schemas.admin import AdminRole
from tapgate_client.schemas.approvals import Operation


def is_changing(endpoint: Endpoint) -> bool:
    return endpoint.method != "GET" and bool(endpoint.access.roles or endpoint.access.scope)


@each("endpoint", list_endpoints())
def test_every_changing_endpoint_declares_a_guard_or_a_reason(endpoint: Endpoint) -> None:
    declarations = [endpoint.guard, endpoint.unguarded]
    count = len([item for item in declarations if item is not None])
    expected = int(is_changing(endpoint))
    assert count == expected, "declare `guard` or `unguarded`, see tapgate.http.api.guards"
    assert endpoint.unguarded is None or endpoint.unguarded in tuple(Unguarded)


def test_every_operation_has_an_endpoint_that_admins_can_call() -> None:
    roles = collect_guarded_roles(list_endpoints())
    assert roles.keys() == set(Operation)
    assert all(AdminRole.SYSTEM_ADMIN in names for names in roles.values())


GUARDED_ENDPOINTS = [item for item in list_endpoints() if is_changing(item) and item.guard]


@each("endpoint", GUARDED_ENDPOINTS)
def test_no_pin_or_password_is_stored(endpoint: Endpoint) -> None:
    if endpoint.body_type is None:
        return
    names = {field.encode_name for field in msgspec.structs.fields(endpoint.body_type)}
    secrets = {name for name in names if {"pin", "password", "otp"} & set(name.split("_"))}
    secrets -= {"no_pin_limit"}
    assert secrets <= NEVER_STORED_FIELDS
    assert not (NEVER_STORED_FIELDS & names) - secrets


@each("endpoint", GUARDED_ENDPOINTS)
def test_approval_ends_in_the_same_database_transaction_as_its_effect(endpoint: Endpoint) -> None:
    ends_in_ledger = endpoint.moves_money or endpoint.guard.ends_in_ledger
    assert endpoint.takes_tx != ends_in_ledger, "declare `tx`, or end the approval in the ledger"
