"""Compliance: held payments, and a customer who exceeds the velocity limits."""

from decimal import Decimal

from drivers.actors import (
    Admin,
    Customer,
    Record,
    require_error,
    require_error_details,
    require_success,
)
from drivers.deployments import Deployment, sum_history

HIGH_BALANCE = "2500000.00"


async def find_rule(officer: Admin, name: str) -> Record:
    rules = require_success(await officer.get("compliance/rules"))["data"]
    (found,) = [rule for rule in rules if rule["name"] == name]
    return dict(found)


async def run_check(officer: Admin, customer: Customer, amount: str) -> tuple[bool, str, list[str]]:
    verdict = require_success(
        await officer.post(
            "compliance/check",
            subscriber_id=customer.id,
            amount=amount,
            transaction_type="transfer_p2p",
        )
    )
    codes = [violation["code"] for violation in verdict["violations"]]
    return verdict["allowed"], verdict["risk_level"], codes


async def test_held_payment_is_released_rejected_or_returned(
    ada: Admin, deployment: Deployment
) -> None:
    officer = await ada.create_admin("Isata", "C")
    app = await ada.create_app()
    aminata = await ada.create_funded_customer("100.00", app, "Aminata Kamara")
    mohamed = await ada.create_funded_customer("100.00", app, "Mohamed Sesay")
    bank = await ada.create_partner()
    await ada.fund_partner(bank, HIGH_BALANCE)

    require_success(await ada.put(f"subscribers/{mohamed.id}", language="fr"))

    # KYC level 1 is too low for the amount, so the officer raises the level of both customers.
    response = await bank.top_up(HIGH_BALANCE, aminata, "house")
    assert require_error(response) == (403, "MAX_BALANCE_EXCEEDED")
    response = await app.put(f"subscribers/{aminata.id}", kyc_level=3)
    assert require_error(response) == (403, "FORBIDDEN")
    for customer in (aminata, mohamed):
        url = f"subscribers/{customer.id}"
        raised = require_success(await officer.put(url, kyc_level=3, kyc_status="VERIFIED"))
        assert (raised["kyc_level"], raised["kyc_status"]) == (3, "VERIFIED")
    require_success(await bank.top_up(HIGH_BALANCE, aminata, "house"))

    # 500,000 is accepted. Larger amounts are held and available to neither customer.
    require_success(await aminata.send_money("500000.00", mohamed))
    assert await run_check(officer, aminata, "600000") == (True, "HIGH", ["AMOUNT_THRESHOLD"])
    first = require_success(await aminata.send_money("600000.00", mohamed, request_id="first-part"))
    assert (first["status"], first["fee_amount"]) == ("under_review", "3,000.00 SLE")
    assert first["sender_new_balance"] == "1,392,100.00 SLE"
    second = require_success(await aminata.send_money("500000.01", mohamed, memo="the rest"))
    assert second["status"] == "under_review"
    assert await aminata.get_funds() == ("889599.99", "1105500.01")
    assert await mohamed.get_funds() == ("500100.00", "0.00")
    response = await aminata.send_money("400000.00", mohamed)  # holds count toward the limit
    assert require_error(response) == (403, "DAILY_LIMIT_EXCEEDED")
    assert require_error_details(response)["used"] == "1600000.01"
    # A replay returns the held payment.
    again = require_success(await aminata.send_money("600000.00", mohamed, request_id="first-part"))
    assert again == first

    # Each held payment has an alert.
    alerts = await officer.list_all(
        "compliance/alerts", status="open", severity="HIGH", subscriber_id=aminata.id
    )
    by_transaction = {alert["transaction_id"]: alert for alert in alerts}
    assert set(by_transaction) == {first["transaction_id"], second["transaction_id"]}
    url = f"compliance/alerts/{by_transaction[first['transaction_id']]['id']}"
    alert = require_success(await officer.post(f"{url}/investigate", note="asked for the deed"))[
        "alert"
    ]
    assert alert["status"] == "investigating"
    resolution = {"status": "resolved", "resolution_notes": "The deed is genuine"}
    response = await officer.post(f"{url}/resolve", **resolution)
    assert require_error(response) == (422, "VALIDATION_FAILED")

    # A release credits the recipient and charges the fee. Each payment can be decided only once.
    response = await officer.post(f"{url}/resolve", **resolution, transaction_decision="release")
    assert require_success(response)["alert"]["resolved_by"] == officer.id
    response = await officer.post(f"{url}/resolve", **resolution, transaction_decision="reject")
    assert require_error(response) == (409, "ALREADY_RESOLVED")
    assert await mohamed.get_funds() == ("1100100.00", "0.00")
    assert await aminata.get_funds() == ("889599.99", "502500.01")
    # Both customers are notified, each in their language.
    actual = await deployment.wait_for_messages(aminata.phone, "payment_released")
    assert actual == [["600,000.00 SLE", "to Mohamed S.", first["transaction_id"]]]
    released = await deployment.wait_for_messages(mohamed.phone, "payment_released")
    sender = "(expéditeur\u00a0: Aminata K.)"
    assert released == [["600\u00a0000,00\u00a0SLE", sender, first["transaction_id"]]]

    # A rejection returns the funds and the daily limit.
    url = f"compliance/alerts/{by_transaction[second['transaction_id']]['id']}"
    require_success(
        await officer.post(
            f"{url}/resolve",
            status="resolved",
            resolution_notes="No reason given",
            transaction_decision="reject",
        )
    )
    assert await aminata.get_funds() == ("1392100.00", "0.00")
    assert await mohamed.get_funds() == ("1100100.00", "0.00")
    history = {line["id"]: line for line in await app.list_transactions(aminata.id)}
    shown = [
        (
            history[payment["transaction_id"]]["status"],
            history[payment["transaction_id"]]["fee_amount"],
        )
        for payment in (first, second)
    ]
    assert shown == [("completed", "3000.00"), ("failed", "0.00")]
    for customer in (aminata, mohamed):
        ((_, _, transaction_id),) = await deployment.wait_for_messages(
            customer.phone, "payment_rejected"
        )
        assert transaction_id == second["transaction_id"]
    require_success(await aminata.send_money("400000.00", mohamed))

    # A lower threshold applies to the next payment.
    large = await find_rule(officer, "Large amount")
    assert await run_check(officer, aminata, "250000.00") == (True, "LOW", [])
    changed = require_success(
        await officer.put(f"compliance/rules/{large['id']}", threshold="200000")
    )
    assert changed["threshold"] == "200000.00"
    assert await run_check(officer, aminata, "250000.00") == (True, "HIGH", ["AMOUNT_THRESHOLD"])
    third = require_success(await aminata.send_money("250000.00", mohamed))
    assert third["status"] == "under_review"
    # If the recipient is blocked, a released payment fails and returns to the sender.
    require_success(await officer.post(f"subscribers/{mohamed.id}/block", reason="another matter"))
    (alert,) = await officer.list_all(
        "compliance/alerts", status="open", severity="HIGH", subscriber_id=aminata.id
    )
    response = await officer.post(
        f"compliance/alerts/{alert['id']}/resolve", **resolution, transaction_decision="release"
    )
    assert "SUBSCRIBER_BLOCKED" in require_success(response)["message"]
    failed = require_success(await app.get(f"transactions/{third['transaction_id']}"))
    assert (failed["status"], failed["failure_code"]) == ("failed", "SUBSCRIBER_BLOCKED")
    require_success(await officer.post(f"subscribers/{mohamed.id}/unblock", reason="cleared up"))
    assert await aminata.get_funds() == ("988100.00", "0.00")

    for customer in (aminata, mohamed):
        found = sum_history(await app.list_transactions(customer.id))
        expected = Decimal(await customer.get_balance())
        assert found == expected
