"""Replays on every route that moves money: same response, one transaction."""

import pytest

from harness import Harness, parse_error
from server.gateway.finance_requests import RECORD_CHANGES
from server.gateway.money_requests import CASES, count_entries, send_case
from tapgate.server.gateway import ENDPOINT_GROUPS

MONEY_ROUTES = {
    endpoint.name for group in ENDPOINT_GROUPS for endpoint in group if endpoint.moves_money
}

#: The partner's reference is the idempotency key here; see tests/business/partners.
ROUTES_KEYED_BY_REFERENCE = {"POST /api/v1/webhooks/partners/{partner_id}"}


def test_every_money_route_has_a_case() -> None:
    cases = set(CASES) | set(RECORD_CHANGES)
    assert cases | ROUTES_KEYED_BY_REFERENCE == MONEY_ROUTES | ROUTES_KEYED_BY_REFERENCE


parametrize_routes = pytest.mark.parametrize("route", sorted(CASES))


@parametrize_routes
async def test_replayed_request_returns_the_original_response_and_moves_no_money(
    harness: Harness, route: str
) -> None:
    case = await CASES[route](harness)
    entry_count = await count_entries(harness)
    rejected = await send_case(harness, case, "one", currency="USD")
    assert (rejected.status_code, rejected.json()["code"]) == (422, "CURRENCY_NOT_SUPPORTED")
    assert await count_entries(harness) == entry_count
    first = await send_case(harness, case, "one")
    assert first.status_code == 200, first.text
    assert {"success", "message", "transaction_id", "status"} <= set(first.json())
    assert "Idempotent-Replayed" not in first.headers
    entry_count = await count_entries(harness)
    # An omitted currency means the default.
    for fields in ({}, {"currency": "SLE"}):
        replay = await send_case(harness, case, "one", **fields)
        assert (replay.status_code, replay.json()) == (200, first.json())
        assert replay.headers["Idempotent-Replayed"] == "true"
    changed_case = case._replace(path=case.changed_path or case.path)
    response = await send_case(harness, changed_case, "one", **case.changed_fields)
    assert (response.status_code, response.json()["code"]) == (409, "DUPLICATE_REQUEST")
    assert await count_entries(harness) == entry_count


@parametrize_routes
async def test_decline_is_stored_once_and_replayed(harness: Harness, route: str) -> None:
    case = await CASES[route](harness)
    # Conflicting idempotency keys are reported before invalid fields.
    response = await harness.post(
        case.path,
        json=case.body | {"request_id": "one", "amount": "1e3", "currency": "USD"},
        auth=case.auth,
        headers={"Idempotency-Key": "two"},
    )
    assert (response.status_code, response.json()["code"]) == (400, "INVALID_REQUEST")
    if case.before_decline is not None:
        await case.before_decline()
    first = await send_case(harness, case, "one", **case.declined_fields)
    assert first.status_code in (402, 403), first.text
    entry_count = await count_entries(harness)
    replay = await send_case(harness, case, "one", **case.declined_fields)
    assert (replay.status_code, replay.json()) == (first.status_code, first.json())
    assert replay.headers["Idempotent-Replayed"] == "true"
    assert await count_entries(harness) == entry_count
    status = await harness.database.fetchval(
        "SELECT status FROM transactions WHERE request_id = 'one'"
    )
    assert status == "failed"


@pytest.mark.parametrize("route", sorted(RECORD_CHANGES))
async def test_replayed_change_returns_the_original_record_and_moves_no_money(
    harness: Harness, route: str
) -> None:
    change = await RECORD_CHANGES[route](harness)
    entry_count = await count_entries(harness)
    first = await change.send("one")
    assert first.is_success, first.text
    assert "Idempotent-Replayed" not in first.headers
    assert await count_entries(harness) > entry_count
    entry_count = await count_entries(harness)
    replay = await change.send("one")
    assert (replay.status_code, replay.json()) == (first.status_code, first.json())
    assert replay.headers["Idempotent-Replayed"] == "true"
    assert parse_error(await change.send_changed("one")) == (409, "DUPLICATE_REQUEST")
    assert await count_entries(harness) == entry_count
