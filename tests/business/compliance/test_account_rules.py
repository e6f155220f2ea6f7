"""Reading and changing the limits of each KYC level."""

from typing import Any

import httpx2

from harness import Harness
from tapgate.ledger import chart, commands
from tapgate.ledger.commands import Command, Outcome
from tapgate_client import ids

URL = "/api/v1/account-rules"

LEVEL_1_RULE = {
    "kyc_level": 1,
    "currency": "SLE",
    "max_balance": "500000.00",
    "max_transaction": "50000.00",
    "daily_limit": "100000.00",
    "monthly_limit": "1000000.00",
    "no_pin_limit": "500.00",
    "proof_required_above": None,
    "requirements": ["phone_number"],
}


async def put_rule(harness: Harness, body: Any, level: str = "1") -> httpx2.Response:
    return await harness.put(f"{URL}/{level}", json=body, auth=await harness.create_admin())


async def get_rule(harness: Harness, level: str = "1") -> dict[str, Any]:
    response = await harness.get(f"{URL}/{level}", auth=harness.get_service_auth())
    assert response.status_code == 200
    rule: dict[str, Any] = response.json()
    return rule


async def test_new_installation_has_the_default_limits(harness: Harness) -> None:
    assert await get_rule(harness) == LEVEL_1_RULE
    assert list(await get_rule(harness)) == list(LEVEL_1_RULE)
    assert (await get_rule(harness, "2"))["max_balance"] == "2000000.00"
    assert (await get_rule(harness, "3"))["no_pin_limit"] == "5000.00"


async def test_unknown_level_is_not_found(harness: Harness) -> None:
    admin = await harness.create_admin()
    for level in ("0", "4", "01", "1.0", "one", "-1", "１", "9" * 200):
        for method, body in (("GET", None), ("PUT", {"max_balance": "1"})):
            response = await harness.client.request(method, f"{URL}/{level}", json=body, auth=admin)
            assert (response.status_code, response.json()["code"]) == (404, "RULE_NOT_FOUND")


async def test_update_changes_the_given_fields_and_keeps_the_rest(harness: Harness) -> None:
    body = {
        "max_transaction": "60000",
        "daily_limit": "120000.5",
        "no_pin_limit": "0",
        "requirements": ["phone_number", "selfie"],
    }
    response = await put_rule(harness, body)
    assert response.status_code == 200
    expected = LEVEL_1_RULE | {
        "max_transaction": "60000.00",
        "daily_limit": "120000.50",
        "no_pin_limit": "0.00",
        "requirements": ["phone_number", "selfie"],
    }
    assert response.json() == expected
    assert await get_rule(harness) == expected
    (entry,) = await harness.list_audit_entries("1", "account_rule.updated")
    assert entry["changes"] == {
        "max_transaction": ["50000.00", "60000.00"],
        "daily_limit": ["100000.00", "120000.50"],
        "no_pin_limit": ["500.00", "0.00"],
        "requirements": [["phone_number"], ["phone_number", "selfie"]],
    }


async def test_update_that_changes_nothing_is_not_audited(harness: Harness) -> None:
    bodies: list[dict[str, Any]] = [{}, LEVEL_1_RULE, {"kyc_level": 3}, {"max_balance": "500000"}]
    for body in bodies:
        assert (await put_rule(harness, body)).json() == LEVEL_1_RULE
    assert await harness.list_audit_entries("1", "account_rule.updated") == []


async def test_daily_limit_cannot_exceed_the_monthly_limit(harness: Harness) -> None:
    for body in (
        {"daily_limit": "1000000.01"},
        {"monthly_limit": "99999.99"},
        {"daily_limit": "2", "monthly_limit": "1"},
    ):
        response = await put_rule(harness, body)
        assert (response.status_code, response.json()["code"]) == (422, "VALIDATION_FAILED")
        assert set(response.json()["details"]["fields"]) == {"daily_limit", "monthly_limit"}
    assert await get_rule(harness) == LEVEL_1_RULE


async def test_daily_and_monthly_limit_can_be_equal(harness: Harness) -> None:
    response = await put_rule(harness, {"daily_limit": "7.00", "monthly_limit": "7.00"})
    assert response.status_code == 200


async def test_invalid_field_is_named_in_the_error(harness: Harness) -> None:
    bodies: list[tuple[dict[str, Any], int, str]] = [
        ({"max_balance": 500000}, 400, "max_balance"),
        ({"max_balance": "0"}, 422, "max_balance"),
        ({"max_balance": "-1"}, 422, "max_balance"),
        ({"max_balance": "1e5"}, 422, "max_balance"),
        ({"max_balance": "1.001"}, 422, "max_balance"),
        ({"max_balance": "1000000000000"}, 422, "max_balance"),
        ({"no_pin_limit": "free"}, 422, "no_pin_limit"),
        ({"requirements": "selfie"}, 400, "requirements"),
        ({"requirements": [7]}, 400, "requirements[0]"),
        ({"requirements": ["a\0"]}, 422, "requirements[0]"),
        ({"requirements": ["a"] * 21}, 422, "requirements"),
    ]
    for body, status, field in bodies:
        response = await put_rule(harness, body)
        assert response.status_code == status, body
        assert list(response.json()["details"]["fields"]) == [field]
    assert await get_rule(harness) == LEVEL_1_RULE


async def test_unsupported_currency_is_rejected(harness: Harness) -> None:
    response = await put_rule(harness, {"currency": "EUR", "max_balance": "7"})
    assert (response.status_code, response.json()["code"]) == (422, "CURRENCY_NOT_SUPPORTED")
    assert await get_rule(harness) == LEVEL_1_RULE


async def test_changed_limit_applies_to_the_next_transaction(harness: Harness) -> None:
    payer, payee = await harness.create_subscriber(balance="100"), await harness.create_subscriber()

    async def pay() -> Outcome:
        return await harness.services.ledger.submit(
            Command(
                type=chart.TRANSFER,
                channel="admin",
                payer=commands.subscriber_party(ids.decode(ids.SUBSCRIBER, payer["id"]) or 0),
                payee=commands.subscriber_party(ids.decode(ids.SUBSCRIBER, payee["id"]) or 0),
                amount=1000,
            )
        )

    assert (await pay()).code is None
    await put_rule(harness, {"max_transaction": "9.99"})
    assert (await pay()).code == "TRANSACTION_LIMIT_EXCEEDED"
