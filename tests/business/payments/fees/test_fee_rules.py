"""Fee rules: read, replace and apply."""

import asyncio
from typing import Any

import httpx2
import pytest

from builders.payments import PosDriver
from cases import each
from harness import Harness
from tapgate.core.settings import Settings
from tapgate.ledger import chart, commands
from tapgate.ledger.commands import Command, TransactionResult
from tapgate.ledger.verification.verify import verify
from tapgate.server.gateway_services import open_services
from tapgate_client import ids

URL = "/api/v1/fee-rules"

DEFAULT_RULES = [
    {"type": "online_payment", "up_to": None, "rate": "1", "payer": "receiver"},
    {"type": "pos_payment", "up_to": None, "rate": "1", "payer": "receiver"},
    {"type": "transfer_p2p", "up_to": "50000.00", "rate": "1.5", "payer": "sender"},
    {"type": "transfer_p2p", "up_to": "500000.00", "rate": "1", "payer": "sender"},
    {"type": "transfer_p2p", "up_to": None, "rate": "0.5", "payer": "sender"},
]


def build_rule(
    kind: str = "transfer", up_to: str | None = None, rate: str = "2", payer: str = "sender"
) -> dict[str, Any]:
    return {"type": kind, "up_to": up_to, "rate": rate, "payer": payer}


async def put_rules(harness: Harness, *rules: dict[str, Any]) -> httpx2.Response:
    return await harness.put(URL, json={"data": rules}, auth=await harness.create_admin())


async def get_rules(harness: Harness) -> list[Any]:
    response = await harness.get(URL, auth=await harness.create_admin("F"))
    assert (response.status_code, list(response.json())) == (200, ["data"])
    rules: list[Any] = response.json()["data"]
    return rules


async def test_replacing_the_fee_rules_with_the_same_rules_is_not_audited(harness: Harness) -> None:
    assert await get_rules(harness) == DEFAULT_RULES
    assert list(DEFAULT_RULES[0]) == list((await get_rules(harness))[0])
    response = await put_rules(harness, *DEFAULT_RULES)
    assert (response.status_code, response.json()) == (200, {"data": DEFAULT_RULES})
    assert await harness.list_audit_entries("fee_rules", "fee_rules.replaced") == []


async def test_put_replaces_all_fee_rules(harness: Harness) -> None:
    new_rules = [
        build_rule("agent_cashout", rate="0.125", payer="receiver"),
        build_rule("transfer", up_to="10", rate="0"),
        build_rule("transfer", up_to="20.5", rate="100.000"),
        build_rule("transfer", rate="2.50"),
    ]
    response = await put_rules(harness, *new_rules)
    stored = [
        new_rules[0],
        build_rule("transfer", up_to="10.00", rate="0"),
        build_rule("transfer", up_to="20.50", rate="100"),
        build_rule("transfer", rate="2.5"),
    ]
    assert (response.status_code, response.json()) == (200, {"data": stored})
    assert await get_rules(harness) == stored
    (entry,) = await harness.list_audit_entries("fee_rules", "fee_rules.replaced")
    assert entry["changes"] == {"data": [DEFAULT_RULES, stored]}
    assert (await put_rules(harness)).json() == {"data": []}


async def put_rules_of_type(harness: Harness, kind: str, *rules: dict[str, Any]) -> httpx2.Response:
    return await harness.put(
        f"{URL}/{kind}", json={"data": rules}, auth=await harness.create_admin("A")
    )


async def test_fee_has_a_fixed_part_a_minimum_and_a_maximum(harness: Harness) -> None:
    rule = {**build_rule(rate="1"), "fixed": "0.50", "minimum": "2.00", "maximum": "10.00"}
    assert (await put_rules(harness, rule)).json() == {"data": [rule]}
    sender = await harness.create_subscriber(balance="5000")
    for amount, fee in (("100", "2.00"), ("400", "4.50"), ("2000", "10.00")):
        quote = await harness.post(
            "/api/v1/wallet/quote",
            json={"type": "transfer", "amount": amount, "sender_id": sender["id"]},
            auth=await harness.create_admin(),
        )
        assert quote.json()["fee_amount"] == fee, quote.text
    without_parts = {**build_rule(), "fixed": None, "minimum": "0", "maximum": None}
    assert (await put_rules(harness, without_parts)).json() == {"data": [build_rule()]}


async def test_receiver_pays_at_most_the_amount(harness: Harness) -> None:
    rule = {**build_rule("pos_payment", rate="1", payer="receiver"), "fixed": "5.00"}
    assert (await put_rules(harness, rule)).status_code == 200
    pos = await PosDriver.create(harness)
    for amount, fee in (("3", "3.00 SLE"), ("100", "6.00 SLE")):
        paid = (await pos.pay(amount)).json()
        assert paid["fee_amount"] == fee
        refunded = (await pos.refund(paid["transaction_id"])).json()
        assert refunded["fee_refunded"] == fee
    async with harness.database.connection() as connection:
        assert (await verify(connection)).is_valid


async def test_fee_maximum_must_not_be_less_than_the_minimum(harness: Harness) -> None:
    response = await put_rules(harness, {**build_rule(), "minimum": "2", "maximum": "1.99"})
    assert response.status_code == 422
    assert list(response.json()["details"]["fields"]) == ["data[0].maximum"]


async def test_put_by_type_replaces_only_the_rules_of_that_type(harness: Harness) -> None:
    other_rules = [rule for rule in DEFAULT_RULES if rule["type"] != "transfer_p2p"]
    new_rule = build_rule("transfer_p2p", rate="2")
    response = await put_rules_of_type(harness, "transfer_p2p", new_rule)
    assert (response.status_code, response.json()) == (200, {"data": [*other_rules, new_rule]})
    (entry,) = await harness.list_audit_entries("fee_rules", "fee_rules.replaced")
    assert entry["changes"] == {"data": [DEFAULT_RULES, [*other_rules, new_rule]]}
    assert (await put_rules_of_type(harness, "transfer_p2p")).json() == {"data": other_rules}
    assert await get_rules(harness) == other_rules


async def test_put_by_type_rejects_rules_of_another_type(harness: Harness) -> None:
    response = await put_rules_of_type(
        harness, "transfer", build_rule(up_to="5"), build_rule("transfer_p2p")
    )
    assert response.status_code == 422
    fields = {"data[1].type": "must be transfer"}
    assert response.json()["details"]["fields"] == fields
    response = await put_rules_of_type(harness, "refund", build_rule("refund"))
    assert "data[0].type" in response.json()["details"]["fields"]
    response = await put_rules_of_type(harness, "tips", build_rule())
    assert (response.status_code, response.json()["code"]) == (404, "RULE_NOT_FOUND")
    assert await get_rules(harness) == DEFAULT_RULES


async def test_concurrent_updates_of_different_types_all_apply(harness: Harness) -> None:
    kinds = ("transfer", "agent_cashout", "agent_transfer", "partner_fund")
    responses = await asyncio.gather(
        *(put_rules_of_type(harness, kind, build_rule(kind)) for kind in kinds)
    )
    assert {response.status_code for response in responses} == {200}
    rules = await get_rules(harness)
    expected = [build_rule(kind) for kind in sorted(kinds)]
    assert [rule for rule in rules if rule["type"] in kinds] == expected
    assert len(rules) == len(DEFAULT_RULES) + len(kinds)


async def test_rules_of_different_types_can_be_sent_in_any_order(harness: Harness) -> None:
    new_rules = [build_rule(up_to="5"), build_rule("agent_transfer"), build_rule()]
    response = await put_rules(harness, *new_rules)
    assert [rule["type"] for rule in response.json()["data"]] == [
        "agent_transfer",
        "transfer",
        "transfer",
    ]


INVALID_RULES: list[tuple[list[dict[str, Any]], list[str]]] = [
    ([build_rule(up_to="5")], ["data[0].up_to"]),
    ([build_rule(up_to="5"), build_rule(up_to="4"), build_rule()], ["data[1].up_to"]),
    ([build_rule(up_to="5"), build_rule(up_to="5.00"), build_rule()], ["data[1].up_to"]),
    ([build_rule(), build_rule(up_to="5")], ["data[1].up_to"]),
    ([build_rule(), build_rule()], ["data[1].up_to"]),
    ([build_rule(up_to="5"), build_rule(payer="receiver")], ["data[1].payer"]),
    ([build_rule("pos_payment")], ["data[0].payer"]),
    ([build_rule("online_payment")], ["data[0].payer"]),
    ([build_rule("refund")], ["data[0].type"]),
    ([build_rule("commission_payout"), build_rule("agent_fund")], ["data[0].type", "data[1].type"]),
    ([build_rule("partner_deposit")], ["data[0].type"]),
    ([build_rule("gift")], ["data[0].type"]),
    ([build_rule(up_to="0"), build_rule()], ["data[0].up_to"]),
    ([build_rule(up_to="1.001"), build_rule()], ["data[0].up_to"]),
    ([build_rule(payer="platform")], ["data[0].payer"]),
    *(
        ([build_rule(), build_rule("agent_cashin", rate=rate)], ["data[1].rate"])
        for rate in ("100.001", "101", "-1", "1.2345", "1e1", "", ".5", "1.", "NaN", "٣", "1 %")
    ),
]


@each("rules, fields", INVALID_RULES)
async def test_invalid_rule_is_rejected_with_its_field(
    harness: Harness, rules: list[dict[str, Any]], fields: list[str]
) -> None:
    response = await put_rules(harness, *rules)
    assert (response.status_code, response.json()["code"]) == (422, "VALIDATION_FAILED")
    assert list(response.json()["details"]["fields"]) == fields
    assert await get_rules(harness) == DEFAULT_RULES


async def test_value_of_the_wrong_json_type_is_rejected_with_its_field(harness: Harness) -> None:
    for change, field in (
        ({"rate": 1.5}, "data[0].rate"),
        ({"up_to": 5}, "data[0].up_to"),
        ({"payer": None}, "data[0].payer"),
    ):
        response = await put_rules(harness, build_rule() | change)
        assert (response.status_code, response.json()["code"]) == (400, "INVALID_REQUEST")
        assert list(response.json()["details"]["fields"]) == [field]
    response = await harness.put(URL, json={}, auth=await harness.create_admin())
    assert response.status_code == 400


async def test_concurrent_replacements_do_not_mix_rules(harness: Harness) -> None:
    rule_sets = [
        [build_rule(up_to=str(end), rate=str(number)) for end in range(1, 10)]
        + [build_rule(rate=str(number))]
        for number in range(8)
    ]
    responses = await asyncio.gather(*(put_rules(harness, *rules) for rules in rule_sets))
    assert {response.status_code for response in responses} == {200}
    assert len({rule["rate"] for rule in await get_rules(harness)}) == 1
    assert len(await get_rules(harness)) == 10


async def submit_command(
    harness: Harness, kind: str, payer: Any, payee: Any, amount: int
) -> TransactionResult:
    command = Command(type=kind, channel="admin", payer=payer, payee=payee, amount=amount)
    return (await harness.services.ledger.submit(command)).require_accepted()


def build_party(record: dict[str, Any]) -> commands.Party:
    return commands.subscriber_party(ids.decode(ids.SUBSCRIBER, record["id"]) or 0)


async def test_new_fee_rules_apply_to_the_next_transaction_on_every_process(
    harness: Harness, settings: Settings, database_url: str
) -> None:
    sender = await harness.create_subscriber(balance="100")
    receiver = await harness.create_subscriber()
    async with open_services(settings, database_url) as second:
        gateways = (harness, Harness(second, harness.client))
        for gateway in gateways:
            result = await submit_command(
                gateway, chart.TRANSFER, build_party(sender), build_party(receiver), 10_00
            )
            assert result.fee == 0
        await put_rules(
            harness,
            build_rule(up_to="10", rate="10", payer="receiver"),
            build_rule(payer="receiver"),
        )
        for gateway in gateways:
            result = await submit_command(
                gateway, chart.TRANSFER, build_party(sender), build_party(receiver), 10_00
            )
            assert result.fee == 1_00
        result = await submit_command(
            harness, chart.TRANSFER, build_party(sender), build_party(receiver), 10_01
        )
        assert (result.fee, result.payee_available) == (20, 20_00 + 18_00 + 9_81)


@pytest.mark.parametrize("payer", ["sender", "receiver"])
async def test_fee_rules_are_accepted_for_exactly_the_types_that_allow_fees(
    harness: Harness, payer: str
) -> None:
    """Fees at high rates for either payer keep the ledger valid."""
    charged = [
        kind
        for kind in chart.TRANSACTION_TYPES
        if (await put_rules(harness, build_rule(kind, rate="100", payer=payer))).status_code == 200
    ]
    payments = sorted(chart.PAYMENT_TYPES) if payer == "receiver" else []
    expected = sorted(
        [
            "agent_cashin",
            "agent_cashout",
            "agent_transfer",
            "partner_fund",
            "processor_transfer",
            "transfer",
            "transfer_p2p",
            *([] if payer == "receiver" else ["batch_credit", "payout"]),
            *payments,
        ]
    )
    assert sorted(charged) == expected
    await put_rules(harness, *(build_rule(kind, rate="50", payer=payer) for kind in charged))
    sender = await harness.create_subscriber(balance="1000")
    receiver = await harness.create_subscriber()
    for kind in ("transfer", "transfer_p2p", *payments):
        payee = build_party(receiver)
        if kind in chart.PAYMENT_TYPES:
            key = await harness.create_processor()
            processor_id = await harness.database.fetchval(
                "SELECT processor_id FROM hmac_keys WHERE id = $1", ids.decode(ids.KEY, key.id)
            )
            payee = commands.processor_party(processor_id)
        result = await submit_command(harness, kind, build_party(sender), payee, 10_00)
        assert result.fee == 5_00
    async with harness.database.connection() as connection:
        assert (await verify(connection)).is_valid


@pytest.mark.parametrize("payer", ["sender", "receiver"])
async def test_transactions_with_platform_accounts_have_no_fee(
    harness: Harness, payer: str
) -> None:
    await put_rules(harness, build_rule(rate="10", payer=payer))
    subscriber = await harness.create_subscriber()
    result = await submit_command(
        harness, chart.TRANSFER, commands.CASH_PARTY, build_party(subscriber), 10_00
    )
    assert (result.fee, result.payee_available) == (0, 10_00)
    fees = commands.Party("owner", 0, chart.FEES)
    result = await submit_command(harness, chart.TRANSFER, build_party(subscriber), fees, 1_00)
    assert (result.fee, result.payer_available) == (0, 9_00)
    async with harness.database.connection() as connection:
        assert (await verify(connection)).is_valid
