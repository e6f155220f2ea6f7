"""Replays on every route that moves money: same response, one transaction."""

import asyncio

import pytest

from gateway.money_requests import CASES, count_entries, count_transactions, send_case
from harness import Harness
from tapgate.gateway import ENDPOINT_GROUPS

MONEY_ROUTES = {
    endpoint.name for group in ENDPOINT_GROUPS for endpoint in group if endpoint.moves_money
}

#: The partner's reference is the idempotency key here; see tests/partners.
ROUTES_KEYED_BY_REFERENCE = {"POST /api/v1/webhooks/partners/{partner_id}"}


def test_every_money_route_has_a_case() -> None:
    assert set(CASES) | ROUTES_KEYED_BY_REFERENCE == MONEY_ROUTES | ROUTES_KEYED_BY_REFERENCE


parametrize_routes = pytest.mark.parametrize("route", sorted(CASES))


@parametrize_routes
async def test_replayed_request_returns_the_original_response_and_moves_no_money(
    harness: Harness, route: str
) -> None:
    case = await CASES[route](harness)
    first = await send_case(harness, case, "one")
    assert first.status_code == 200, first.text
    assert {"success", "message", "transaction_id", "status"} <= set(first.json())
    entry_count = await count_entries(harness)
    replay = await send_case(harness, case, "one")
    assert (replay.status_code, replay.json()) == (200, first.json())
    assert replay.headers["Idempotent-Replayed"] == "true"
    assert "Idempotent-Replayed" not in first.headers
    assert await count_entries(harness) == entry_count


@parametrize_routes
async def test_idempotency_key_reused_with_a_different_request_is_rejected(
    harness: Harness, route: str
) -> None:
    case = await CASES[route](harness)
    assert (await send_case(harness, case, "one")).status_code == 200
    entry_count = await count_entries(harness)
    changed_case = case._replace(path=case.changed_path or case.path)
    response = await send_case(harness, changed_case, "one", **case.changed_fields)
    assert (response.status_code, response.json()["code"]) == (409, "DUPLICATE_REQUEST")
    assert await count_entries(harness) == entry_count


@parametrize_routes
async def test_unsupported_currency_is_rejected_and_omitted_currency_means_the_default(
    harness: Harness, route: str
) -> None:
    case = await CASES[route](harness)
    entry_count = await count_entries(harness)
    rejected = await send_case(harness, case, "one", currency="USD")
    assert (rejected.status_code, rejected.json()["code"]) == (422, "CURRENCY_NOT_SUPPORTED")
    assert await count_entries(harness) == entry_count
    first = await send_case(harness, case, "one")
    replay = await send_case(harness, case, "one", currency="SLE")
    assert (replay.status_code, replay.json()) == (200, first.json())


@parametrize_routes
async def test_conflicting_idempotency_keys_are_reported_before_invalid_fields(
    harness: Harness, route: str
) -> None:
    case = await CASES[route](harness)
    response = await harness.client.post(
        case.path,
        json=case.body | {"request_id": "one", "amount": "1e3", "currency": "USD"},
        auth=case.auth,
        headers={"Idempotency-Key": "two"},
    )
    assert (response.status_code, response.json()["code"]) == (400, "INVALID_REQUEST")


@parametrize_routes
async def test_concurrent_duplicates_move_money_once(harness: Harness, route: str) -> None:
    case = await CASES[route](harness)
    responses = await asyncio.gather(*(send_case(harness, case, "one") for _ in range(10)))
    assert {response.status_code for response in responses} == {200}
    assert len({response.text for response in responses}) == 1
    replays = [response for response in responses if "Idempotent-Replayed" in response.headers]
    assert len(replays) == 9
    assert await count_transactions(harness, "one") == 1


@parametrize_routes
async def test_decline_is_stored_once_and_replayed(harness: Harness, route: str) -> None:
    case = await CASES[route](harness)
    if case.before_decline is not None:
        await case.before_decline()
    first = await send_case(harness, case, "one", **case.declined_fields)
    assert first.status_code in (402, 403), first.text
    entry_count = await count_entries(harness)
    replay = await send_case(harness, case, "one", **case.declined_fields)
    assert (replay.status_code, replay.json()) == (first.status_code, first.json())
    assert replay.headers["Idempotent-Replayed"] == "true"
    assert await count_entries(harness) == entry_count
    status = await harness.services.database.fetchval(
        "SELECT status FROM transactions WHERE request_id = 'one'"
    )
    assert status == "failed"
