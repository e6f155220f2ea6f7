"""Compliance checks: assess a transaction without executing it."""

from typing import Any

import pytest

from builders.payments import decode_id, list_alerts, submit_transfer, update_rule
from cases import each
from harness import Harness
from tapgate.business.compliance.check.model import build_result
from tapgate.http.api.services import Services
from tapgate.ledger.commands import subscriber_party
from tapgate.ledger.decisions.assess import Assessment, build_command
from tapgate.ledger.rules.compliance import ComplianceRule, RuleMatch

CHECK_URL = "/api/v1/compliance/check"


async def run_check(
    harness: Harness, subscriber_id: str, amount: str = "10", kind: str = "transfer_p2p"
) -> dict[str, Any]:
    body = {"subscriber_id": subscriber_id, "amount": amount, "transaction_type": kind}
    response = await harness.client.post(CHECK_URL, json=body, auth=harness.get_service_auth())
    assert response.status_code == 200, response.text
    body: dict[str, Any] = response.json()
    return body


def list_codes(response: dict[str, Any]) -> list[str]:
    return [violation["code"] for violation in response["violations"]]


async def test_transaction_without_violations_is_allowed_with_score_zero(harness: Harness) -> None:
    subscriber = await harness.create_subscriber()
    assert await run_check(harness, subscriber["id"]) == {
        "allowed": True,
        "risk_level": "LOW",
        "score": 0,
        "violations": [],
    }


async def test_every_violation_is_listed(harness: Harness) -> None:
    subscriber = await harness.create_subscriber()
    await update_rule(harness, "Large amount", action="block", threshold="100", severity="CRITICAL")
    response = await run_check(harness, subscriber["id"], "1000000.01")
    assert response == {
        "allowed": False,
        "risk_level": "CRITICAL",
        "score": 100,
        "violations": [
            {
                "code": "TRANSACTION_LIMIT_EXCEEDED",
                "message": "Per-transaction limit exceeded",
            },
            {"code": "DAILY_LIMIT_EXCEEDED", "message": "Daily limit exceeded"},
            {"code": "MONTHLY_LIMIT_EXCEEDED", "message": "Monthly limit exceeded"},
            {"code": "COMPLIANCE_REJECTED", "message": "Declined by a compliance rule"},
        ],
    }


async def test_check_counts_the_earlier_transactions_of_the_sender(harness: Harness) -> None:
    sender, receiver = (
        await harness.create_subscriber(balance="200"),
        await harness.create_subscriber(),
    )
    await harness.client.put(
        "/api/v1/account-rules/1", json={"daily_limit": "100"}, auth=await harness.create_admin()
    )
    await update_rule(harness, "Daily velocity", threshold=1)
    assert (await submit_transfer(harness, sender["id"], receiver["id"], "60")).code is None
    assert list_codes(await run_check(harness, sender["id"], "40.01")) == [
        "DAILY_LIMIT_EXCEEDED",
        "COMPLIANCE_REJECTED",
    ]
    assert list_codes(await run_check(harness, sender["id"], "40", "agent_cashout")) == []
    assert list_codes(await run_check(harness, receiver["id"], "40")) == []


async def test_matching_review_and_alert_rules_are_listed_but_do_not_prevent_the_transaction(
    harness: Harness,
) -> None:
    subscriber = await harness.create_subscriber()
    await update_rule(harness, "Large amount", threshold="5")
    response = await run_check(harness, subscriber["id"])
    assert (response["allowed"], response["risk_level"], response["score"]) == (True, "HIGH", 60)
    assert list_codes(response) == ["AMOUNT_THRESHOLD"]
    expected = "The transaction would be held for review."
    assert response["violations"][0]["message"].endswith(expected)
    await update_rule(harness, "Large amount", action="alert", severity="LOW")
    response = await run_check(harness, subscriber["id"])
    assert (response["allowed"], response["risk_level"], response["score"]) == (True, "LOW", 10)


async def test_blocked_subscriber_may_neither_send_nor_receive(harness: Harness) -> None:
    subscriber = await harness.create_subscriber()
    url = f"/api/v1/subscribers/{subscriber['id']}/block"
    await harness.client.post(url, json={"reason": "fraud"}, auth=await harness.create_admin())
    for kind in ("transfer_p2p", "partner_fund"):
        response = await run_check(harness, subscriber["id"], kind=kind)
        assert (response["allowed"], response["risk_level"]) == (False, "HIGH")
        assert list_codes(response) == ["SUBSCRIBER_BLOCKED"]


@pytest.mark.parametrize("kind", ["agent_cashin", "partner_fund", "processor_transfer"])
async def test_incoming_transaction_is_checked_against_the_maximum_balance(
    harness: Harness, kind: str
) -> None:
    subscriber = await harness.create_subscriber(balance="1")
    await update_rule(harness, "Large cash-in or top-up", status="inactive")
    assert list_codes(await run_check(harness, subscriber["id"], "499999", kind)) == []
    codes = list_codes(await run_check(harness, subscriber["id"], "499999.01", kind))
    assert codes == ["MAX_BALANCE_EXCEEDED"]


@pytest.mark.parametrize("kind", ["agent_cashin", "partner_fund"])
async def test_payee_rules_are_checked(harness: Harness, kind: str) -> None:
    subscriber = await harness.create_subscriber()
    assert list_codes(await run_check(harness, subscriber["id"], "200000", kind)) == []
    codes = list_codes(await run_check(harness, subscriber["id"], "200000.01", kind))
    assert codes == ["AMOUNT_THRESHOLD"]
    await update_rule(harness, "Large cash-in or top-up", action="block")
    response = await run_check(harness, subscriber["id"], "200000.01", kind)
    assert list_codes(response) == ["COMPLIANCE_REJECTED"]


async def test_check_has_no_side_effects(harness: Harness, services: Services) -> None:
    await update_rule(harness, "Large amount", threshold="1")
    await update_rule(harness, "Hourly velocity", threshold=0)
    await update_rule(harness, "Wrong PINs", threshold=0, status="active")
    subscriber = await harness.create_subscriber(balance="100")
    before = await snapshot_tables(services)
    for _ in range(3):
        assert list_codes(await run_check(harness, subscriber["id"])) != []
    assert await snapshot_tables(services) == before
    assert await list_alerts(harness) == []


async def snapshot_tables(services: Services) -> list[Any]:
    return [
        await services.database.fetch(f"SELECT * FROM {table} ORDER BY 1")
        for table in ("accounts", "transactions", "entries", "alerts", "events", "pins")
    ]


async def test_invalid_field_is_named_in_the_error(harness: Harness) -> None:
    subscriber = await harness.create_subscriber()
    valid_body = {"subscriber_id": subscriber["id"], "amount": "1", "transaction_type": "transfer"}
    bodies: list[tuple[dict[str, Any], int, str]] = [
        ({"amount": 1}, 400, "amount"),
        ({"amount": None}, 400, "amount"),
        ({"amount": "0"}, 422, "amount"),
        ({"transaction_type": "gift"}, 422, "transaction_type"),
        ({"transaction_type": "agent_fund"}, 422, "transaction_type"),
        ({"transaction_type": None}, 400, "transaction_type"),
    ]
    for change, status, field in bodies:
        response = await harness.client.post(
            CHECK_URL, json=valid_body | change, auth=harness.get_service_auth()
        )
        assert response.status_code == status, response.text
        assert list(response.json()["details"]["fields"]) == [field]


async def test_unknown_subscriber_is_not_found(harness: Harness) -> None:
    for unknown in ("sub_0000000000001", "nonsense"):
        body = {"subscriber_id": unknown, "amount": "1", "transaction_type": "transfer"}
        response = await harness.client.post(
            CHECK_URL, json=body, auth=await harness.create_admin("C")
        )
        assert (response.status_code, response.json()["code"]) == (404, "SUBSCRIBER_NOT_FOUND")


@each(
    "severities, expected",
    [
        (["LOW"], ("LOW", 10)),
        (["LOW"] * 20, ("LOW", 29)),
        (["MEDIUM", "LOW"], ("MEDIUM", 35)),
        (["HIGH", "MEDIUM", "MEDIUM"], ("HIGH", 70)),
        (["CRITICAL"] * 9, ("CRITICAL", 100)),
    ],
)
def test_risk_level_and_score_follow_from_the_severities(
    severities: list[str], expected: tuple[str, int]
) -> None:
    matches = [
        RuleMatch(build_rule(severity), 1, None, needs_review=False, details={})
        for severity in severities
    ]
    result = build_result(Assessment(fee=0, fee_payer="sender", matches=tuple(matches)))
    assert (result.risk_level, result.score) == expected


def build_rule(severity: str) -> ComplianceRule:
    return ComplianceRule(
        id=1,
        type="AMOUNT_THRESHOLD",
        transaction_types=[],
        threshold=0,
        window_seconds=None,
        action="alert",
        severity=severity,
    )


async def test_assessment_reports_fee_and_insufficient_funds(
    harness: Harness, services: Services
) -> None:
    """Quotes are built from assessments."""
    subscriber = await harness.create_subscriber(balance="100")

    async def assess(amount: int, subscriber_id: int | None, kind: str = "transfer_p2p") -> Any:
        subscriber = None if subscriber_id is None else subscriber_party(subscriber_id)
        return await services.ledger.assess(
            services.database, build_command(kind, amount, subscriber)
        )

    sender_id = decode_id(subscriber["id"])
    funded = await assess(98_52, sender_id)
    assert (funded.fee, funded.fee_payer, funded.rejections) == (1_48, "sender", ())
    (underfunded,) = (await assess(98_53, sender_id)).rejections
    assert underfunded.code == "INSUFFICIENT_FUNDS"
    assert underfunded.details == {"available": 100.0, "required": 100.01}
    assert (await assess(100, None)).fee == 2
    payment = await assess(100_00, None, "pos_payment")
    assert (payment.fee, payment.fee_payer) == (1_00, "receiver")
    found = [rejection.code for rejection in (await assess(1, 1)).rejections]
    assert found == ["SUBSCRIBER_NOT_FOUND"]
    assert (await assess(1, None, "refund")).fee == 0
