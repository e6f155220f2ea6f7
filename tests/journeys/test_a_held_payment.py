"""A compliance officer: large payments held until she has looked at them, and somebody who pays
too often."""

from decimal import Decimal

from journeys.adding_up import worth
from journeys.caller import Record, details, done, refused
from journeys.people import Customer
from journeys.staff import Admin

RICH = "2500000.00"


async def rule_named(officer: Admin, name: str) -> Record:
    rules = done(await officer.get("compliance/rules"))["data"]
    (found,) = [rule for rule in rules if rule["name"] == name]
    return dict(found)


async def check(officer: Admin, customer: Customer, amount: str) -> tuple[bool, str, list[str]]:
    verdict = done(
        await officer.post(
            "compliance/check",
            subscriber_id=customer.id,
            amount=amount,
            transaction_type="transfer_p2p",
        )
    )
    codes = [violation["code"] for violation in verdict["violations"]]
    return verdict["allowed"], verdict["risk_level"], codes


async def test_a_held_payment(ada: Admin) -> None:
    officer = await ada.hire("Isata", "C")
    app = await ada.app()
    aminata = await ada.customer_with("100.00", app, "Aminata Kamara")
    mohamed = await ada.customer_with("100.00", app, "Mohamed Sesay")
    bank = await ada.partner()
    await ada.fund_partner(bank, RICH)

    # She wants to sell a house. Level 1 is too small for that; the officer raises both.
    answer = await bank.top_up(RICH, aminata, "house")
    assert refused(answer) == (403, "MAX_BALANCE_EXCEEDED")
    answer = await app.put(f"subscribers/{aminata.id}", kyc_level=3)
    assert refused(answer) == (403, "FORBIDDEN")
    for customer in (aminata, mohamed):
        url = f"subscribers/{customer.id}"
        raised = done(await officer.put(url, kyc_level=3, kyc_status="VERIFIED"))
        assert (raised["kyc_level"], raised["kyc_status"]) == (3, "VERIFIED")
    done(await bank.top_up(RICH, aminata, "house"))

    # Half a million goes through. One cent more is held: hers no longer to spend, his not yet.
    done(await aminata.send("500000.00", mohamed))
    assert await check(officer, aminata, "600000") == (True, "HIGH", ["AMOUNT_THRESHOLD"])
    first = done(await aminata.send("600000.00", mohamed, request_id="first-part"))
    assert (first["status"], first["fee_amount"]) == ("under_review", "3,000.00 SLE")
    assert first["sender_new_balance"] == "1,392,100.00 SLE"
    second = done(await aminata.send("500000.01", mohamed, memo="the rest"))
    assert second["status"] == "under_review"
    assert await aminata.funds() == ("889599.99", "1105500.01")
    assert await mohamed.funds() == ("500100.00", "0.00")
    answer = await aminata.send("400000.00", mohamed)  # the day's limit counts what is held
    assert refused(answer) == (403, "DAILY_LIMIT_EXCEEDED")
    assert details(answer)["used"] == "1600000.01"
    # Asked again, the held one is still the held one.
    again = done(await aminata.send("600000.00", mohamed, request_id="first-part"))
    assert again == first

    # Two alerts, one for each. She looks into them.
    alerts = await officer.everything(
        "compliance/alerts", status="open", severity="HIGH", subscriber_id=aminata.id
    )
    by_transaction = {alert["transaction_id"]: alert for alert in alerts}
    assert set(by_transaction) == {first["transaction_id"], second["transaction_id"]}
    url = f"compliance/alerts/{by_transaction[first['transaction_id']]['id']}"
    alert = done(await officer.post(f"{url}/investigate", note="asked for the deed"))["alert"]
    assert alert["status"] == "investigating"
    resolution = {"status": "resolved", "resolution_notes": "The deed is genuine"}
    answer = await officer.post(f"{url}/resolve", **resolution)
    assert refused(answer) == (422, "VALIDATION_FAILED")

    # One is released: his at once, with the fee paid. It is decided once.
    answer = await officer.post(f"{url}/resolve", **resolution, transaction_decision="release")
    assert done(answer)["alert"]["resolved_by"] == officer.id
    answer = await officer.post(f"{url}/resolve", **resolution, transaction_decision="reject")
    assert refused(answer) == (409, "ALREADY_RESOLVED")
    assert await mohamed.funds() == ("1100100.00", "0.00")
    assert await aminata.funds() == ("889599.99", "502500.01")

    # The other is rejected: hers again, and the day's limit too.
    url = f"compliance/alerts/{by_transaction[second['transaction_id']]['id']}"
    done(
        await officer.post(
            f"{url}/resolve",
            status="resolved",
            resolution_notes="No reason given",
            transaction_decision="reject",
        )
    )
    assert await aminata.funds() == ("1392100.00", "0.00")
    assert await mohamed.funds() == ("1100100.00", "0.00")
    history = {line["id"]: line for line in await app.history(aminata.id)}
    assert history[first["transaction_id"]]["status"] == "completed"
    assert history[second["transaction_id"]]["status"] == "failed"
    done(await aminata.send("400000.00", mohamed))

    # From now on less than that is looked at.
    large = await rule_named(officer, "Large amount")
    assert await check(officer, aminata, "250000.00") == (True, "LOW", [])
    changed = done(await officer.put(f"compliance/rules/{large['id']}", threshold="200000"))
    assert changed["threshold"] == "200000.00"
    assert await check(officer, aminata, "250000.00") == (True, "HIGH", ["AMOUNT_THRESHOLD"])
    third = done(await aminata.send("250000.00", mohamed))
    assert third["status"] == "under_review"
    # He is blocked meanwhile: what is released cannot arrive, and comes back to her.
    done(await officer.post(f"subscribers/{mohamed.id}/block", reason="another matter"))
    (alert,) = await officer.everything("compliance/alerts", status="open", severity="HIGH")
    answer = await officer.post(
        f"compliance/alerts/{alert['id']}/resolve", **resolution, transaction_decision="release"
    )
    assert "SUBSCRIBER_BLOCKED" in done(answer)["message"]
    failed = done(await app.get(f"transactions/{third['transaction_id']}"))
    assert (failed["status"], failed["failure_code"]) == ("failed", "SUBSCRIBER_BLOCKED")
    done(await officer.post(f"subscribers/{mohamed.id}/unblock", reason="cleared up"))
    assert await aminata.funds() == ("988100.00", "0.00")

    for customer in (aminata, mohamed):
        assert worth(await app.history(customer.id)) == Decimal(await customer.balance())


async def test_somebody_who_pays_too_often(ada: Admin) -> None:
    officer = await ada.hire("Isata", "C")
    app = await ada.app()
    ibrahim = await ada.customer_with("1000.00", app, "Ibrahim Sesay")
    till = (await ada.merchant()).server

    # After ten in an hour somebody is told; each further one is noted on the same alert.
    for _ in range(10):
        done(await till.pay("1.00", ibrahim.card))
    assert await officer.everything("compliance/alerts", subscriber_id=ibrahim.id) == []
    for _ in range(10):
        done(await till.pay("1.00", ibrahim.card))
    (alert,) = await officer.everything("compliance/alerts", subscriber_id=ibrahim.id)
    assert (alert["status"], alert["severity"], alert["occurrences"]) == ("open", "MEDIUM", 10)

    # The twenty-first of the day is refused. He himself is not touched.
    assert refused(await till.pay("1.00", ibrahim.card)) == (403, "COMPLIANCE_REJECTED")
    allowed, _, codes = await check(officer, ibrahim, "1.00")
    assert not allowed
    assert "COMPLIANCE_REJECTED" in codes
    assert (await ibrahim.record())["status"] == "ACTIVE"
    assert await ibrahim.balance() == "980.00"

    # The officer talks to him and lets people pay more often.
    daily = await rule_named(officer, "Many in a day")
    done(await officer.put(f"compliance/rules/{daily['id']}", threshold=30))
    done(await till.pay("1.00", ibrahim.card))
    watched = {"status": "open", "subscriber_id": ibrahim.id}
    for alert in await officer.everything("compliance/alerts", **watched):
        done(
            await officer.post(
                f"compliance/alerts/{alert['id']}/resolve",
                status="false_positive",
                resolution_notes="Sells newspapers",
            )
        )
    assert await officer.everything("compliance/alerts", **watched) == []
    assert worth(await app.history(ibrahim.id)) == Decimal("979.00")
