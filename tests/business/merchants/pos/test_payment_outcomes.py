"""Looking up a payment's outcome by its idempotency key."""

from typing import Any

import httpx2
import pytest

from builders.payments import PosDriver, list_alerts, resolve_alert, update_rule
from harness import Harness, HmacAuth, parse_error

URL = "/api/v1/pos/payments"


async def _create_terminal_key(harness: Harness, pos: PosDriver) -> tuple[str, HmacAuth]:
    terminal = await pos.create_terminal()
    return terminal, await _create_key(harness, pos, terminal)


async def _create_key(harness: Harness, pos: PosDriver, terminal: str | None = None) -> HmacAuth:
    processor = await harness.get_processor_id(pos.merchant_auth)
    response = await harness.client.post(
        f"/api/v1/processors/{processor}/keys",
        json={"terminal_id": terminal},
        auth=await harness.create_admin(),
    )
    return HmacAuth(response.json()["api_key_id"], response.json()["hmac_secret"])


async def _look_up(
    harness: Harness, auth: Any, request_id: str, query: str = ""
) -> httpx2.Response:
    return await harness.client.get(f"{URL}/{request_id}{query}", auth=auth)


async def test_outcome_is_the_receipt_the_decline_or_404(harness: Harness) -> None:
    pos = await PosDriver.create(harness, balance="300")
    paid = await pos.pay("100", request_id="paid", metadata={"order": 17})
    outcome = await _look_up(harness, pos.merchant_auth, "paid")
    assert (outcome.status_code, outcome.json()) == (200, paid.json())
    assert parse_error(await pos.pay("400", request_id="declined")) == (402, "INSUFFICIENT_FUNDS")
    declined = await _look_up(harness, pos.merchant_auth, "declined")
    assert declined.json() == {"status": "failed", "code": "INSUFFICIENT_FUNDS"}
    missing = await _look_up(harness, pos.merchant_auth, "missing")
    assert parse_error(missing) == (404, "TRANSACTION_NOT_FOUND")


async def test_terminal_sees_its_requests_and_a_processor_sees_all_terminal_requests(
    harness: Harness,
) -> None:
    pos = await PosDriver.create(harness)
    (first, first_key), (second, second_key) = [
        await _create_terminal_key(harness, pos) for _ in range(2)
    ]
    paid = await pos.pay(auth=first_key, request_id="at first")
    for auth in (first_key, pos.merchant_auth):
        assert (await _look_up(harness, auth, "at first")).json() == paid.json()
    for auth in (second_key, await harness.create_processor()):
        assert (await _look_up(harness, auth, "at first")).status_code == 404
    await pos.pay(auth=pos.merchant_auth, request_id="by server")
    assert (await _look_up(harness, first_key, "by server")).status_code == 404
    both = [await pos.pay(auth=key, request_id="both") for key in (first_key, second_key)]
    ambiguous = await _look_up(harness, pos.merchant_auth, "both")
    assert parse_error(ambiguous) == (409, "DUPLICATE_REQUEST")
    for terminal, response in zip((first, second), both, strict=True):
        outcome = await _look_up(harness, pos.merchant_auth, "both", f"?terminal_id={terminal}")
        assert outcome.json() == response.json()


async def test_processor_finds_its_own_payment_by_the_terminal_it_named(harness: Harness) -> None:
    pos = await PosDriver.create(harness)
    first, second = [await pos.create_terminal() for _ in range(2)]
    paid = await pos.pay(auth=pos.merchant_auth, request_id="own", terminal_id=first)
    outcome = await _look_up(harness, pos.merchant_auth, "own", f"?terminal_id={first}")
    assert outcome.json() == paid.json()
    outcome = await _look_up(harness, pos.merchant_auth, "own", f"?terminal_id={second}")
    assert parse_error(outcome) == (404, "TRANSACTION_NOT_FOUND")


@pytest.mark.parametrize(
    ("decision", "status", "code"),
    [("release", "completed", None), ("reject", "failed", "COMPLIANCE_REJECTED")],
)
async def test_outcome_of_a_held_payment_follows_the_review(
    harness: Harness, decision: str, status: str, code: str | None
) -> None:
    await update_rule(harness, "Large amount", threshold="100.00")
    pos = await PosDriver.create(harness)
    held = await pos.pay("100.01", request_id="held")
    assert held.json()["status"] == "under_review"
    assert (await _look_up(harness, pos.merchant_auth, "held")).json() == held.json()

    (alert,) = await list_alerts(harness)
    response = await resolve_alert(harness, alert["id"], transaction_decision=decision)
    assert response.status_code == 200, response.text
    outcome = (await _look_up(harness, pos.merchant_auth, "held")).json()
    if code is not None:
        assert outcome == {"status": status, "code": code}
    else:
        changed = {name for name in outcome if outcome[name] != held.json()[name]}
        assert changed == {"status", "message", "approval_code"} and outcome["status"] == status
        assert len(outcome["approval_code"]) == 6
    replayed = await pos.pay("100.01", request_id="held")  # a replay keeps the original receipt
    assert replayed.content == held.content


async def test_outcome_is_found_with_a_new_key_after_a_rotation(harness: Harness) -> None:
    pos = await PosDriver.create(harness)
    terminal, old_key = await _create_terminal_key(harness, pos)
    paid = await pos.pay(auth=old_key, request_id="before")
    by_server = await pos.pay(request_id="by server")
    new_key, new_server_key = (
        await _create_key(harness, pos, terminal),
        await _create_key(harness, pos),
    )
    admin, processor = (
        await harness.create_admin(),
        await harness.get_processor_id(pos.merchant_auth),
    )
    for key in (old_key, pos.merchant_auth):
        url = f"/api/v1/processors/{processor}/keys/{key.id}"
        assert (await harness.delete(url, auth=admin)).status_code == 204
        assert (await _look_up(harness, key, "before")).status_code == 401
    for key in (new_key, new_server_key):
        assert (await _look_up(harness, key, "before")).json() == paid.json()
    assert (await _look_up(harness, new_server_key, "by server")).json() == by_server.json()
    assert (await _look_up(harness, new_key, "by server")).status_code == 404
