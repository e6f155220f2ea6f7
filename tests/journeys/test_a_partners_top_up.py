"""A partner tops up wallets: by signed orders, and by webhooks that arrive more than once."""

import asyncio
from decimal import Decimal

from journeys.adding_up import worth
from journeys.caller import details, done, refused
from journeys.platform import Platform
from journeys.staff import Admin


async def test_a_partners_top_up(platform: Platform, ada: Admin) -> None:
    finance = await ada.hire("Fatmata", "F")
    app = await ada.app()
    bank = await ada.partner("Sierra Bank", overdraft_limit="200.00")
    aminata, mohamed = await app.register("Aminata Kamara"), await app.register("Mohamed Sesay")
    receipt = await finance.fund_partner(bank, "1000.00")
    assert receipt["new_balance"] == "1,000.00 SLE"

    # The bank's own server orders a top-up.
    receipt = done(await bank.top_up("300.00", aminata, "SB-1"))
    assert (receipt["amount"], receipt["new_balance"]) == ("300.00 SLE", "300.00 SLE")
    # It asks again, in another form too: still one top-up.
    again = done(await bank.tell("300.00", aminata, "SB-1"))
    assert again["transaction_id"] == receipt["transaction_id"]

    # The network delivers one webhook five times at once.
    async with platform.lines() as (one, other):
        deliveries = [bank.over(line) for line in (one, other, one, other, one)]
        answers = await asyncio.gather(
            *(delivery.tell("150.00", aminata, "SB-2") for delivery in deliveries)
        )
    assert {answer.status_code for answer in answers} == {200}
    assert len({answer.content for answer in answers}) == 1
    assert await aminata.balance() == "450.00"

    # The same reference with another amount or for somebody else is a mistake, not a top-up.
    for answer in (
        await bank.tell("151.00", aminata, "SB-2"),
        await bank.tell("150.00", mohamed, "SB-2"),
        await bank.top_up("150.00", mohamed, "SB-2"),
    ):
        assert refused(answer) == (409, "DUPLICATE_REFERENCE")

    # Another bank signs in its name, with its own secret.
    thief = await ada.partner("Another Bank")
    thief.id = bank.id
    answer = await thief.tell("999.00", mohamed, "SB-3")
    assert refused(answer) == (401, "UNAUTHORIZED")
    assert await mohamed.balance() == "0.00"

    # 550 are left, and 200 more on credit. What is declined may be asked for once more.
    answer = await bank.tell("750.01", mohamed, "SB-4")
    assert refused(answer) == (402, "INSUFFICIENT_FUNDS")
    assert details(answer) == {"available": 750.0, "required": 750.01}
    done(await bank.tell("700.00", mohamed, "SB-4"))
    assert await finance.balance(bank.id) == "-150.00"
    assert refused(await bank.top_up("50.01", mohamed, "SB-5")) == (402, "INSUFFICIENT_FUNDS")

    # The bank is suspended: keys and webhooks are refused, also what was paid before.
    async with platform.lines() as lines:
        for line in lines:  # each process has seen the key before
            done(await bank.over(line).top_up("300.00", aminata, "SB-1"))
        done(await ada.post(f"admin/partners/{bank.id}/suspend", reason="credit is overdue"))
        for line in lines:
            answer = await bank.over(line).top_up("1", mohamed, "SB-6")
            assert refused(answer) == (403, "PARTNER_SUSPENDED")
            answer = await bank.over(line).tell("150.00", aminata, "SB-2")
            assert refused(answer) == (403, "PARTNER_SUSPENDED")
    done(await ada.post(f"admin/partners/{bank.id}/activate", reason="paid"))
    await finance.fund_partner(bank, "150.00")
    assert refused(await bank.top_up("200.01", mohamed, "SB-6")) == (402, "INSUFFICIENT_FUNDS")
    done(await bank.top_up("200.00", mohamed, "SB-6"))

    # What the bank paid is what the wallets have.
    history = await finance.history(bank.id)
    assert worth(history) == Decimal("-200.00") == Decimal(await finance.balance(bank.id))
    paid = [line for line in history if line["type"] == "partner_fund"]
    assert sorted(line["amount"] for line in paid if line["status"] == "completed") == [
        "150.00",
        "200.00",
        "300.00",
        "700.00",
    ]
    assert await aminata.balance() == "450.00"
    assert await mohamed.balance() == "900.00"
    for customer in (aminata, mohamed):
        assert worth(await app.history(customer.id)) == Decimal(await customer.balance())
