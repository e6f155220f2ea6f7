"""Partner top-ups by signed requests and by repeated webhooks."""

import asyncio
from decimal import Decimal

from drivers.actors import Admin, require_error, require_error_details, require_success
from drivers.deployments import Deployment, sum_history


async def test_partner_top_ups_by_request_and_webhook_are_idempotent(
    deployment: Deployment, ada: Admin
) -> None:
    finance = await ada.create_admin("Fatmata", "F")
    app = await ada.create_app()
    bank = await ada.create_partner("Sierra Bank", overdraft_limit="200.00")
    aminata, mohamed = (
        await app.register_customer("Aminata Kamara"),
        await app.register_customer("Mohamed Sesay"),
    )
    receipt = await finance.fund_partner(bank, "1000.00")
    assert receipt["new_balance"] == "1,000.00 SLE"

    # The partner's server requests a top-up.
    receipt = require_success(await bank.top_up("300.00", aminata, "SB-1"))
    assert (receipt["amount"], receipt["new_balance"]) == ("300.00 SLE", "300.00 SLE")
    # A webhook with the same reference is a replay.
    again = require_success(await bank.send_webhook("300.00", aminata, "SB-1"))
    assert again["transaction_id"] == receipt["transaction_id"]

    # One webhook is delivered five times concurrently.
    async with deployment.open_client_per_process() as (first, second):
        deliveries = [bank.with_client(client) for client in (first, second, first, second, first)]
        responses = await asyncio.gather(
            *(delivery.send_webhook("150.00", aminata, "SB-2") for delivery in deliveries)
        )
    assert {response.status_code for response in responses} == {200}
    assert len({response.content for response in responses}) == 1
    assert await aminata.get_balance() == "450.00"

    # The same reference with another amount or recipient is rejected.
    for response in (
        await bank.send_webhook("151.00", aminata, "SB-2"),
        await bank.send_webhook("150.00", mohamed, "SB-2"),
        await bank.top_up("150.00", mohamed, "SB-2"),
    ):
        assert require_error(response) == (409, "DUPLICATE_REFERENCE")

    # A webhook signed with another partner's secret is rejected.
    thief = await ada.create_partner("Another Bank")
    thief.id = bank.id
    response = await thief.send_webhook("999.00", mohamed, "SB-3")
    assert require_error(response) == (401, "UNAUTHORIZED")
    assert await mohamed.get_balance() == "0.00"

    # 550 remain, plus 200 overdraft. A declined reference may be retried.
    response = await bank.send_webhook("750.01", mohamed, "SB-4")
    assert require_error(response) == (402, "INSUFFICIENT_FUNDS")
    assert require_error_details(response) == {"available": 750.0, "required": 750.01}
    require_success(await bank.send_webhook("700.00", mohamed, "SB-4"))
    assert await finance.get_balance(bank.id) == "-150.00"
    assert require_error(await bank.top_up("50.01", mohamed, "SB-5")) == (402, "INSUFFICIENT_FUNDS")

    # A suspended partner is rejected, even for replays.
    async with deployment.open_client_per_process() as clients:
        for client in clients:  # the key is cached in each process
            require_success(await bank.with_client(client).top_up("300.00", aminata, "SB-1"))
        require_success(
            await ada.post(f"admin/partners/{bank.id}/suspend", reason="credit is overdue")
        )
        for client in clients:
            response = await bank.with_client(client).top_up("1", mohamed, "SB-6")
            assert require_error(response) == (403, "PARTNER_SUSPENDED")
            response = await bank.with_client(client).send_webhook("150.00", aminata, "SB-2")
            assert require_error(response) == (403, "PARTNER_SUSPENDED")
    require_success(await ada.post(f"admin/partners/{bank.id}/activate", reason="paid"))
    await finance.fund_partner(bank, "150.00")
    assert require_error(await bank.top_up("200.01", mohamed, "SB-6")) == (
        402,
        "INSUFFICIENT_FUNDS",
    )
    require_success(await bank.top_up("200.00", mohamed, "SB-6"))

    # The partner's debits equal the wallets' credits.
    history = await finance.list_transactions(bank.id)
    assert sum_history(history) == Decimal("-200.00") == Decimal(await finance.get_balance(bank.id))
    paid = [line for line in history if line["type"] == "partner_fund"]
    assert sorted(line["amount"] for line in paid if line["status"] == "completed") == [
        "150.00",
        "200.00",
        "300.00",
        "700.00",
    ]
    assert await aminata.get_balance() == "450.00"
    assert await mohamed.get_balance() == "900.00"
    for customer in (aminata, mohamed):
        found = sum_history(await app.list_transactions(customer.id))
        expected = Decimal(await customer.get_balance())
        assert found == expected
