"""PIN failure rules: wrong PINs alert immediately and can hold or block later payments."""

from datetime import timedelta
from types import SimpleNamespace
from typing import Any, cast

from builders.ledger import PIN, WRONG_PIN, LedgerDriver, build_command, is_correct_pin
from tapgate.ledger import chart
from tapgate.ledger.accounts import lock_account
from tapgate.ledger.commands import Outcome
from tapgate.ledger.pins.pin_failures import check_pin
from tapgate.ledger.pins.pin_verifier import PinVerifier
from tapgate.runtime.store.transaction import Transaction
from tapgate_client.errors import Code

CHILD_PIN = "4321"


async def activate_rule(ledger: LedgerDriver, *, action: str = "alert", threshold: int = 2) -> None:
    await ledger.database.execute(
        """UPDATE compliance_rules SET status = 'active', action = $1, threshold = $2
           WHERE type = 'PIN_FAILURES'""",
        action,
        threshold,
    )
    ledger.ledger.invalidate_rules()


async def submit_payment(
    ledger: LedgerDriver, card: str, merchant: int, pin: str | None = PIN
) -> Outcome:
    return await ledger.submit(build_command(chart.POS_PAYMENT, card, merchant, 1, payer_pin=pin))


async def list_alerts(ledger: LedgerDriver) -> list[Any]:
    rows = await ledger.database.fetch(
        "SELECT subscriber_id, occurrences, review, details FROM alerts ORDER BY id"
    )
    return [tuple(row) for row in rows]


def build_alert_details(figure: int, action: str = "alert", **more: str) -> dict[str, Any]:
    return {"rule_type": "PIN_FAILURES", "action": action, "figure": figure, **more}


async def test_wrong_pins_of_own_and_child_cards_are_counted_together(ledger: LedgerDriver) -> None:
    await activate_rule(ledger)
    payer, merchant = await ledger.create_subscriber(100_00), await ledger.create_processor()
    parent_card = await ledger.create_card(payer)
    child = await ledger.create_card(payer, daily_limit=10_00, pin=CHILD_PIN)
    assert (await submit_payment(ledger, parent_card, merchant, WRONG_PIN)).code == Code.INVALID_PIN
    assert (await submit_payment(ledger, child, merchant, WRONG_PIN)).code == Code.INVALID_PIN
    assert await list_alerts(ledger) == []
    assert (await submit_payment(ledger, child, merchant, WRONG_PIN)).code == Code.INVALID_PIN
    assert await list_alerts(ledger) == [(payer, 1, False, build_alert_details(3))]
    assert (await submit_payment(ledger, parent_card, merchant)).code is None
    payment_details = build_alert_details(3, transaction_type="pos_payment")
    assert await list_alerts(ledger) == [(payer, 2, False, payment_details)]


async def test_wrong_pins_within_one_batch_block_a_later_payment(ledger: LedgerDriver) -> None:
    await activate_rule(ledger, action="block")
    payer, merchant = await ledger.create_subscriber(100_00), await ledger.create_processor()
    parent_card = await ledger.create_card(payer)
    child = await ledger.create_card(payer, daily_limit=10_00, pin=CHILD_PIN)
    ledger_commands = [
        build_command(chart.POS_PAYMENT, card, merchant, 1, payer_pin=WRONG_PIN if wrong else PIN)
        for card, wrong in (
            (parent_card, False),
            (parent_card, True),
            (parent_card, True),
            (child, True),
            (parent_card, False),
        )
    ]
    codes = [outcome.code for outcome in await ledger.submit_batch(ledger_commands)]
    wrong = Code.INVALID_PIN
    assert codes == [None, wrong, wrong, wrong, Code.COMPLIANCE_REJECTED]
    assert (await list_alerts(ledger))[0][:2] == (payer, 2)


async def test_attempts_on_a_locked_pin_are_not_counted(ledger: LedgerDriver) -> None:
    await activate_rule(ledger)
    payer, merchant = await ledger.create_subscriber(100_00), await ledger.create_processor()
    card = await ledger.create_card(payer)
    codes = [(await submit_payment(ledger, card, merchant, WRONG_PIN)).code for _ in range(5)]
    assert codes == [Code.INVALID_PIN] * 3 + [Code.ACCOUNT_LOCKED] * 2
    assert await list_alerts(ledger) == [(payer, 1, False, build_alert_details(3))]


async def test_block_rule_declines_until_the_window_ends(ledger: LedgerDriver) -> None:
    await activate_rule(ledger, action="block")
    payer, merchant = await ledger.create_subscriber(100_00), await ledger.create_processor()
    card = await ledger.create_card(payer)
    for _ in range(3):
        await submit_payment(ledger, card, merchant, WRONG_PIN)
    ledger.clock.now += timedelta(minutes=30)
    assert (await submit_payment(ledger, card, merchant)).code == Code.COMPLIANCE_REJECTED
    ledger.clock.now += timedelta(hours=23, minutes=30)
    assert (await submit_payment(ledger, card, merchant)).code == Code.COMPLIANCE_REJECTED
    ledger.clock.now += timedelta(milliseconds=1)
    assert (await submit_payment(ledger, card, merchant)).code is None


async def test_review_rule_holds_the_next_payment(ledger: LedgerDriver) -> None:
    await activate_rule(ledger, action="review", threshold=0)
    payer, merchant = await ledger.create_subscriber(100_00), await ledger.create_processor()
    card = await ledger.create_card(payer)
    await submit_payment(ledger, card, merchant, WRONG_PIN)
    result = await submit_payment(ledger, card, merchant)
    assert result.require_accepted().status == "under_review"
    assert [review for _, _, review, _ in await list_alerts(ledger)] == [False, True]


async def test_block_rule_does_not_decline_a_type_that_it_does_not_list(
    ledger: LedgerDriver,
) -> None:
    await activate_rule(ledger, action="block", threshold=0)
    payer, agent = await ledger.create_subscriber(100_00), await ledger.create_agent()
    cash_out = build_command(chart.AGENT_CASHOUT, payer, agent, 1, payer_pin=WRONG_PIN)
    assert (await ledger.submit(cash_out)).code == Code.INVALID_PIN
    assert len(await list_alerts(ledger)) == 1
    cash_out = build_command(chart.AGENT_CASHOUT, payer, agent, 1, payer_pin=PIN)
    assert (await ledger.submit(cash_out)).code is None


async def test_agent_pin_failures_are_not_counted(ledger: LedgerDriver) -> None:
    await activate_rule(ledger, threshold=0)
    payer, agent = await ledger.create_subscriber(100_00), await ledger.create_agent(100_00)
    cash_in = build_command(chart.AGENT_CASHIN, agent, payer, 1, payer_pin=WRONG_PIN)
    assert (await ledger.submit(cash_in)).code == Code.INVALID_PIN
    cash_out = build_command(
        chart.AGENT_CASHOUT, payer, agent, 1, payer_pin=PIN, payee_pin=WRONG_PIN
    )
    assert (await ledger.submit(cash_out)).code == Code.INVALID_PIN
    async with ledger.database.transaction() as tx:
        await lock_account(tx, await ledger.get_account_id(agent))
        verifier = cast(PinVerifier, SimpleNamespace(matches=is_correct_pin, wrong_pin_limit=None))
        await check_pin(
            Transaction(tx, ledger.clock, ledger.new_id), "key", agent, WRONG_PIN, verifier
        )
    assert await list_alerts(ledger) == []
    assert await ledger.database.fetchval("SELECT count(*) FROM pin_failures") == 0


async def test_wrong_pins_are_counted_while_the_rule_is_inactive(ledger: LedgerDriver) -> None:
    payer, merchant = await ledger.create_subscriber(100_00), await ledger.create_processor()
    card = await ledger.create_card(payer)
    for _ in range(3):
        await submit_payment(ledger, card, merchant, WRONG_PIN)
    assert await list_alerts(ledger) == []
    ledger.clock.now += timedelta(hours=1)
    await activate_rule(ledger, action="block")
    assert (await submit_payment(ledger, card, merchant)).code == Code.COMPLIANCE_REJECTED
