"""Compliance watches incoming cash: rules about payers, payees and agents."""

from typing import Any

from drivers.actors import Admin, Record, require_error, require_error_details, require_success

DAY_SECONDS = 86_400


async def create_rule(officer: Admin, **fields: Any) -> Record:
    rule = {"type": "AMOUNT_THRESHOLD", "action": "alert", "severity": "HIGH", **fields}
    return require_success(await officer.post("compliance/rules", **rule))


async def list_alerts(officer: Admin, rule: Record) -> list[Record]:
    alerts = await officer.list_all("compliance/alerts", status="open")
    return [alert for alert in alerts if alert["rule_id"] == rule["id"]]


async def test_compliance_watches_incoming_cash_with_its_own_rules(local_admin: Admin) -> None:
    ada = local_admin
    officer = await ada.create_admin("Isata", "C")
    counter = await ada.create_app()
    agent = await ada.create_agent(counter, "Sesay Agency")
    rival = await ada.create_agent(counter, "Koroma Agency")
    for holder in (agent, rival):
        await ada.fund_agent(holder, "5000.00")
    bank = await ada.create_partner()
    await ada.fund_partner(bank, "5000.00")
    aminata = await counter.register_customer("Aminata Kamara")
    mohamed = await counter.register_customer("Mohamed Sesay")

    # A rule that can never match is refused, and the error names the field.
    impossible = {"name": "Impossible", "threshold": "1"}
    for subject, kind in (
        ("payer", "agent_cashin"),
        ("payee", "agent_cashout"),
        ("agent", "partner_fund"),
    ):
        response = await officer.post(
            "compliance/rules",
            **impossible,
            type="AMOUNT_THRESHOLD",
            subject=subject,
            transaction_types=[kind],
            action="alert",
        )
        assert require_error(response) == (422, "VALIDATION_FAILED")
        assert list(require_error_details(response)["fields"]) == ["transaction_types"]

    # One large cash-in or top-up raises an alert about the customer who receives it.
    incoming = ["agent_cashin", "partner_fund"]
    large = await create_rule(
        officer, name="Large", subject="payee", transaction_types=incoming, threshold="300.00"
    )
    # Several smaller ones from different sources add up.
    split = await create_rule(
        officer,
        name="Split deposits",
        type="CUMULATIVE_AMOUNT",
        subject="payee",
        transaction_types=incoming,
        threshold="500.00",
        window_seconds=DAY_SECONDS,
    )
    busy = await create_rule(
        officer,
        name="Agent's cash",
        type="CUMULATIVE_AMOUNT",
        subject="agent",
        transaction_types=["agent_cashin", "agent_cashout"],
        threshold="700.00",
        window_seconds=DAY_SECONDS,
    )
    require_success(await agent.cash_in("250.00", aminata))
    require_success(await bank.top_up("250.00", aminata, "SB-1"))
    assert [await list_alerts(officer, rule) for rule in (large, split, busy)] == [[], [], []]
    require_success(await rival.cash_in("0.01", aminata))
    (alert,) = await list_alerts(officer, split)
    assert (alert["subscriber_id"], alert["details"]["figure"]) == (aminata.id, "500.01")
    assert (alert["alert_type"], alert["severity"]) == ("CUMULATIVE_AMOUNT", "HIGH")
    require_success(await bank.top_up("300.01", mohamed, "SB-2"))
    (alert,) = await list_alerts(officer, large)
    assert alert["subscriber_id"] == mohamed.id

    # The agent's rule counts cash in both directions, and its alert names the agent.
    require_success(await agent.cash_in("300.00", mohamed))
    require_success(await agent.cash_out("150.00", aminata))
    assert await list_alerts(officer, busy) == []
    require_success(await agent.cash_out("0.50", aminata))
    (alert,) = await list_alerts(officer, busy)
    assert alert["subscriber_id"] is None
    assert alert["details"]["agent_id"] == agent.id

    # The officer changes a rule: from now on, the cash-in is refused and no money moves.
    url = f"compliance/rules/{split['id']}"
    response = await officer.put(url, subject="agent")  # agents take no part in top-ups
    assert list(require_error_details(response)["fields"]) == ["subject"]
    changed = require_success(await officer.put(url, action="block", threshold="600.00"))
    assert (changed["action"], changed["threshold"]) == ("block", "600.00")
    before = await aminata.get_balance()
    response = await rival.cash_in("100.00", aminata)
    assert require_error(response) == (403, "COMPLIANCE_REJECTED")
    assert await aminata.get_balance() == before
    require_success(await rival.cash_in("99.99", aminata))

    # Other roles only read. After the deletion, cash flows again and the alerts remain.
    clerk = await ada.create_admin("Osman", "S")
    assert require_error(await clerk.delete(url)) == (403, "FORBIDDEN")
    assert (await officer.delete(url)).status_code == 204
    assert require_error(await officer.get(url)) == (404, "RULE_NOT_FOUND")
    require_success(await rival.cash_in("100.00", aminata))
    by_customer = {alert["subscriber_id"]: alert for alert in await list_alerts(officer, split)}
    assert set(by_customer) == {aminata.id, mohamed.id}
    resolution = {"status": "resolved", "resolution_notes": "Salary in three parts"}
    for alert in by_customer.values():
        url = f"compliance/alerts/{alert['id']}/resolve"
        require_success(await officer.post(url, **resolution))
    assert await list_alerts(officer, split) == []
