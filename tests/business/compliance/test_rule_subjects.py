"""Creating and deleting rules, and rules about payees and agents."""

import asyncio
from typing import Any

import httpx2
import pytest

from builders.participants import (
    FUND_URL,
    cash_in,
    cash_out,
    create_agent,
    create_partner,
    get_balances,
    get_partner_balance,
)
from builders.payments import (
    RULES_URL,
    decode_id,
    get_funds,
    get_rules_by_name,
    get_transaction_status,
    list_alerts,
    resolve_alert,
    submit_transfer,
    update_rule,
)
from cases import each
from harness import Harness, parse_error
from tapgate.business.compliance.rules.model import MAX_RULES
from tapgate.ledger import chart, commands
from tapgate.ledger.alerts import raise_alerts
from tapgate.ledger.commands import Command
from tapgate.ledger.rules.compliance import (
    ComplianceRule,
    RuleMatch,
    remove_personal_details,
)
from tapgate.ledger.verification.verify import verify
from tapgate_client import ids

NEW_RULE: dict[str, Any] = {
    "name": "Large cash-in",
    "type": "AMOUNT_THRESHOLD",
    "subject": "payee",
    "transaction_types": ["agent_cashin"],
    "threshold": "100.00",
    "action": "alert",
}


async def post_rule(harness: Harness, **fields: Any) -> httpx2.Response:
    body = {name: value for name, value in (NEW_RULE | fields).items() if value is not None}
    return await harness.post(RULES_URL, json=body, auth=await harness.create_admin("C"))


async def create_rule(harness: Harness, **fields: Any) -> dict[str, Any]:
    response = await post_rule(harness, **fields)
    assert response.status_code == 201, response.text
    record: dict[str, Any] = response.json()
    return record


async def delete_rule(harness: Harness, rule_id: str) -> httpx2.Response:
    return await harness.delete(f"{RULES_URL}/{rule_id}", auth=await harness.create_admin("C"))


async def require_balanced_books(harness: Harness) -> None:
    async with harness.database.connection() as connection:
        proof = await verify(connection)
    assert proof.is_valid, [finding for finding in proof.findings if finding.broken]


async def test_rule_is_created_with_defaults_and_audited(harness: Harness) -> None:
    rule = await create_rule(harness, subject=None, transaction_types=["transfer", "transfer"])
    expected = NEW_RULE | {
        "subject": "payer",
        "transaction_types": ["transfer"],
        "currency": "SLE",
        "window_seconds": None,
        "severity": "MEDIUM",
        "status": "active",
    }
    assert rule == {"id": rule["id"], **expected}
    assert (await get_rules_by_name(harness))["Large cash-in"] == rule
    (entry,) = await harness.list_audit_entries(rule["id"], "compliance_rule.created")
    assert entry["changes"]["threshold"] == [None, "100.00"]
    # The response is a valid request body.
    assert (await post_rule(harness, **rule)).status_code == 201


CASH_TYPES = ["agent_cashin", "agent_cashout"]
INVALID_RULES: list[tuple[dict[str, Any], int, str]] = [
    ({"name": None}, 400, "name"),
    ({"type": "AMOUNT"}, 422, "type"),
    ({"subject": "merchant"}, 422, "subject"),
    ({"threshold": 5}, 400, "threshold"),
    ({"window_seconds": 60}, 422, "window_seconds"),
    ({"type": "TRANSACTION_COUNT", "threshold": 5}, 422, "window_seconds"),
    ({"type": "TRANSACTION_COUNT", "threshold": "0.5", "window_seconds": 9}, 422, "threshold"),
    ({"subject": "payer"}, 422, "transaction_types"),
    ({"transaction_types": CASH_TYPES}, 422, "transaction_types"),
    ({"transaction_types": ["partner_deposit"]}, 422, "transaction_types"),
    ({"subject": "agent", "transaction_types": ["pos_payment"]}, 422, "transaction_types"),
    ({"transaction_types": ["refund"], "action": "review"}, 422, "transaction_types"),
    ({"type": "PIN_FAILURES", "threshold": 5, "window_seconds": 60}, 422, "subject"),
]


@each("fields, status, field", INVALID_RULES)
async def test_invalid_rule_is_rejected_and_the_error_names_the_field(
    harness: Harness, fields: dict[str, Any], status: int, field: str
) -> None:
    before = await get_rules_by_name(harness)
    response = await post_rule(harness, **fields)
    assert response.status_code == status, response.text
    assert list(response.json()["details"]["fields"]) == [field]
    assert await get_rules_by_name(harness) == before


async def test_rule_in_an_unsupported_currency_is_rejected(harness: Harness) -> None:
    assert parse_error(await post_rule(harness, currency="EUR")) == (422, "CURRENCY_NOT_SUPPORTED")


async def test_update_must_keep_subject_transaction_types_and_action_compatible(
    harness: Harness,
) -> None:
    rule = await create_rule(harness)
    url, admin = f"{RULES_URL}/{rule['id']}", await harness.create_admin()
    for change, field in (
        ({"subject": "payer"}, "subject"),
        ({"transaction_types": ["agent_cashout"]}, "transaction_types"),
        ({"transaction_types": ["refund"], "action": "review"}, "transaction_types"),
    ):
        response = await harness.put(url, json=change, auth=admin)
        assert list(response.json()["details"]["fields"]) == [field]
    change = {"subject": "agent", "transaction_types": CASH_TYPES}
    response = await harness.put(url, json=change, auth=admin)
    assert (response.status_code, response.json()) == (200, rule | change)
    refunds = {"subject": "payee", "transaction_types": ["refund"]}
    assert (await harness.put(url, json=refunds, auth=admin)).status_code == 200
    response = await harness.put(url, json={"action": "review"}, auth=admin)
    assert list(response.json()["details"]["fields"]) == ["action"]


async def test_stored_rule_that_holds_refunds_can_be_renamed_and_deactivated(
    harness: Harness,
) -> None:
    rule = await create_rule(harness, subject="payer", transaction_types=["pos_payment"])
    await harness.database.execute(
        """UPDATE compliance_rules SET action = 'review',
                  transaction_types = '{pos_payment,refund}' WHERE id = $1""",
        ids.decode(ids.RULE, rule["id"]),
    )
    url, admin = f"{RULES_URL}/{rule['id']}", await harness.create_admin()
    change = {"name": "Large payment", "threshold": "200.00", "status": "inactive"}
    response = await harness.put(url, json=change, auth=admin)
    assert response.status_code == 200, response.text
    assert response.json()["status"] == "inactive"
    for change, field in (
        ({"action": "review"}, "action"),
        ({"transaction_types": ["refund"]}, "transaction_types"),
    ):
        response = await harness.put(url, json=change, auth=admin)
        assert list(response.json()["details"]["fields"]) == [field]


async def test_number_of_rules_is_limited(harness: Harness) -> None:
    missing = MAX_RULES - len(await get_rules_by_name(harness))
    responses = await asyncio.gather(*(post_rule(harness) for _ in range(missing + 3)))
    codes = sorted(response.status_code for response in responses)
    assert codes == [201] * missing + [422] * 3


async def test_deleted_rule_no_longer_matches_and_its_alerts_are_kept(harness: Harness) -> None:
    sender = await harness.create_subscriber(balance="100")
    receiver = await harness.create_subscriber()
    rule = await create_rule(harness, transaction_types=["transfer"], threshold="10")
    await submit_transfer(harness, sender["id"], receiver["id"], "20")
    (alert,) = await list_alerts(harness)
    assert (alert["subscriber_id"], alert["rule_id"]) == (receiver["id"], rule["id"])
    assert (await delete_rule(harness, rule["id"])).status_code == 204
    assert parse_error(await delete_rule(harness, rule["id"])) == (404, "RULE_NOT_FOUND")
    response = await harness.get(f"{RULES_URL}/{rule['id']}", auth=await harness.create_admin())
    assert parse_error(response) == (404, "RULE_NOT_FOUND")
    await submit_transfer(harness, sender["id"], receiver["id"], "20")
    assert await list_alerts(harness) == [alert]
    assert (await resolve_alert(harness, alert["id"])).status_code == 200
    (entry,) = await harness.list_audit_entries(rule["id"], "compliance_rule.deleted")
    assert entry["changes"]["name"] == ["Large cash-in", None]


async def test_transaction_held_by_a_deleted_rule_can_be_released(harness: Harness) -> None:
    sender = await harness.create_subscriber(balance="100")
    receiver = await harness.create_subscriber()
    rule = await create_rule(
        harness, transaction_types=["transfer"], threshold="10", action="review"
    )
    await submit_transfer(harness, sender["id"], receiver["id"], "20")
    await delete_rule(harness, rule["id"])
    (alert,) = await list_alerts(harness)
    response = await resolve_alert(harness, alert["id"], transaction_decision="release")
    assert response.status_code == 200
    assert await get_funds(harness, receiver["id"]) == (20_00, 0)
    await require_balanced_books(harness)


async def test_default_rule_raises_an_alert_for_a_cash_in_above_its_threshold(
    harness: Harness,
) -> None:
    agent = await create_agent(harness, balance="900000")
    customer = await harness.create_subscriber()
    assert (await cash_in(harness, agent, customer, "200000")).is_success
    assert await list_alerts(harness) == []
    assert (await cash_in(harness, agent, customer, "200000.01")).is_success
    (alert,) = await list_alerts(harness)
    assert (alert["alert_type"], alert["subscriber_id"]) == ("AMOUNT_THRESHOLD", customer["id"])
    assert alert["details"]["figure"] == "200000.01"


async def test_agent_alerts_name_the_agent_and_are_merged_per_rule_and_agent(
    harness: Harness,
) -> None:
    await update_rule(harness, "Busy agent", threshold=3)
    agents = [await create_agent(harness, balance="500") for _ in range(2)]
    customers = [await harness.create_subscriber(balance="100") for _ in range(3)]
    for agent in agents:
        for customer in customers:
            assert (await cash_in(harness, agent, customer, "10")).is_success
    assert await list_alerts(harness) == []
    for customer in customers:
        assert (await cash_out(harness, agents[0], customer, "10")).is_success
    (alert,) = await list_alerts(harness)
    assert (alert["subscriber_id"], alert["occurrences"]) == (None, 3)
    assert alert["details"] == {
        "rule_type": "TRANSACTION_COUNT",
        "action": "alert",
        "transaction_type": "agent_cashout",
        "figure": 6,
        "agent_id": agents[0]["id"],
    }
    assert (await cash_in(harness, agents[1], customers[0], "10")).is_success
    found = {listed["details"]["agent_id"] for listed in await list_alerts(harness)}
    expected = {agent["id"] for agent in agents}
    assert found == expected
    # After the resolution, the next match creates a new alert.
    assert (await resolve_alert(harness, alert["id"])).status_code == 200
    assert (await cash_out(harness, agents[0], customers[0], "10")).is_success
    assert len(await list_alerts(harness)) == 3


async def test_masked_alert_keeps_a_valid_agent_id(harness: Harness) -> None:
    await update_rule(harness, "Busy agent", threshold=0)
    agent = await create_agent(harness, balance="500")
    customer = await harness.create_subscriber()
    assert (await cash_in(harness, agent, customer, "10")).is_success
    await harness.database.execute("UPDATE subscribers SET restricted = true")
    (alert,) = await list_alerts(harness)
    assert alert["masked"] is True
    assert alert["details"]["agent_id"] == agent["id"]
    for value in (customer["phone_number"], customer["id"], 5, None, [agent["id"]]):
        assert remove_personal_details({"agent_id": value}) == {}


#: INSERT of release 1.0, whose processes run alongside new ones during a rolling upgrade.
PREVIOUS_RELEASE_INSERT_SQL = """
    INSERT INTO alerts (id, subscriber_id, rule_id, alert_type, details, created_at, updated_at)
    VALUES ($1, $2, $3, 'AMOUNT_THRESHOLD', '{}', now(), now())
    ON CONFLICT (rule_id, subscriber_id) WHERE status IN ('open', 'investigating') AND NOT review
    DO UPDATE SET occurrences = alerts.occurrences + 1"""


async def test_concurrent_alerts_of_two_releases_are_merged_per_rule_and_subject(
    harness: Harness,
) -> None:
    database, new_id = harness.database, harness.services.new_id
    subscriber, agent = await harness.create_subscriber(), await create_agent(harness)
    rule_ids = {
        rule["name"]: decode_id(rule["id"]) for rule in (await get_rules_by_name(harness)).values()
    }
    payee_rule, agent_rule = rule_ids["Large cash-in or top-up"], rule_ids["Busy agent"]

    def build_match(rule_id: int, subject: str, subject_id: str) -> RuleMatch:
        rule = ComplianceRule(
            id=rule_id, type="AMOUNT_THRESHOLD", subject=subject, transaction_types=[],
            threshold=0, window_seconds=0, action="alert", severity="LOW",
        )  # fmt: skip
        return RuleMatch(rule, decode_id(subject_id), None, needs_review=False, details={})

    matches = [
        build_match(payee_rule, "payee", subscriber["id"]),
        build_match(agent_rule, "agent", agent["id"]),
    ]

    async def raise_new() -> None:
        async with database.transaction() as tx:
            await raise_alerts(tx, matches, harness.services.clock(), new_id)

    async def raise_with_previous_release() -> None:
        await database.execute(
            PREVIOUS_RELEASE_INSERT_SQL, new_id(), decode_id(subscriber["id"]), payee_rule
        )

    await asyncio.gather(
        *(raise_alert() for raise_alert in (raise_new, raise_with_previous_release) * 20)
    )
    occurrences = {alert["rule_id"]: alert["occurrences"] for alert in await list_alerts(harness)}
    assert len(await list_alerts(harness)) == 2
    assert occurrences == {
        ids.encode(ids.RULE, payee_rule): 40,
        ids.encode(ids.RULE, agent_rule): 20,
    }


async def test_concurrent_transactions_of_an_agent_do_not_exceed_a_blocking_threshold(
    harness: Harness,
) -> None:
    """The number of accepted cash-ins and cash-outs is exactly the threshold."""
    await update_rule(harness, "Busy agent", threshold=5, action="block")
    agent = await create_agent(harness, balance="500")
    customers = [await harness.create_subscriber(balance="100") for _ in range(6)]
    responses = await asyncio.gather(
        *(cash_in(harness, agent, customer, "10") for customer in customers),
        *(cash_out(harness, agent, customer, "10") for customer in customers),
    )
    assert sorted(response.status_code for response in responses) == [200] * 5 + [403] * 7
    errors = {parse_error(response) for response in responses if response.status_code == 403}
    assert errors == {(403, "COMPLIANCE_REJECTED")}
    (alert,) = await list_alerts(harness)
    assert alert["occurrences"] == 7


@each("decision", ["release", "reject"])
async def test_held_cash_in_is_released_or_rejected(harness: Harness, decision: str) -> None:
    await create_rule(harness, action="review")
    agent, customer = await create_agent(harness, balance="500"), await harness.create_subscriber()
    response = await cash_in(harness, agent, customer, "200")
    body = response.json()
    assert (body["status"], body["commission_earned"]) == ("under_review", "0.00 SLE")
    assert (body["agent_balance"], body["subscriber_balance"]) == ("300.00 SLE", "0.00 SLE")
    (alert,) = await list_alerts(harness, subscriber_id=customer["id"])
    assert parse_error(await cash_in(harness, agent, customer, "301")) == (
        402,
        "INSUFFICIENT_FLOAT",
    )
    response = await resolve_alert(harness, alert["id"], transaction_decision=decision)
    assert response.status_code == 200, response.text
    released = decision == "release"
    balances = await get_balances(harness, agent)
    assert balances == (("300.00", "2.00") if released else ("500.00", "0.00"))
    assert await get_funds(harness, customer["id"]) == (200_00 if released else 0, 0)
    transaction_status = await get_transaction_status(harness, alert["transaction_id"])
    assert transaction_status[0] == ("completed" if released else "failed")
    await require_balanced_books(harness)


@each("decision", ["release", "reject"])
async def test_held_top_up_is_released_or_rejected(harness: Harness, decision: str) -> None:
    await create_rule(harness, transaction_types=["partner_fund"], action="review")
    partner = await create_partner(harness, balance="500")
    customer = await harness.create_subscriber()
    body = {
        "partner_id": partner["partner"]["id"],
        "subscriber_id": customer["id"],
        "amount": "200",
        "partner_reference": "salary",
    }
    admin = await harness.create_admin()
    response = await harness.post(FUND_URL, json=body, auth=admin)
    assert response.json()["status"] == "under_review", response.text
    (alert,) = await list_alerts(harness, subscriber_id=customer["id"])
    response = await resolve_alert(harness, alert["id"], transaction_decision=decision)
    assert response.status_code == 200
    released = decision == "release"
    assert await get_partner_balance(harness, partner) == ("300.00" if released else "500.00")
    assert await get_funds(harness, customer["id"]) == (200_00 if released else 0, 0)
    await require_balanced_books(harness)


async def test_cash_in_above_the_threshold_of_a_blocking_payee_rule_is_declined(
    harness: Harness,
) -> None:
    await create_rule(harness, action="block")
    agent, customer = await create_agent(harness, balance="500"), await harness.create_subscriber()
    response = await cash_in(harness, agent, customer, "100.01")
    assert parse_error(response) == (403, "COMPLIANCE_REJECTED")
    assert (await cash_in(harness, agent, customer, "100")).is_success
    assert await get_balances(harness, agent) == ("400.00", "1.00")
    (alert,) = await list_alerts(harness)
    assert alert["subscriber_id"] == customer["id"]


async def test_cumulative_payee_rule_sums_received_transfers_and_cash_ins(harness: Harness) -> None:
    await create_rule(
        harness,
        type="CUMULATIVE_AMOUNT",
        transaction_types=["transfer", "agent_cashin"],
        window_seconds=3600,
        action="block",
    )
    agent, receiver = await create_agent(harness, balance="500"), await harness.create_subscriber()
    senders = [await harness.create_subscriber(balance="100") for _ in range(3)]
    outcomes = await asyncio.gather(
        *(submit_transfer(harness, sender["id"], receiver["id"], "40") for sender in senders)
    )
    codes = sorted(str(outcome.code or "") for outcome in outcomes)
    assert codes == ["", "", "COMPLIANCE_REJECTED"]
    response = await cash_in(harness, agent, receiver, "20.01")
    assert parse_error(response) == (403, "COMPLIANCE_REJECTED")
    assert (await cash_in(harness, agent, receiver, "20")).is_success


@pytest.mark.parametrize("decision", ["release", "reject"])
async def test_reviewed_transfer_from_the_platform_places_no_hold(
    harness: Harness, decision: str
) -> None:
    """The platform's accounts may become negative, so no funds need to be reserved."""
    await create_rule(harness, transaction_types=["transfer"], action="review")
    receiver = await harness.create_subscriber()
    command = Command(
        type=chart.TRANSFER,
        channel="admin",
        payer=commands.CASH_PARTY,
        payee=commands.subscriber_party(decode_id(receiver["id"])),
        amount=200_00,
    )
    outcome = await harness.services.ledger.submit(command)
    assert outcome.require_accepted().status == "under_review"
    await require_balanced_books(harness)
    (alert,) = await list_alerts(harness)
    response = await resolve_alert(harness, alert["id"], transaction_decision=decision)
    assert response.status_code == 200
    assert await get_funds(harness, receiver["id"]) == (200_00 if decision == "release" else 0, 0)
    await require_balanced_books(harness)
