"""Compliance rules: reading, changing, PIN failures and concurrent transfers."""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator
from typing import Any

import httpx2
import pytest

from builders.payments import (
    RULES_URL,
    get_funds,
    get_rules_by_name,
    list_alerts,
    submit_transfer,
    update_rule,
)
from harness import PIN, WRONG_PIN, Harness
from tapgate.core.settings import Settings
from tapgate.http.api.services import Services
from tapgate.ledger.rules.loaded_rules import insert_defaults
from tapgate.ledger.verification.verify import verify
from tapgate.server.gateway_services import open_services

DEFAULT_TRANSACTION_TYPES = ["transfer_p2p", "transfer", "pos_payment", "online_payment"]


async def put_rule(harness: Harness, name: str, body: Any) -> httpx2.Response:
    rule_id = (await get_rules_by_name(harness))[name]["id"]
    return await harness.put(f"{RULES_URL}/{rule_id}", json=body, auth=await harness.create_admin())


async def test_rule_is_read_by_id_and_unknown_rule_is_404(harness: Harness) -> None:
    admin = await harness.create_admin("C")
    for rule in (await get_rules_by_name(harness)).values():
        response = await harness.get(f"{RULES_URL}/{rule['id']}", auth=admin)
        assert (response.status_code, response.json()) == (200, rule)
    for unknown in ("rul_0000000000001", "alr_0000000000001", "1"):
        response = await harness.get(f"{RULES_URL}/{unknown}", auth=admin)
        assert (response.status_code, response.json()["code"]) == (404, "RULE_NOT_FOUND")


async def test_new_installation_has_the_default_rules(harness: Harness) -> None:
    rules = await get_rules_by_name(harness)
    assert all(rule.pop("id").startswith("rul_") for rule in rules.values())
    assert rules == {
        "Large amount": {
            "name": "Large amount",
            "type": "AMOUNT_THRESHOLD",
            "subject": "payer",
            "transaction_types": DEFAULT_TRANSACTION_TYPES,
            "threshold": "500000.00",
            "currency": "SLE",
            "window_seconds": None,
            "action": "review",
            "severity": "HIGH",
            "status": "active",
        },
        "Hourly velocity": {
            "name": "Hourly velocity",
            "type": "TRANSACTION_COUNT",
            "subject": "payer",
            "transaction_types": DEFAULT_TRANSACTION_TYPES,
            "threshold": 10,
            "currency": None,
            "window_seconds": 3600,
            "action": "alert",
            "severity": "MEDIUM",
            "status": "active",
        },
        "Daily velocity": {
            "name": "Daily velocity",
            "type": "TRANSACTION_COUNT",
            "subject": "payer",
            "transaction_types": DEFAULT_TRANSACTION_TYPES,
            "threshold": 20,
            "currency": None,
            "window_seconds": 86400,
            "action": "block",
            "severity": "HIGH",
            "status": "active",
        },
        "Wrong PINs": {
            "name": "Wrong PINs",
            "type": "PIN_FAILURES",
            "subject": "payer",
            "transaction_types": DEFAULT_TRANSACTION_TYPES,
            "threshold": 5,
            "currency": None,
            "window_seconds": 86400,
            "action": "alert",
            "severity": "MEDIUM",
            "status": "inactive",
        },
        "Large cash-in or top-up": {
            "name": "Large cash-in or top-up",
            "type": "AMOUNT_THRESHOLD",
            "subject": "payee",
            "transaction_types": ["agent_cashin", "partner_fund"],
            "threshold": "200000.00",
            "currency": "SLE",
            "window_seconds": None,
            "action": "alert",
            "severity": "MEDIUM",
            "status": "active",
        },
        "Busy agent": {
            "name": "Busy agent",
            "type": "TRANSACTION_COUNT",
            "subject": "agent",
            "transaction_types": ["agent_cashin", "agent_cashout"],
            "threshold": 200,
            "currency": None,
            "window_seconds": 86400,
            "action": "alert",
            "severity": "MEDIUM",
            "status": "active",
        },
    }


async def test_deleted_default_rules_are_not_inserted_again(
    harness: Harness, services: Services
) -> None:
    for rule in (await get_rules_by_name(harness)).values():
        response = await harness.delete(
            f"{RULES_URL}/{rule['id']}", auth=await harness.create_admin("C")
        )
        assert response.status_code == 204
    await services.database.execute("DELETE FROM fee_rules; DELETE FROM commission_rules")
    async with services.transaction() as tx:
        await insert_defaults(tx, "SLE", services.new_id)
    assert await get_rules_by_name(harness) == {}
    for table in ("fee_rules", "commission_rules"):
        assert await services.database.fetchval(f"SELECT count(*) FROM {table}") == 0


async def test_rules_are_paginated(harness: Harness) -> None:
    admin = await harness.create_admin("C")
    first = (await harness.get(f"{RULES_URL}?limit=3", auth=admin)).json()
    assert (len(first["data"]), first["has_more"]) == (3, True)
    rest = await harness.get(f"{RULES_URL}?limit=3&cursor={first['next_cursor']}", auth=admin)
    assert rest.json()["data"][-1]["name"] == "Large amount"
    assert (len(rest.json()["data"]), rest.json()["has_more"]) == (3, False)


async def test_update_changes_the_given_fields_and_keeps_the_rest(harness: Harness) -> None:
    before = (await get_rules_by_name(harness))["Hourly velocity"]
    changes: dict[str, Any] = {
        "name": "Many in two hours",
        "transaction_types": ["agent_cashout", "transfer", "transfer"],
        "threshold": 3,
        "window_seconds": 7200,
        "action": "review",
        "severity": "CRITICAL",
        "status": "inactive",
    }
    response = await put_rule(harness, "Hourly velocity", changes)
    expected = before | changes | {"transaction_types": ["agent_cashout", "transfer"]}
    assert (response.status_code, response.json()) == (200, expected)
    assert (await get_rules_by_name(harness))["Many in two hours"] == expected
    (entry,) = await harness.list_audit_entries(before["id"], "compliance_rule.updated")
    assert entry["changes"]["threshold"] == [10, 3]
    assert entry["changes"]["status"] == ["active", "inactive"]
    assert entry["changes"]["window_seconds"] == [3600, 7200]
    assert set(entry["changes"]) == set(changes)


async def test_update_with_the_returned_rule_changes_nothing(harness: Harness) -> None:
    for name, rule in (await get_rules_by_name(harness)).items():
        response = await put_rule(harness, name, rule)
        assert (response.status_code, response.json()) == (200, rule)
        other = await put_rule(harness, name, {"id": "rul_0", "type": "PIN_FAILURES"})
        assert other.json() == rule
        assert await harness.list_audit_entries(rule["id"], "compliance_rule.updated") == []


async def test_count_threshold_may_be_a_string_or_a_number(harness: Harness) -> None:
    assert (await update_rule(harness, "Large amount", threshold="0"))["threshold"] == "0.00"
    assert (await update_rule(harness, "Daily velocity", threshold="7"))["threshold"] == 7
    assert (await update_rule(harness, "Daily velocity", threshold=0))["threshold"] == 0


async def test_invalid_field_is_named_in_the_error(harness: Harness) -> None:
    amount, count = "Large amount", "Daily velocity"
    bodies: list[tuple[str, dict[str, Any], int, str]] = [
        (amount, {"threshold": 500}, 400, "threshold"),
        (amount, {"threshold": True}, 400, "threshold"),
        (amount, {"threshold": [1]}, 400, "threshold"),
        (amount, {"threshold": "-1"}, 422, "threshold"),
        (amount, {"threshold": "1.001"}, 422, "threshold"),
        (amount, {"threshold": "1e3"}, 422, "threshold"),
        (amount, {"threshold": "9" * 4000}, 422, "threshold"),
        (amount, {"window_seconds": 60}, 422, "window_seconds"),
        (count, {"threshold": -1}, 422, "threshold"),
        (count, {"threshold": 1.5}, 400, "threshold"),
        (count, {"threshold": "1.5"}, 422, "threshold"),
        (count, {"threshold": "٣"}, 422, "threshold"),
        (count, {"threshold": "9" * 4000}, 422, "threshold"),
        (count, {"threshold": 1_000_001}, 422, "threshold"),
        (count, {"window_seconds": 0}, 422, "window_seconds"),
        (count, {"window_seconds": 366 * 86400 + 1}, 422, "window_seconds"),
        (count, {"window_seconds": "60"}, 400, "window_seconds"),
        (count, {"transaction_types": []}, 422, "transaction_types"),
        (count, {"transaction_types": ["gift"]}, 422, "transaction_types[0]"),
        (count, {"transaction_types": "transfer"}, 400, "transaction_types"),
        (count, {"action": "ignore"}, 422, "action"),
        (count, {"severity": "high"}, 422, "severity"),
        (count, {"status": "deleted"}, 422, "status"),
        (count, {"name": ""}, 422, "name"),
    ]
    before = await get_rules_by_name(harness)
    for name, body, status, field in bodies:
        response = await put_rule(harness, name, body)
        assert response.status_code == status, (body, response.text)
        assert list(response.json()["details"]["fields"]) == [field]
    assert await get_rules_by_name(harness) == before


async def test_unsupported_currency_is_rejected(harness: Harness) -> None:
    response = await put_rule(harness, "Large amount", {"currency": "EUR", "threshold": "7"})
    assert (response.status_code, response.json()["code"]) == (422, "CURRENCY_NOT_SUPPORTED")


async def test_updating_an_unknown_rule_is_404(harness: Harness) -> None:
    for rule_id in ("1", "rul_", "rul_0000000000001", "sub_0000000000001"):
        response = await harness.put(
            f"{RULES_URL}/{rule_id}", json={}, auth=await harness.create_admin()
        )
        assert (response.status_code, response.json()["code"]) == (404, "RULE_NOT_FOUND")


async def test_changed_rule_applies_immediately_in_every_process(
    harness: Harness, settings: Settings, database_url: str
) -> None:
    async with open_services(settings, database_url) as second:
        sender = await harness.create_subscriber(balance="1000")
        receiver = await harness.create_subscriber()
        second_gateway = Harness(second, harness.client)
        for gateway in (harness, second_gateway):  # makes both processes cache the old rule
            assert (await submit_transfer(gateway, sender["id"], receiver["id"], "50")).code is None
        await update_rule(harness, "Large amount", threshold="10", action="block")
        outcomes = await asyncio.gather(
            *(
                submit_transfer(gateway, sender["id"], receiver["id"], "50")
                for gateway in (harness, second_gateway)
            )
        )
        assert [outcome.code for outcome in outcomes] == ["COMPLIANCE_REJECTED"] * 2
        await update_rule(harness, "Large amount", status="inactive")
        result = await submit_transfer(second_gateway, sender["id"], receiver["id"], "50")
        assert result.code is None
        limited = await harness.put(
            "/api/v1/account-rules/1",
            json={"max_transaction": "49"},
            auth=await harness.create_admin(),
        )
        assert limited.status_code == 200, limited.text
        for gateway in (harness, second_gateway):
            outcome = await submit_transfer(gateway, sender["id"], receiver["id"], "50")
            assert outcome.code == "TRANSACTION_LIMIT_EXCEEDED"


AMOUNT = "10"


@pytest.fixture
async def processes(
    harness: Harness, settings: Settings, database_url: str
) -> AsyncIterator[list[Harness]]:
    """Yield two simulated gateway processes on one database."""
    async with open_services(settings, database_url) as second:
        yield [harness, Harness(second, harness.client)]


async def set_limit(harness: Harness, kind: str) -> str:
    """Set a limit that allows one transfer and return the error code of further transfers."""
    if kind == "count":
        await update_rule(harness, "Daily velocity", threshold=1)
    elif kind == "cumulative":
        # The API cannot change the type of a rule.
        await harness.database.execute(
            "UPDATE compliance_rules SET type = 'CUMULATIVE_AMOUNT' WHERE name = 'Daily velocity'"
        )
        await update_rule(harness, "Daily velocity", threshold="19.99", window_seconds=3600)
    else:
        response = await harness.put(
            "/api/v1/account-rules/1", json={kind: "19.99"}, auth=await harness.create_admin()
        )
        assert response.status_code == 200, response.text
        return kind.upper() + "_EXCEEDED"
    return "COMPLIANCE_REJECTED"


@pytest.mark.parametrize("kind", ["count", "cumulative", "daily_limit"])
@pytest.mark.parametrize("count", [2, 20])
@pytest.mark.parametrize("gateways", [1, 2])
async def test_limit_for_one_transfer_declines_all_other_concurrent_transfers(
    harness: Harness, processes: list[Harness], kind: str, count: int, gateways: int
) -> None:
    code = await set_limit(harness, kind)
    sender = await harness.create_subscriber(balance="1000")
    receiver = await harness.create_subscriber()
    outcomes = await asyncio.gather(
        *(
            submit_transfer(processes[index % gateways], sender["id"], receiver["id"], AMOUNT)
            for index in range(count)
        )
    )
    assert Counter(outcome.code for outcome in outcomes) == {None: 1, code: count - 1}
    assert await get_funds(harness, receiver["id"]) == (10_00, 0)
    async with harness.database.connection() as connection:
        assert (await verify(connection)).is_valid


async def test_wrong_pins_above_the_threshold_raise_an_alert_and_block_transfers(
    harness: Harness,
) -> None:
    rule = await update_rule(harness, "Wrong PINs", status="active", threshold=1, action="block")
    subscriber = await harness.create_subscriber(balance="100")
    receiver = await harness.create_subscriber()
    url = f"/api/v1/subscribers/{subscriber['id']}"
    await harness.post(
        f"{url}/verify-pin", json={"pin": WRONG_PIN}, auth=harness.get_service_auth()
    )
    assert (await submit_transfer(harness, subscriber["id"], receiver["id"], "1")).code is None
    assert await list_alerts(harness) == []
    change = {"old_pin": WRONG_PIN, "new_pin": "8164"}
    await harness.post(f"{url}/change-pin", json=change, auth=harness.get_service_auth())
    (alert,) = await list_alerts(harness)
    assert (alert["alert_type"], alert["rule_id"]) == ("PIN_FAILURES", rule["id"])
    assert (alert["subscriber_id"], alert["transaction_id"]) == (subscriber["id"], None)
    await harness.post(f"{url}/verify-pin", json={"pin": PIN}, auth=harness.get_service_auth())
    outcome = await submit_transfer(harness, subscriber["id"], receiver["id"], "1")
    assert outcome.code == "COMPLIANCE_REJECTED"
    (alert,) = await list_alerts(harness)
    assert alert["occurrences"] == 2
    assert alert["transaction_id"] is not None


async def test_concurrent_wrong_pins_are_counted_until_the_pin_is_locked(harness: Harness) -> None:
    await update_rule(harness, "Wrong PINs", status="active", threshold=0)
    subscriber = await harness.create_subscriber()
    url = f"/api/v1/subscribers/{subscriber['id']}/verify-pin"
    responses = await asyncio.gather(
        *(
            harness.post(url, json={"pin": WRONG_PIN}, auth=harness.get_service_auth())
            for _ in range(10)
        )
    )
    assert sorted(response.status_code for response in responses) == [400] * 3 + [403] * 7
    (alert,) = await list_alerts(harness)
    assert (alert["occurrences"], alert["details"]["figure"]) == (3, 3)
