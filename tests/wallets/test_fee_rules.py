"""Fee rules: read, replaced, and charged by."""

import asyncio
from typing import Any

import httpx2
import pytest

from tapgate import ids
from tapgate.gateway import open_services
from tapgate.ledger import chart, commands
from tapgate.ledger.commands import Command, TransactionResult
from tapgate.ledger.verify import verify
from tapgate.settings import Settings
from world import World

URL = "/api/v1/fee-rules"

DEFAULTS = [
    {"type": "online_payment", "up_to": None, "rate": "1", "payer": "receiver"},
    {"type": "pos_payment", "up_to": None, "rate": "1", "payer": "receiver"},
    {"type": "transfer_p2p", "up_to": "50000.00", "rate": "1.5", "payer": "sender"},
    {"type": "transfer_p2p", "up_to": "500000.00", "rate": "1", "payer": "sender"},
    {"type": "transfer_p2p", "up_to": None, "rate": "0.5", "payer": "sender"},
]


def step(
    kind: str = "transfer", up_to: str | None = None, rate: str = "2", payer: str = "sender"
) -> dict[str, Any]:
    return {"type": kind, "up_to": up_to, "rate": rate, "payer": payer}


async def put(world: World, *steps: dict[str, Any]) -> httpx2.Response:
    return await world.client.put(URL, json={"data": steps}, auth=await world.admin())


async def get(world: World) -> list[Any]:
    answer = await world.client.get(URL, auth=await world.admin("F"))
    assert (answer.status_code, list(answer.json())) == (200, ["data"])
    steps: list[Any] = answer.json()["data"]
    return steps


async def test_the_defaults_and_that_they_can_be_sent_back(world: World) -> None:
    assert await get(world) == DEFAULTS
    assert list(DEFAULTS[0]) == list((await get(world))[0])
    answer = await put(world, *DEFAULTS)
    assert (answer.status_code, answer.json()) == (200, {"data": DEFAULTS})
    assert await world.audit("fee_rules", "fee_rules.replaced") == []


async def test_all_are_replaced(world: World) -> None:
    wanted = [
        step("agent_cashout", rate="0.125", payer="receiver"),
        step("transfer", up_to="10", rate="0"),
        step("transfer", up_to="20.5", rate="100.000"),
        step("transfer", rate="2.50"),
    ]
    answer = await put(world, *wanted)
    kept = [
        wanted[0],
        step("transfer", up_to="10.00", rate="0"),
        step("transfer", up_to="20.50", rate="100"),
        step("transfer", rate="2.5"),
    ]
    assert (answer.status_code, answer.json()) == (200, {"data": kept})
    assert await get(world) == kept
    (entry,) = await world.audit("fee_rules", "fee_rules.replaced")
    assert entry["changes"] == {"data": [DEFAULTS, kept]}
    assert (await put(world)).json() == {"data": []}


async def put_type(world: World, kind: str, *steps: dict[str, Any]) -> httpx2.Response:
    return await world.client.put(
        f"{URL}/{kind}", json={"data": steps}, auth=await world.admin("A")
    )


async def test_those_of_one_type_are_replaced_and_the_others_stay(world: World) -> None:
    others = [one for one in DEFAULTS if one["type"] != "transfer_p2p"]
    wanted = step("transfer_p2p", rate="2")
    answer = await put_type(world, "transfer_p2p", wanted)
    assert (answer.status_code, answer.json()) == (200, {"data": [*others, wanted]})
    (entry,) = await world.audit("fee_rules", "fee_rules.replaced")
    assert entry["changes"] == {"data": [DEFAULTS, [*others, wanted]]}
    assert (await put_type(world, "transfer_p2p")).json() == {"data": others}
    assert await get(world) == others


async def test_who_changes_one_type_says_nothing_of_another(world: World) -> None:
    answer = await put_type(world, "transfer", step(up_to="5"), step("transfer_p2p"))
    assert answer.status_code == 422
    fields = {"data[1].type": "must be transfer"}
    assert answer.json()["details"]["fields"] == fields
    answer = await put_type(world, "refund", step("refund"))
    assert "data[0].type" in answer.json()["details"]["fields"]
    answer = await put_type(world, "tips", step())
    assert (answer.status_code, answer.json()["code"]) == (404, "RULE_NOT_FOUND")
    assert await get(world) == DEFAULTS


async def test_two_types_changed_at_the_same_time_are_both_changed(world: World) -> None:
    kinds = ("transfer", "agent_cashout", "agent_transfer", "partner_fund")
    answers = await asyncio.gather(*(put_type(world, kind, step(kind)) for kind in kinds))
    assert {answer.status_code for answer in answers} == {200}
    found = await get(world)
    assert [one for one in found if one["type"] in kinds] == [step(kind) for kind in sorted(kinds)]
    assert len(found) == len(DEFAULTS) + len(kinds)


async def test_the_order_of_types_does_not_matter(world: World) -> None:
    wanted = [step(up_to="5"), step("agent_transfer"), step()]
    answer = await put(world, *wanted)
    assert [one["type"] for one in answer.json()["data"]] == [
        "agent_transfer",
        "transfer",
        "transfer",
    ]


BAD: list[tuple[list[dict[str, Any]], list[str]]] = [
    ([step(up_to="5")], ["data[0].up_to"]),
    ([step(up_to="5"), step(up_to="4"), step()], ["data[1].up_to"]),
    ([step(up_to="5"), step(up_to="5.00"), step()], ["data[1].up_to"]),
    ([step(), step(up_to="5")], ["data[1].up_to"]),
    ([step(), step()], ["data[1].up_to"]),
    ([step(up_to="5"), step(payer="receiver")], ["data[1].payer"]),
    ([step("pos_payment")], ["data[0].payer"]),
    ([step("online_payment")], ["data[0].payer"]),
    ([step("refund")], ["data[0].type"]),
    ([step("commission_payout"), step("agent_fund")], ["data[0].type", "data[1].type"]),
    ([step("partner_deposit")], ["data[0].type"]),
    ([step("gift")], ["data[0].type"]),
    ([step(up_to="0"), step()], ["data[0].up_to"]),
    ([step(up_to="1.001"), step()], ["data[0].up_to"]),
    ([step(payer="platform")], ["data[0].payer"]),
    *(
        ([step(), step("agent_cashin", rate=rate)], ["data[1].rate"])
        for rate in ("100.001", "101", "-1", "1.2345", "1e1", "", ".5", "1.", "NaN", "٣", "1 %")
    ),
]


@pytest.mark.parametrize(("steps", "fields"), BAD)
async def test_a_bad_value_is_named(
    world: World, steps: list[dict[str, Any]], fields: list[str]
) -> None:
    answer = await put(world, *steps)
    assert (answer.status_code, answer.json()["code"]) == (422, "VALIDATION_FAILED")
    assert list(answer.json()["details"]["fields"]) == fields
    assert await get(world) == DEFAULTS


async def test_a_wrong_type_is_named(world: World) -> None:
    for change, field in (
        ({"rate": 1.5}, "data[0].rate"),
        ({"up_to": 5}, "data[0].up_to"),
        ({"payer": None}, "data[0].payer"),
    ):
        answer = await put(world, step() | change)
        assert (answer.status_code, answer.json()["code"]) == (400, "INVALID_REQUEST")
        assert list(answer.json()["details"]["fields"]) == [field]
    answer = await world.client.put(URL, json={}, auth=await world.admin())
    assert answer.status_code == 400


async def test_replaced_at_the_same_time_one_of_them_stays_whole(world: World) -> None:
    ladders = [
        [step(up_to=str(end), rate=str(number)) for end in range(1, 10)] + [step(rate=str(number))]
        for number in range(8)
    ]
    answers = await asyncio.gather(*(put(world, *ladder) for ladder in ladders))
    assert {answer.status_code for answer in answers} == {200}
    assert len({one["rate"] for one in await get(world)}) == 1
    assert len(await get(world)) == 10


async def move(world: World, kind: str, payer: Any, payee: Any, amount: int) -> TransactionResult:
    order = Command(type=kind, channel="admin", payer=payer, payee=payee, amount=amount)
    return (await world.services.ledger.submit(order)).require_accepted()


def wallet(record: dict[str, Any]) -> commands.Party:
    return commands.subscriber_party(ids.decode(ids.SUBSCRIBER, record["id"]) or 0)


async def test_the_next_transaction_is_charged_by_the_new_rules_on_every_process(
    world: World, settings: Settings, database_url: str
) -> None:
    sender, receiver = await world.subscriber(balance="100"), await world.subscriber()
    async with open_services(settings, database_url) as second:
        gateways = (world, World(second, world.client))
        for gateway in gateways:
            answer = await move(gateway, chart.TRANSFER, wallet(sender), wallet(receiver), 10_00)
            assert answer.fee == 0
        await put(world, step(up_to="10", rate="10", payer="receiver"), step(payer="receiver"))
        for gateway in gateways:
            answer = await move(gateway, chart.TRANSFER, wallet(sender), wallet(receiver), 10_00)
            assert answer.fee == 1_00
        answer = await move(world, chart.TRANSFER, wallet(sender), wallet(receiver), 10_01)
        assert (answer.fee, answer.payee_available) == (20, 20_00 + 18_00 + 9_81)


@pytest.mark.parametrize("payer", ["sender", "receiver"])
async def test_every_type_that_may_have_a_fee_is_charged_right(world: World, payer: str) -> None:
    """The whole amount at the highest rate there is, both ways; the books hold."""
    charged = [
        kind
        for kind in chart.TRANSACTION_TYPES
        if (await put(world, step(kind, rate="100", payer=payer))).status_code == 200
    ]
    payments = sorted(chart.PAYMENT_TYPES) if payer == "receiver" else []
    assert sorted(charged) == sorted(
        [
            "agent_cashin",
            "agent_cashout",
            "agent_transfer",
            "partner_fund",
            "processor_transfer",
            "transfer",
            "transfer_p2p",
            *payments,
        ]
    )
    await put(world, *(step(kind, rate="50", payer=payer) for kind in charged))
    sender, receiver = await world.subscriber(balance="1000"), await world.subscriber()
    for kind in ("transfer", "transfer_p2p", *payments):
        payee = wallet(receiver)
        if kind in chart.PAYMENT_TYPES:
            key = await world.processor()
            processor_id = await world.services.database.fetchval(
                "SELECT processor_id FROM hmac_keys WHERE id = $1", ids.decode(ids.KEY, key.id)
            )
            payee = commands.processor_party(processor_id)
        answer = await move(world, kind, wallet(sender), payee, 10_00)
        assert answer.fee == 5_00
    async with world.services.database.connection() as connection:
        assert (await verify(connection)).is_valid


@pytest.mark.parametrize("payer", ["sender", "receiver"])
async def test_the_platform_does_not_charge_itself(world: World, payer: str) -> None:
    await put(world, step(rate="10", payer=payer))
    subscriber = await world.subscriber()
    answer = await move(world, chart.TRANSFER, commands.CASH_PARTY, wallet(subscriber), 10_00)
    assert (answer.fee, answer.payee_available) == (0, 10_00)
    fees = commands.Party("owner", 0, chart.FEES)
    answer = await move(world, chart.TRANSFER, wallet(subscriber), fees, 1_00)
    assert (answer.fee, answer.payer_available) == (0, 9_00)
    async with world.services.database.connection() as connection:
        assert (await verify(connection)).is_valid
