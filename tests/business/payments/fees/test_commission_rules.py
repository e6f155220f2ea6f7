"""Commission rules: read, replace and apply."""

import asyncio
from typing import Any

import httpx2

from builders.participants import cash_in, cash_out, create_agent
from cases import each
from harness import Harness
from tapgate.core.settings import Settings
from tapgate.server.gateway_services import open_services

URL = "/api/v1/commission-rules"

DEFAULT_RULES = [
    {"type": kind, "tier": tier, "rate": rate, "minimum_amount": "10.00"}
    for kind, rates in (("agent_cashin", ("1", "1.5", "2")), ("agent_cashout", ("0", "0", "0")))
    for tier, rate in enumerate(rates, start=1)
]


def build_rule(
    kind: str = "agent_cashin", tier: Any = 1, rate: Any = "2", minimum: Any = "5.00"
) -> dict[str, Any]:
    return {"type": kind, "tier": tier, "rate": rate, "minimum_amount": minimum}


async def put_rules(harness: Harness, *rules: dict[str, Any]) -> httpx2.Response:
    return await harness.put(URL, json={"data": rules}, auth=await harness.create_admin())


async def get_rules(harness: Harness) -> Any:
    response = await harness.get(URL, auth=await harness.create_admin("F"))
    assert response.status_code == 200
    return response.json()


async def test_defaults_can_be_sent_back_unchanged(harness: Harness) -> None:
    assert await get_rules(harness) == {"data": DEFAULT_RULES}
    response = await put_rules(harness, *DEFAULT_RULES)
    assert (response.status_code, response.json()) == (200, {"data": DEFAULT_RULES})
    assert await harness.list_audit_entries("commission_rules", "commission_rules.replaced") == []


async def test_all_rules_are_replaced_and_audited(harness: Harness) -> None:
    response = await put_rules(harness, build_rule("agent_cashout", 3, "0.250", "0"), build_rule())
    stored = [build_rule(), build_rule("agent_cashout", 3, "0.25", "0.00")]
    assert (response.status_code, response.json()) == (200, {"data": stored})
    assert await get_rules(harness) == {"data": stored}
    (entry,) = await harness.list_audit_entries("commission_rules", "commission_rules.replaced")
    assert entry["changes"] == {"data": [DEFAULT_RULES, stored]}


INVALID_RULES: list[tuple[list[dict[str, Any]], int, str]] = [
    ([build_rule("agent_fund")], 422, "data[0].type"),
    ([build_rule(tier=0)], 422, "data[0].tier"),
    ([build_rule(tier=4)], 422, "data[0].tier"),
    ([build_rule(tier="1")], 400, "data[0].tier"),
    ([build_rule(rate="100.001")], 422, "data[0].rate"),
    ([build_rule(rate="-1")], 422, "data[0].rate"),
    ([build_rule(rate=1)], 400, "data[0].rate"),
    ([build_rule(minimum="1.001")], 422, "data[0].minimum_amount"),
    ([build_rule(minimum="-1")], 422, "data[0].minimum_amount"),
    ([build_rule(minimum="9" * 30)], 422, "data[0].minimum_amount"),
    ([build_rule(), build_rule("agent_cashout"), build_rule()], 422, "data[2].tier"),
    ([build_rule()] * 7, 422, "data"),
    ([{"type": "agent_cashin", "tier": 1, "rate": "1"}], 400, "data[0].minimum_amount"),
]


@each("rules, status, field", INVALID_RULES)
async def test_invalid_rule_is_rejected_with_its_field(
    harness: Harness, rules: list[dict[str, Any]], status: int, field: str
) -> None:
    response = await put_rules(harness, *rules)
    assert response.status_code == status, response.text
    assert list(response.json()["details"]["fields"]) == [field]
    assert await get_rules(harness) == {"data": DEFAULT_RULES}


async def test_receipts_show_the_commission_by_type_tier_and_minimum(harness: Harness) -> None:
    await put_rules(
        harness, build_rule(tier=2, rate="3"), build_rule("agent_cashout", 2, "0.5", "50")
    )
    agent = await create_agent(harness, balance="2000", commission_tier=2)
    agent_without_rule = await create_agent(harness, balance="2000")
    customer = await harness.create_subscriber()

    async def get_commission(request: Any) -> str:
        response = await request
        assert response.status_code == 200, response.text
        return str(response.json()["commission_earned"])

    assert await get_commission(cash_in(harness, agent, customer, "1000")) == "30.00 SLE"
    assert await get_commission(cash_in(harness, agent, customer, "4.99")) == "0.00 SLE"
    commission = await get_commission(cash_in(harness, agent_without_rule, customer, "1000"))
    assert commission == "0.00 SLE"
    assert await get_commission(cash_out(harness, agent, customer, "400")) == "2.00 SLE"
    assert await get_commission(cash_out(harness, agent, customer, "49.99")) == "0.00 SLE"
    # 449.99 was cashed out before, so only 550.01 earns commission.
    assert await get_commission(cash_in(harness, agent, customer, "1000")) == "16.50 SLE"


async def test_every_process_applies_the_new_rules(
    harness: Harness, settings: Settings, database_url: str
) -> None:
    async with open_services(settings, database_url) as second:
        other_harness = Harness(second, harness.client)
        agent = await create_agent(harness, balance="2000")
        customer = await harness.create_subscriber()
        for process_harness in (harness, other_harness):
            assert (await cash_in(process_harness, agent, customer, "100")).is_success
        responses = await asyncio.gather(
            *(put_rules(harness, build_rule(rate=str(rate))) for rate in (3, 3, 3))
        )
        assert {response.status_code for response in responses} == {200}
        rules = await second.ledger.get_rules(second.database)  # type: ignore[arg-type]
        assert [rule.rate for rule in rules.commissions.values()] == [3_000]
