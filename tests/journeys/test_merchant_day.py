"""A merchant's day, from the first payment to the payout.

Covers POS and in-app payments, declines, a lost connection, refunds, and a suspension.
"""

from decimal import Decimal

import pytest

from drivers.actors import (
    Admin,
    new_request_id,
    require_error,
    require_error_details,
    require_success,
)
from drivers.deployments import Deployment, sum_history
from drivers.webhooks import wait_until_equal
from harness import PIN, WRONG_PIN

pytestmark = [pytest.mark.refund, pytest.mark.statements]


async def test_merchant_day_from_first_payment_to_payout(
    deployment: Deployment, ada: Admin
) -> None:
    officer, finance = await ada.create_admin("Osman", "C"), await ada.create_admin("Fatmata", "F")
    app = await ada.create_app()
    aminata = await ada.create_funded_customer("3000.00", app, "Aminata Kamara")
    mohamed = await ada.create_funded_customer("40.00", app, "Mohamed Sesay")
    merchant = await ada.create_merchant("Kamara Stores")
    front, front_record = await ada.create_terminal(merchant, "Front till")
    back, back_record = await ada.create_terminal(merchant, "Back till")

    # Payments above the no-PIN limit need a PIN. The cardholder's last name is abbreviated.
    actual = require_success(await front.verify_card(aminata.card, PIN))["holder_name"]
    assert actual == "Aminata K."
    bread = require_success(await front.pay("500.00", aminata.card, transaction_ref="ORDER-1"))
    assert bread["remaining_balance"] == "2,500.00 SLE"
    assert bread["fee_amount"] == "5.00 SLE"
    assert require_error(await front.pay("500.01", aminata.card)) == (403, "PIN_REQUIRED")
    response = await front.pay("1000.00", aminata.card, WRONG_PIN)
    assert require_error(response) == (400, "INVALID_PIN")
    stove = require_success(await front.pay("1000.00", aminata.card, PIN))
    assert len(stove["approval_code"]) == 6

    # In-app payments have no PIN.
    body = {"order": "A-17"}
    payment = {"metadata": body, "request_id": new_request_id()}
    delivery = require_success(await merchant.server.pay_in_app("120.00", aminata.card, **payment))
    assert delivery["metadata"] == body
    # A request to the versioned path with an equivalent amount replays the payment.
    again = await merchant.server.post("payment", card_serial=aminata.card, amount="120", **payment)
    assert require_success(again) == delivery
    assert again.headers["Idempotent-Replayed"] == "true"
    response = await merchant.server.pay_in_app("501.00", aminata.card)
    assert require_error(response) == (403, "PIN_REQUIRED")

    # Declines: insufficient funds and a blocked card.
    response = await back.pay("50.00", mohamed.card)
    assert require_error(response) == (402, "INSUFFICIENT_FUNDS")
    assert require_error_details(response) == {"available": 40.0, "required": 50.0}
    require_success(await app.post(f"cards/{mohamed.card}/block", reason="customer_request"))
    response = await back.pay("5.00", mohamed.card)
    assert require_error(response) == (403, "CARD_NOT_ACTIVE")
    assert require_error_details(response) == {"party": "sender"}
    require_success(await app.post(f"cards/{mohamed.card}/unblock"))
    require_success(await back.pay("5.00", mohamed.card))

    # The connection breaks before the response; the terminal retries with the same request ID.
    request_id = new_request_id()
    await back.pay_and_disconnect("380.00", aminata.card, PIN, request_id)
    await wait_until_equal(aminata.get_balance, "1000.00")
    response = await back.pay("380.00", aminata.card, PIN, request_id=request_id)
    rice = require_success(response)
    assert rice["remaining_balance"] == "1,000.00 SLE"
    again = await back.pay("380.00", aminata.card, PIN, request_id=request_id)
    assert again.content == response.content
    assert [item.headers["Idempotent-Replayed"] for item in (response, again)] == ["true", "true"]
    response = await back.pay("381.00", aminata.card, PIN, request_id=request_id)
    assert require_error(response) == (409, "DUPLICATE_REQUEST")
    assert await aminata.get_balance() == "1000.00"

    # Partial and full refunds cannot exceed the payment.
    part = require_success(await front.refund(stove["transaction_id"], "400"))
    assert (part["amount"], part["refundable_amount"]) == ("400.00 SLE", "600.00 SLE")
    response = await back.refund(stove["transaction_id"], "600.01")
    assert require_error(response) == (422, "REFUND_EXCEEDS_REMAINING")
    rest = require_success(await merchant.server.refund(stove["transaction_id"]))
    assert (rest["amount"], rest["refundable_amount"]) == ("600.00 SLE", "0.00 SLE")
    response = await back.refund(stove["transaction_id"], "1")
    assert require_error(response) == (409, "ALREADY_REFUNDED")
    require_success(await merchant.server.refund(delivery["transaction_id"], "20.00"))
    assert await aminata.get_balance() == "2020.00"

    # Another merchant cannot refund a payment by its ID.
    rival = await ada.create_merchant("Bangura Stores")
    response = await rival.server.refund(rice["transaction_id"])
    assert require_error(response) == (404, "TRANSACTION_NOT_FOUND")

    # A suspension applies to all terminals and processes immediately, until activation.
    async with deployment.open_client_per_process() as clients:
        for client in clients:  # the key is cached in each process
            require_success(
                await merchant.server.with_client(client).verify_card(aminata.card, PIN)
            )
        response = await officer.post(f"processors/{merchant.id}/suspend", reason="many refunds")
        suspended = require_success(response)["processor"]
        for terminal in (front, back, merchant.server):
            for client in clients:
                response = await terminal.with_client(client).pay("1.00", aminata.card)
                assert require_error(response) == (403, "PROCESSOR_SUSPENDED")
    assert (suspended["status"], suspended["suspend_reason"]) == ("suspended", "many refunds")
    response = await finance.post(
        f"processors/{merchant.id}/transfer", subscriber_id=mohamed.id, amount="1"
    )
    assert require_error(response) == (403, "PROCESSOR_SUSPENDED")
    require_success(
        await officer.post(f"processors/{merchant.id}/activate", reason="all explained")
    )
    require_success(await front.pay("20.00", aminata.card))

    # Blocking one terminal does not affect the other terminal.
    url = f"processors/{merchant.id}/terminals/{back_record['id']}"
    require_success(await ada.post(f"{url}/block", reason="stolen"))
    assert require_error(await back.pay("1.00", aminata.card)) == (403, "TERMINAL_BLOCKED")
    require_success(await front.pay("10.00", aminata.card))

    # In the evening the owner, also a subscriber, receives the payout.
    owner = await app.register_customer("Kadiatu Kamara")
    record = require_success(await ada.get(f"processors/{merchant.id}"))
    # 500 + 120 + 5 + 380 + 20 + 10 minus 1%, with 20 refunded
    assert record["balance"] == "1004.65"
    response = await finance.post(
        f"processors/{merchant.id}/transfer", subscriber_id=owner.id, amount="1004.66"
    )
    assert require_error(response) == (402, "INSUFFICIENT_FUNDS")
    receipt = require_success(
        await finance.post(
            f"processors/{merchant.id}/transfer",
            subscriber_id=owner.id,
            amount="1000.00",
            description="Sunday",
        )
    )
    assert receipt["processor_balance"] == "4.65 SLE"
    assert await owner.get_balance() == "1000.00"

    # History and balance agree for all parties.
    history = await app.list_all(f"processors/{merchant.id}/transactions")
    assert sum_history(history) == Decimal("4.65") == Decimal(await app.get_balance(merchant.id))
    assert history[0]["balance_after"] == "4.65"
    for customer in (aminata, mohamed, owner):
        found = sum_history(await app.list_transactions(customer.id))
        expected_value = Decimal(await customer.get_balance())
        assert found == expected_value

    # The lost connection left exactly one payment.
    expected = [rice["transaction_id"]]
    assert [line["id"] for line in history if line["request_id"] == request_id] == expected
    by_id = {line["id"]: line for line in history}
    assert by_id[stove["transaction_id"]]["status"] == "refunded"
    assert by_id[delivery["transaction_id"]]["status"] == "partially_refunded"
    assert by_id[delivery["transaction_id"]]["refunded_amount"] == "20.00"
    assert by_id[bread["transaction_id"]]["terminal_id"] == front_record["id"]
    assert {line["from"]["name"] for line in history if line["type"] == "pos_payment"} == {
        "Aminata K.",
        "Mohamed S.",
    }
    declined = [(line["amount"], line["failure_code"]) for line in history if line["failure_code"]]
    assert declined == [
        ("1004.66", "INSUFFICIENT_FUNDS"),
        ("1.00", "PROCESSOR_SUSPENDED"),
        ("5.00", "CARD_NOT_ACTIVE"),
        ("50.00", "INSUFFICIENT_FUNDS"),
    ]
