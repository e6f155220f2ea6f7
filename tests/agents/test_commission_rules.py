"""Commission rules: read, replaced and applied."""

import asyncio
from typing import Any

import httpx2
import pytest

from agents.stage import cash_in, cash_out, new_agent
from tapgate.gateway import open_services
from tapgate.settings import Settings
from world import World

URL = "/api/v1/commission-rules"

DEFAULTS = [
    {"type": kind, "tier": tier, "rate": rate, "minimum_amount": "10.00"}
    for kind, rates in (("agent_cashin", ("1", "1.5", "2")), ("agent_cashout", ("0", "0", "0")))
    for tier, rate in enumerate(rates, start=1)
]


def rule(
    kind: str = "agent_cashin", tier: Any = 1, rate: Any = "2", minimum: Any = "5.00"
) -> dict[str, Any]:
    return {"type": kind, "tier": tier, "rate": rate, "minimum_amount": minimum}


async def put(world: World, *rules: dict[str, Any]) -> httpx2.Response:
    return await world.client.put(URL, json={"data": rules}, auth=await world.admin())


async def get(world: World) -> Any:
    answer = await world.client.get(URL, auth=await world.admin("F"))
    assert answer.status_code == 200
    return answer.json()


async def test_defaults_can_be_sent_back_unchanged(world: World) -> None:
    assert await get(world) == {"data": DEFAULTS}
    answer = await put(world, *DEFAULTS)
    assert (answer.status_code, answer.json()) == (200, {"data": DEFAULTS})
    assert await world.audit("commission_rules", "commission_rules.replaced") == []


async def test_all_rules_are_replaced_and_audited(world: World) -> None:
    answer = await put(world, rule("agent_cashout", 3, "0.250", "0"), rule())
    stored = [rule(), rule("agent_cashout", 3, "0.25", "0.00")]
    assert (answer.status_code, answer.json()) == (200, {"data": stored})
    assert await get(world) == {"data": stored}
    (entry,) = await world.audit("commission_rules", "commission_rules.replaced")
    assert entry["changes"] == {"data": [DEFAULTS, stored]}


BAD: list[tuple[list[dict[str, Any]], int, str]] = [
    ([rule("agent_fund")], 422, "data[0].type"),
    ([rule(tier=0)], 422, "data[0].tier"),
    ([rule(tier=4)], 422, "data[0].tier"),
    ([rule(tier="1")], 400, "data[0].tier"),
    ([rule(rate="100.001")], 422, "data[0].rate"),
    ([rule(rate="-1")], 422, "data[0].rate"),
    ([rule(rate=1)], 400, "data[0].rate"),
    ([rule(minimum="1.001")], 422, "data[0].minimum_amount"),
    ([rule(minimum="-1")], 422, "data[0].minimum_amount"),
    ([rule(minimum="9" * 30)], 422, "data[0].minimum_amount"),
    ([rule(), rule("agent_cashout"), rule()], 422, "data[2].tier"),
    ([rule()] * 7, 422, "data"),
    ([{"type": "agent_cashin", "tier": 1, "rate": "1"}], 400, "data[0].minimum_amount"),
]


@pytest.mark.parametrize(("rules", "status", "field"), BAD)
async def test_invalid_rule_is_refused_and_named(
    world: World, rules: list[dict[str, Any]], status: int, field: str
) -> None:
    answer = await put(world, *rules)
    assert answer.status_code == status, answer.text
    assert list(answer.json()["details"]["fields"]) == [field]
    assert await get(world) == {"data": DEFAULTS}


async def test_receipts_show_the_commission_by_type_tier_and_minimum(world: World) -> None:
    await put(world, rule(tier=2, rate="3"), rule("agent_cashout", 2, "0.5", "50"))
    agent = await new_agent(world, balance="2000", commission_tier=2)
    unpaid = await new_agent(world, balance="2000")
    customer = await world.subscriber()

    async def earned(order: Any) -> str:
        answer = await order
        assert answer.status_code == 200, answer.text
        return str(answer.json()["commission_earned"])

    assert await earned(cash_in(world, agent, customer, "1000")) == "30.00 SLE"
    assert await earned(cash_in(world, agent, customer, "4.99")) == "0.00 SLE"
    assert await earned(cash_in(world, unpaid, customer, "1000")) == "0.00 SLE"
    assert await earned(cash_out(world, agent, customer, "400")) == "2.00 SLE"
    assert await earned(cash_out(world, agent, customer, "49.99")) == "0.00 SLE"
    # 449.99 was cashed out; 550.01 of it is new.
    assert await earned(cash_in(world, agent, customer, "1000")) == "16.50 SLE"


async def test_every_process_applies_the_new_rules(
    world: World, settings: Settings, database_url: str
) -> None:
    async with open_services(settings, database_url) as second:
        elsewhere = World(second, world.client)
        agent, customer = await new_agent(world, balance="2000"), await world.subscriber()
        for here in (world, elsewhere):
            assert (await cash_in(here, agent, customer, "100")).is_success
        answers = await asyncio.gather(*(put(world, rule(rate=str(rate))) for rate in (3, 3, 3)))
        assert {answer.status_code for answer in answers} == {200}
        rules = await second.ledger._get_rules(second.database)  # type: ignore[arg-type]
        assert [one.rate for one in rules.commissions.values()] == [3_000]
