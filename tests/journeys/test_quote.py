"""An app shows what a payment costs and whether it will be accepted, before money moves."""

from decimal import Decimal
from typing import Any

from drivers.actors import (
    Admin,
    App,
    Record,
    require_error,
    require_error_details,
    require_success,
)
from harness import PIN


async def get_quote(app: App, kind: str, amount: str, **fields: Any) -> Record:
    return require_success(await app.post("wallet/quote", type=kind, amount=amount, **fields))


async def test_quote_tells_what_the_payment_will_cost_and_need(local_admin: Admin) -> None:
    ada = local_admin
    app = await ada.create_app()
    shop_app = await ada.create_app("payments:write")
    aminata = await ada.create_funded_customer("1000.00", app, "Aminata Kamara")
    mohamed = await app.register_customer("Mohamed Sesay")  # has no card
    merchant = await ada.create_merchant()

    # A visitor who is not registered sees only the fee.
    quote = await get_quote(app, "transfer_p2p", "200.00")
    assert (quote["fee_amount"], quote["total"], quote["limits"]) == ("3.00", "203.00", None)

    # The sender learns what the limits leave, then sends exactly the quoted total.
    quote = await get_quote(app, "transfer_p2p", "200.00", sender_id=aminata.id)
    assert (quote["allowed"], quote["pin_required"]) == (True, True)
    left = quote["limits"]["daily_remaining"]
    transfer = {"sender_id": aminata.id, "recipient_phone_number": mohamed.phone, "pin": PIN}
    receipt = require_success(await app.post("wallet/transfer-p2p", amount="200.00", **transfer))
    assert receipt["recipient"] == {"name": "Mohamed S."}
    assert (await aminata.get_balance(), await mohamed.get_balance()) == ("797.00", "200.00")
    quote = await get_quote(app, "transfer_p2p", "1.00", sender_id=aminata.id)
    assert Decimal(left) - Decimal(quote["limits"]["daily_remaining"]) == 200

    # A card payment needs the PIN above the no-PIN limit, and then the terminal asks for it.
    card = {"card_serial": aminata.card}
    assert (await get_quote(app, "pos_payment", "500.00", **card))["pin_required"] is False
    assert (await get_quote(app, "pos_payment", "500.01", **card))["pin_required"] is True
    response = await merchant.server.pay("500.01", aminata.card)
    assert require_error(response) == (403, "PIN_REQUIRED")
    require_success(await merchant.server.pay("500.01", aminata.card, PIN))

    # In-app payments cannot have a PIN, so the quote is a decline.
    quote = await get_quote(app, "online_payment", "600.00", **card)
    assert quote["reasons"] == ["PIN_REQUIRED", "INSUFFICIENT_FUNDS"]
    # The shop's app may not read balances, so it does not learn that the funds are missing.
    quote = await get_quote(shop_app, "transfer_p2p", "600.00", sender_id=aminata.id)
    assert (quote["allowed"], quote["reasons"]) == (True, [])

    # A blocked card is declined, and a card of another customer refused.
    require_success(await app.post(f"cards/{aminata.card}/block", reason="customer_request"))
    quote = await get_quote(app, "pos_payment", "5.00", **card)
    assert (quote["allowed"], quote["reasons"]) == (False, ["CARD_NOT_ACTIVE"])
    body = {"type": "pos_payment", "amount": "5.00", "sender_id": mohamed.id, **card}
    response = await app.post("wallet/quote", **body)
    assert list(require_error_details(response)["fields"]) == ["card_serial"]
