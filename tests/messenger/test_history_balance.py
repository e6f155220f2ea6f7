"""The amounts and fees in a person's history add up to the balance."""

import random
from decimal import Decimal

import pytest

from builders.payments import (
    create_agent,
    create_processor,
    decide_review,
    encode_transaction_id,
    get_funds,
    submit_command,
    submit_refund,
    update_rule,
)
from drivers.in_process import AppTransport
from harness import Harness
from tapgate.ledger import chart
from tapgate.messenger.gateway_requests import ListTransactions, TransactionSummary, perform
from tapgate.messenger.model import RequestSucceeded
from tapgate.server.gateway import create_app
from tapgate_client import NO_RETRIES, AsyncTapgateClient, ServiceSecret

_PAYMENTS = 40
_POSTED_STATUSES = ("completed", "partially_refunded", "refunded")


def get_change(line: TransactionSummary) -> Decimal:
    """Return by how much a history line says that the balance changed."""
    if line.status not in _POSTED_STATUSES:
        return Decimal()
    amount = Decimal(line.amount)
    return (amount if line.is_credit else -amount) - Decimal(line.fee)


async def set_fees(harness: Harness, chance: random.Random) -> None:
    """Replace the fee rules. The payer is random, except that processors pay for payments."""
    kinds = (chart.TRANSFER_P2P, chart.TRANSFER, chart.AGENT_CASHIN, chart.AGENT_CASHOUT)
    payers = {kind: chance.choice(["sender", "receiver"]) for kind in kinds}
    payers |= {chart.POS_PAYMENT: "receiver"}
    rules = [
        {"type": kind, "up_to": None, "rate": chance.choice(["0", "0.7", "3"]), "payer": payer}
        for kind, payer in payers.items()
    ]
    response = await harness.put(
        "/api/v1/fee-rules", json={"data": rules}, auth=await harness.create_admin("A")
    )
    assert response.status_code == 200, response.text


@pytest.mark.parametrize("seed", [1, 2, 3])
async def test_history_adds_up_to_the_balance_after_random_payments(
    harness: Harness, seed: int
) -> None:
    chance = random.Random(seed)
    await harness.disable_compliance_rules()
    await update_rule(harness, "Large amount", status="active", threshold="400")
    people = [await harness.create_subscriber(balance="3000") for _ in range(3)]
    cards = [await harness.create_card(person["id"]) for person in people]
    agent, shop = await create_agent(harness), await create_processor(harness)
    await submit_command(harness, chart.AGENT_FUND, "cash", agent, "10000")
    for number in range(_PAYMENTS):
        if number % 10 == 0:
            await set_fees(harness, chance)
        payer, payee = chance.sample(range(3), 2)
        kind, source, target = chance.choice(
            [
                (chart.TRANSFER_P2P, people[payer], cards[payee]),
                (chart.TRANSFER, people[payer], people[payee]),
                (chart.POS_PAYMENT, cards[payer], shop),
                (chart.AGENT_CASHIN, agent, people[payee]),
                (chart.AGENT_CASHOUT, people[payer], agent),
            ]
        )
        amount = f"{chance.choice([1, 33, 250, 401, 2000])}.{chance.randrange(100):02}"
        result = (await submit_command(harness, kind, source, target, amount)).result
        if result is None:
            continue
        transaction_id = encode_transaction_id(result)
        if result.status == "under_review" and chance.random() < 0.8:
            await decide_review(harness, transaction_id, release=chance.random() < 0.5)
        elif result.status == "completed" and kind == chart.POS_PAYMENT and chance.random() < 0.5:
            await submit_refund(harness, transaction_id, shop, chance.choice([amount, "1"]))

    secret = harness.services.settings.service_secrets["messenger"]
    gateway = AsyncTapgateClient(
        "http://gateway",
        ServiceSecret("messenger", secret),
        retries=NO_RETRIES,
        http=AppTransport(create_app(harness.services)),
    )
    directions_with_fee: set[bool] = set()
    for person in people:
        listed = await perform(gateway, ListTransactions(subscriber_id=person["id"], limit=100))
        assert isinstance(listed, RequestSucceeded)
        lines: list[TransactionSummary] = listed.result
        balance, _ = await get_funds(harness, person["id"])
        assert sum(map(get_change, lines), Decimal()) * 100 == balance
        directions_with_fee |= {line.is_credit for line in lines if Decimal(line.fee)}
    assert directions_with_fee == {True, False}
