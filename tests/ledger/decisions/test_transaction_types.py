"""Every transaction type: payer, payee, fees and commission."""

import pytest

from builders.ledger import PIN, LedgerDriver, build_command, build_refund, build_request_key
from tapgate.ledger import chart, commands
from tapgate.ledger.commands import CASH_PARTY
from tapgate_client.errors import ApiError, Code


async def test_p2p_sender_pays_the_fee_on_top_of_the_amount(ledger: LedgerDriver) -> None:
    sender, receiver = await ledger.create_subscriber(100_00), await ledger.create_subscriber()
    card = await ledger.create_card(receiver)
    outcome = await ledger.submit(
        build_command(chart.TRANSFER_P2P, sender, card, 50_00, payer_pin=PIN)
    )
    result = outcome.require_accepted()
    assert (result.status, result.fee, result.payer_available) == ("completed", 75, 49_25)
    assert result.payee_name == "Aminata K."
    assert await ledger.get_balance(sender) == 49_25
    assert await ledger.get_balance(receiver) == 50_00
    assert await ledger.get_platform_balance(chart.FEES) == 75


@pytest.mark.parametrize(
    ("amount", "fee"),
    [
        (1, 0),  # 0.015 rounds down
        (33, 0),  # 0.495
        (34, 1),  # 0.51
        (100_00, 1_50),
        (50_000_00, 750_00),
        (50_000_01, 500_00),
        (500_000_00, 5_000_00),
        (500_000_01, 2_500_00),
    ],
)
async def test_one_fee_rate_applies_to_the_whole_amount(
    ledger: LedgerDriver, amount: int, fee: int
) -> None:
    rules = await ledger.ledger.get_rules(ledger.database)  # type: ignore[arg-type]
    assert rules.calculate_fee(chart.TRANSFER_P2P, amount) == (fee, "sender")


async def test_payment_fee_is_deducted_from_the_merchants_amount(ledger: LedgerDriver) -> None:
    payer, merchant = await ledger.create_subscriber(100_00), await ledger.create_processor()
    card = await ledger.create_card(payer)
    for kind in (chart.POS_PAYMENT, chart.ONLINE_PAYMENT):
        outcome = await ledger.submit(
            build_command(
                kind,
                commands.card_party(card),
                commands.processor_party(merchant),
                50_00,
                pin_policy="above_no_pin_limit",
            )
        )
        assert outcome.require_accepted().fee == 50
        assert outcome.require_accepted().payee_available is None
    assert await ledger.get_balance(payer) == 0
    assert await ledger.get_balance(merchant) == 99_00
    rows = await ledger.database.fetch(
        "SELECT to_balance FROM transactions WHERE type LIKE '%payment' ORDER BY id"
    )
    assert [row[0] for row in rows] == [49_50, 99_00]


async def test_cash_in_earns_the_agent_a_commission(ledger: LedgerDriver) -> None:
    for tier, earned in ((1, 1_00), (2, 1_50), (3, 2_00)):
        agent = await ledger.create_agent(500_00, tier=tier)
        customer = await ledger.create_subscriber()
        outcome = await ledger.submit(
            build_command(
                chart.AGENT_CASHIN, agent, customer, 100_00, payer_pin=PIN, pin_policy="required"
            )
        )
        assert outcome.require_accepted().commission == earned
        assert outcome.require_accepted().payer_available == 400_00
        assert await ledger.get_balance(customer) == 100_00
        assert await ledger.get_balance(agent, chart.COMMISSION) == earned
        assert await ledger.get_balance(agent, chart.FLOAT) == 400_00


async def test_cash_out_needs_both_pins(ledger: LedgerDriver) -> None:
    agent, customer = await ledger.create_agent(), await ledger.create_subscriber(100_00)

    async def cash_out(customer_pin: str, agent_pin: str) -> tuple[Code | None, object]:
        outcome = await ledger.submit(
            build_command(
                chart.AGENT_CASHOUT,
                customer,
                agent,
                40_00,
                payer_pin=customer_pin,
                payee_pin=agent_pin,
                pin_policy="required",
            )
        )
        return outcome.code, outcome.details

    invalid_pin = Code.INVALID_PIN
    # The customer's PIN is checked first. Until it is correct, the agent's PIN is neither checked
    # nor counted.
    assert await cash_out("0000", "0000") == (invalid_pin, {"attempts_remaining": 2})
    agent_details = {"attempts_remaining": 2, "party": "receiver"}
    assert await cash_out(PIN, "0000") == (invalid_pin, agent_details)
    # The customer's PIN was correct, so its failure count was reset.
    assert await cash_out("0000", PIN) == (invalid_pin, {"attempts_remaining": 2})
    assert await cash_out(PIN, PIN) == (None, None)
    assert await ledger.get_balance(agent, chart.FLOAT) == 40_00
    assert await ledger.get_balance(customer) == 60_00


async def test_funded_agents_and_partners_can_transfer_the_money(ledger: LedgerDriver) -> None:
    agent = await ledger.create_agent()
    partner = await ledger.create_partner()
    customer = await ledger.create_subscriber()
    sub_agent = await ledger.create_agent(parent=agent)
    for kind, payer, payee in (
        (chart.AGENT_FUND, CASH_PARTY, commands.agent_party(agent)),
        (chart.PARTNER_DEPOSIT, CASH_PARTY, commands.partner_party(partner)),
        (chart.PARTNER_FUND, commands.partner_party(partner), commands.subscriber_party(customer)),
        (chart.AGENT_TRANSFER, commands.agent_party(agent), commands.agent_party(sub_agent)),
    ):
        assert (await ledger.submit(build_command(kind, payer, payee, 70_00))).code is None
    assert await ledger.get_balance(customer) == 70_00
    assert await ledger.get_balance(sub_agent, chart.FLOAT) == 70_00
    assert await ledger.get_balance(agent, chart.FLOAT) == 0
    assert await ledger.get_platform_balance(chart.CASH) == -140_00


async def test_commission_payout_pays_the_full_balance_and_then_is_rejected(
    ledger: LedgerDriver,
) -> None:
    agent, customer = await ledger.create_agent(500_00), await ledger.create_subscriber()
    await ledger.submit(build_command(chart.AGENT_CASHIN, agent, customer, 500_00))
    payout = build_command(chart.COMMISSION_PAYOUT, agent, agent, None)
    outcome = await ledger.submit(payout)
    assert outcome.require_accepted().amount == 5_00
    assert outcome.require_accepted().payee_available == 5_00
    assert (await ledger.submit(payout)).code == Code.INSUFFICIENT_FUNDS


async def test_processor_pays_a_subscriber(ledger: LedgerDriver) -> None:
    merchant, customer = await ledger.create_processor(80_00), await ledger.create_subscriber()
    outcome = await ledger.submit(
        build_command(chart.PROCESSOR_TRANSFER, merchant, customer, 80_00)
    )
    assert outcome.require_accepted().payer_available == 0


async def test_transfer_accepts_account_ids_as_parties(ledger: LedgerDriver) -> None:
    sender, receiver = await ledger.create_subscriber(10_00), await ledger.create_subscriber()
    outcome = await ledger.submit(
        build_command(
            chart.TRANSFER,
            commands.account_party(await ledger.get_account_id(sender)),
            commands.account_party(await ledger.get_account_id(receiver)),
            10_00,
        )
    )
    found = (
        outcome.require_accepted().payer_available,
        outcome.require_accepted().payee_available,
    )
    assert found == (0, 10_00)


async def test_final_partial_refund_returns_the_fee(ledger: LedgerDriver) -> None:
    payer, merchant = await ledger.create_subscriber(100_00), await ledger.create_processor()
    card = await ledger.create_card(payer)
    payment = (
        await ledger.submit(build_command(chart.POS_PAYMENT, card, merchant, 100_00))
    ).require_accepted()

    async def refund(amount: int | None) -> tuple[Code | None, int | None]:
        outcome = await ledger.submit(build_refund(merchant, payment.transaction_id, amount))
        return outcome.code, outcome.result and outcome.result.refundable_amount

    assert await refund(30_00) == (None, 70_00)
    assert await refund(70_01) == (Code.REFUND_EXCEEDS_REMAINING, None)
    assert await refund(None) == (None, 0)
    assert await refund(1) == (Code.ALREADY_REFUNDED, None)
    assert await ledger.get_balance(payer) == 100_00
    assert await ledger.get_balance(merchant) == 0
    assert await ledger.get_platform_balance(chart.FEES) == 0


async def test_partner_balance_can_go_negative_down_to_its_overdraft(ledger: LedgerDriver) -> None:
    partner = await ledger.create_partner(10_00, overdraft=5_00)
    customer = await ledger.create_subscriber()
    top_ups = [
        build_command(chart.PARTNER_FUND, partner, customer, amount) for amount in (15_01, 15_00)
    ]
    assert (await ledger.submit(top_ups[0])).details == {"available": 15.0, "required": 15.01}
    assert (await ledger.submit(top_ups[1])).code is None
    assert await ledger.get_balance(partner) == -5_00


async def test_require_accepted_raises_on_a_decline_and_marks_replays(ledger: LedgerDriver) -> None:
    sender, receiver = await ledger.create_subscriber(), await ledger.create_subscriber()
    command = build_command(
        chart.TRANSFER, sender, receiver, 1, idempotency_key=build_request_key("one")
    )
    with pytest.raises(ApiError) as first:
        (await ledger.submit(command)).require_accepted()
    with pytest.raises(ApiError) as second:
        (await ledger.submit(command)).require_accepted()
    assert first.value.code == second.value.code == Code.INSUFFICIENT_FUNDS
    assert first.value.headers == {}
    assert second.value.headers == {"Idempotent-Replayed": "true"}
