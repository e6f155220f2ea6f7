"""Compliance checks: assess a transaction without executing it."""

from typing import Any

import pytest

from compliance.builders import decode_id, list_alerts, submit_transfer, update_rule
from harness import Harness
from tapgate.compliance.check.model import build_result
from tapgate.edge.services import Services
from tapgate.ledger.assess import Assessment
from tapgate.ledger.rules import ComplianceRule
from tapgate.ledger.state import RuleMatch

CHECK_URL = "/api/v1/compliance/check"


async def run_check(
    world: Harness, subscriber_id: str, amount: str = "10", kind: str = "transfer_p2p"
) -> dict[str, Any]:
    body = {"subscriber_id": subscriber_id, "amount": amount, "transaction_type": kind}
    answer = await world.client.post(CHECK_URL, json=body, auth=world.get_service_auth())
    assert answer.status_code == 200, answer.text
    found: dict[str, Any] = answer.json()
    return found


def list_codes(answer: dict[str, Any]) -> list[str]:
    return [violation["code"] for violation in answer["violations"]]


async def test_unobjectionable_transaction_is_allowed_with_score_zero(world: Harness) -> None:
    subscriber = await world.create_subscriber()
    assert await run_check(world, subscriber["id"]) == {
        "allowed": True,
        "risk_level": "LOW",
        "score": 0,
        "violations": [],
    }


async def test_every_violation_is_listed(world: Harness) -> None:
    subscriber = await world.create_subscriber()
    await update_rule(world, "Large amount", action="block", threshold="100", severity="CRITICAL")
    answer = await run_check(world, subscriber["id"], "1000000.01")
    assert answer == {
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


async def test_limits_and_counts_include_earlier_transactions(world: Harness) -> None:
    sender, receiver = await world.create_subscriber(balance="200"), await world.create_subscriber()
    await world.client.put(
        "/api/v1/account-rules/1", json={"daily_limit": "100"}, auth=await world.create_admin()
    )
    await update_rule(world, "Daily velocity", threshold=1)
    assert (await submit_transfer(world, sender["id"], receiver["id"], "60")).code is None
    assert list_codes(await run_check(world, sender["id"], "40.01")) == [
        "DAILY_LIMIT_EXCEEDED",
        "COMPLIANCE_REJECTED",
    ]
    assert list_codes(await run_check(world, sender["id"], "40", "agent_cashout")) == []
    assert list_codes(await run_check(world, receiver["id"], "40")) == []


async def test_review_and_alert_rules_are_listed_but_allowed(world: Harness) -> None:
    subscriber = await world.create_subscriber()
    await update_rule(world, "Large amount", threshold="5")
    answer = await run_check(world, subscriber["id"])
    assert (answer["allowed"], answer["risk_level"], answer["score"]) == (True, "HIGH", 60)
    assert list_codes(answer) == ["AMOUNT_THRESHOLD"]
    assert answer["violations"][0]["message"].endswith("The transaction would be held for review.")
    await update_rule(world, "Large amount", action="alert", severity="LOW")
    answer = await run_check(world, subscriber["id"])
    assert (answer["allowed"], answer["risk_level"], answer["score"]) == (True, "LOW", 10)


async def test_blocked_subscriber_is_not_allowed(world: Harness) -> None:
    subscriber = await world.create_subscriber()
    url = f"/api/v1/subscribers/{subscriber['id']}/block"
    await world.client.post(url, json={"reason": "fraud"}, auth=await world.create_admin())
    for kind in ("transfer_p2p", "partner_fund"):
        answer = await run_check(world, subscriber["id"], kind=kind)
        assert (answer["allowed"], answer["risk_level"]) == (False, "HIGH")
        assert list_codes(answer) == ["SUBSCRIBER_BLOCKED"]


@pytest.mark.parametrize("kind", ["agent_cashin", "partner_fund", "processor_transfer"])
async def test_incoming_transaction_is_checked_against_the_maximum_balance(
    world: Harness, kind: str
) -> None:
    subscriber = await world.create_subscriber(balance="1")
    await update_rule(world, "Large cash-in or top-up", status="inactive")
    assert list_codes(await run_check(world, subscriber["id"], "499999", kind)) == []
    assert list_codes(await run_check(world, subscriber["id"], "499999.01", kind)) == [
        "MAX_BALANCE_EXCEEDED"
    ]


@pytest.mark.parametrize("kind", ["agent_cashin", "partner_fund"])
async def test_payee_rules_are_checked(world: Harness, kind: str) -> None:
    subscriber = await world.create_subscriber()
    assert list_codes(await run_check(world, subscriber["id"], "200000", kind)) == []
    assert list_codes(await run_check(world, subscriber["id"], "200000.01", kind)) == [
        "AMOUNT_THRESHOLD"
    ]
    await update_rule(world, "Large cash-in or top-up", action="block")
    answer = await run_check(world, subscriber["id"], "200000.01", kind)
    assert list_codes(answer) == ["COMPLIANCE_REJECTED"]


async def test_check_has_no_side_effects(world: Harness, services: Services) -> None:
    await update_rule(world, "Large amount", threshold="1")
    await update_rule(world, "Hourly velocity", threshold=0)
    await update_rule(world, "Wrong PINs", threshold=0, status="active")
    subscriber = await world.create_subscriber(balance="100")
    before = await snapshot_tables(services)
    for _ in range(3):
        assert list_codes(await run_check(world, subscriber["id"])) != []
    assert await snapshot_tables(services) == before
    assert await list_alerts(world) == []


async def snapshot_tables(services: Services) -> list[Any]:
    return [
        await services.database.fetch(f"SELECT * FROM {table} ORDER BY 1")
        for table in ("accounts", "transactions", "entries", "alerts", "events", "pins")
    ]


async def test_invalid_field_is_named(world: Harness) -> None:
    subscriber = await world.create_subscriber()
    good = {"subscriber_id": subscriber["id"], "amount": "1", "transaction_type": "transfer"}
    bodies: list[tuple[dict[str, Any], int, str]] = [
        ({"amount": 1}, 400, "amount"),
        ({"amount": None}, 400, "amount"),
        ({"amount": "0"}, 422, "amount"),
        ({"transaction_type": "gift"}, 422, "transaction_type"),
        ({"transaction_type": "agent_fund"}, 422, "transaction_type"),
        ({"transaction_type": None}, 400, "transaction_type"),
    ]
    for change, status, field in bodies:
        answer = await world.client.post(
            CHECK_URL, json=good | change, auth=world.get_service_auth()
        )
        assert answer.status_code == status, answer.text
        assert list(answer.json()["details"]["fields"]) == [field]


async def test_unknown_subscriber_is_not_found(world: Harness) -> None:
    for unknown in ("sub_0000000000001", "nonsense"):
        body = {"subscriber_id": unknown, "amount": "1", "transaction_type": "transfer"}
        answer = await world.client.post(CHECK_URL, json=body, auth=await world.create_admin("C"))
        assert (answer.status_code, answer.json()["code"]) == (404, "SUBSCRIBER_NOT_FOUND")


async def test_restricted_subscriber_is_forbidden_to_admins_but_not_to_services(
    world: Harness,
) -> None:
    restricted = await world.create_restricted_subscriber()
    body = {"subscriber_id": restricted["id"], "amount": "1", "transaction_type": "transfer"}
    answer = await world.client.post(CHECK_URL, json=body, auth=await world.create_admin("C"))
    assert (answer.status_code, answer.json()["code"]) == (403, "OTP_REQUIRED")
    assert (await run_check(world, restricted["id"]))["allowed"] is True


@pytest.mark.parametrize(
    ("severities", "expected"),
    [
        (["LOW"], ("LOW", 10)),
        (["LOW"] * 20, ("LOW", 29)),
        (["MEDIUM", "LOW"], ("MEDIUM", 35)),
        (["HIGH", "MEDIUM", "MEDIUM"], ("HIGH", 70)),
        (["CRITICAL"] * 9, ("CRITICAL", 100)),
    ],
)
def test_risk_level_follows_the_most_severe_violation(
    severities: list[str], expected: tuple[str, int]
) -> None:
    matches = [
        RuleMatch(build_rule(severity), 1, None, needs_review=False, details={})
        for severity in severities
    ]
    found = build_result(Assessment(fee=0, fee_payer="sender", matches=tuple(matches)))
    assert (found.risk_level, found.score) == expected


def build_rule(severity: str) -> ComplianceRule:
    return ComplianceRule(
        id=1,
        type="AMOUNT_THRESHOLD",
        transaction_types=frozenset(),
        threshold=0,
        window_seconds=None,
        action="alert",
        severity=severity,
    )


async def test_assessment_reports_fee_and_insufficient_funds(
    world: Harness, services: Services
) -> None:
    """Quotes are built from this assessment."""
    subscriber = await world.create_subscriber(balance="100")

    async def assess(amount: int, subscriber_id: int | None, kind: str = "transfer_p2p") -> Any:
        return await services.ledger.assess(
            services.database, transaction_type=kind, amount=amount, subscriber_id=subscriber_id
        )

    known = decode_id(subscriber["id"])
    enough = await assess(98_52, known)
    assert (enough.fee, enough.fee_payer, enough.insufficient_funds) == (1_48, "sender", None)
    short = await assess(98_53, known)
    assert short.rejections == ()
    assert short.insufficient_funds.code == "INSUFFICIENT_FUNDS"
    assert short.insufficient_funds.details == {"available": 100.0, "required": 100.01}
    assert (await assess(100, None)).fee == 2
    payment = await assess(100_00, None, "pos_payment")
    assert (payment.fee, payment.fee_payer) == (1_00, "receiver")
    assert [no.code for no in (await assess(1, 1)).rejections] == ["SUBSCRIBER_NOT_FOUND"]
    assert (await assess(1, None, "refund")).fee == 0
