"""Compliance pages: the alert queue, review decisions, rules and compliance checks."""

import itertools
from typing import Any

import pytest

from builders.card_proofs import create_signing_pos, list_clone_alerts, tap
from builders.held_transfers import DECISION, create_held_transfer
from builders.participants import cash_in, create_agent
from builders.payments import get_rules_by_name, list_alerts, update_rule
from drivers.console import ConsoleClient, ConsoleClients
from harness import WRONG_PIN, Harness
from tapgate.business.compliance.alerts.model import SUPPORT_REQUEST
from tapgate.ledger.card_proofs.rejected_taps import CLONE_ALERT_TYPE
from tapgate.ledger.pins.wrong_pins import PIN_GUESSING_ALERT_TYPE
from tapgate.sites.console.pages.compliance_rules import (
    CHANGE_ACTIONS,
    CREATE_ACTIONS,
    describe_rule,
)
from tapgate.sites.console.translation.translator import Language, get_translator
from tapgate_client.schemas.compliance import RuleType

QUEUE_URL = "/console/compliance"
XSS_PAYLOAD = "<script>alert(1)</script>"


@pytest.fixture
async def officer(console_clients: ConsoleClients) -> ConsoleClient:
    return await console_clients.create_signed_in("C")


async def get_available_balance(harness: Harness, subscriber: dict[str, Any]) -> str:
    url = f"/api/v1/balance/{subscriber['id']}"
    response = await harness.get(url, auth=harness.get_service_auth())
    return str(response.json()["available"])


async def test_held_transfer_is_shown_and_can_be_released(
    officer: ConsoleClient, harness: Harness
) -> None:
    payer = await harness.create_subscriber_with_old_name(XSS_PAYLOAD, balance="500")
    receiver = await harness.create_subscriber(first_name="Mohamed")
    alert = await create_held_transfer(harness, payer, receiver)
    queue = (await officer.get(QUEUE_URL)).text
    assert alert in queue and "100.00 SLE" in queue and "Large amount" in queue
    for path in ("", "/timeline"):
        text = (await officer.get(f"/console/subscribers/{payer['id']}{path}")).text
        assert "Large amount" in text and "Amount threshold" not in text
    page = f"{QUEUE_URL}/alerts/{alert}"
    page_text = (await officer.get(page)).text
    for text in (queue, page_text):
        assert "<script>alert" not in text and "&lt;script&gt;alert(1)" in text
    assert "Payment over 50.00 SLE: hold for review." in page_text
    assert page_text.count("Mohamed Kamara hasn't received it") == 1
    assert "Release payment" in page_text and "Reject payment" in page_text
    assert "/console/actions/alert.resolve" not in page_text

    response = await officer.submit_action("alert.investigate", {"note": "Called them"}, id=alert)
    assert response.headers["HX-Redirect"] == page
    assert alert not in (await officer.get(QUEUE_URL)).text
    assert alert in (await officer.get(f"{QUEUE_URL}?status=investigating")).text
    page_text = await officer.get_page_text(page)
    assert "Investigation</dt>" in page_text and "Called them</span>" in page_text

    await officer.submit_action(
        "alert.release", DECISION | {"transaction_decision": "release"}, id=alert
    )
    page_text = await officer.get_page_text(page)
    assert "The transaction was released" in page_text
    assert "Asked for the deed" in page_text and "Release payment" not in page_text
    assert await get_available_balance(harness, receiver) == "100.00"


async def test_rejecting_a_held_transfer_requires_notes_and_releases_the_hold(
    officer: ConsoleClient, harness: Harness
) -> None:
    payer = await harness.create_subscriber(balance="500")
    receiver = await harness.create_subscriber()
    alert = await create_held_transfer(harness, payer, receiver)
    assert await get_available_balance(harness, payer) == "400.00"
    await officer.get(f"{QUEUE_URL}/alerts/{alert}")
    rejected = await officer.submit_action(
        "alert.reject", {"transaction_decision": "reject"}, id=alert
    )
    assert 'aria-invalid="true"' in rejected.text and "alert" in rejected.text
    await officer.submit_action(
        "alert.reject", DECISION | {"transaction_decision": "reject"}, id=alert
    )
    assert await get_available_balance(harness, payer) == "500.00"
    assert await get_available_balance(harness, receiver) == "0.00"


async def test_failed_release_is_shown_with_the_reason(
    officer: ConsoleClient, harness: Harness
) -> None:
    payer = await harness.create_subscriber(balance="500")
    receiver = await harness.create_subscriber()
    alert = await create_held_transfer(harness, payer, receiver)
    await harness.post(
        f"/api/v1/subscribers/{receiver['id']}/block",
        json={"reason": "another matter"},
        auth=await harness.create_admin(),
    )
    page = f"{QUEUE_URL}/alerts/{alert}"
    await officer.get(page)
    await officer.submit_action(
        "alert.release", DECISION | {"transaction_decision": "release"}, id=alert
    )
    assert "could not be released (customer not active)" in await officer.get_page_text(page)


async def test_held_transfer_of_a_restricted_payer_is_masked_and_can_be_released(
    officer: ConsoleClient, harness: Harness
) -> None:
    payer = await harness.create_subscriber(balance="500", first_name="Secretive")
    receiver = await harness.create_subscriber()
    alert = await create_held_transfer(harness, payer, receiver)
    await harness.put(
        f"/api/v1/subscribers/{payer['id']}",
        json={"restricted": True},
        auth=await harness.create_admin(),
    )
    for path in (QUEUE_URL, f"{QUEUE_URL}/alerts/{alert}"):
        text = await officer.get_page_text(path)
        assert payer["id"] in text and "Secretive" not in text
        assert payer["phone_number"] not in text
    assert "Release payment" in text
    await officer.submit_action(
        "alert.release", DECISION | {"transaction_decision": "release"}, id=alert
    )
    assert await get_available_balance(harness, receiver) == "100.00"


async def test_alert_without_a_transaction_is_resolved_without_a_transaction_decision(
    officer: ConsoleClient, harness: Harness
) -> None:
    # A service's alert may contain details that imitate a rule alert's details.
    details = {"action": "review", "figure": {"a": XSS_PAYLOAD}, XSS_PAYLOAD: [XSS_PAYLOAD]}
    body = {"alert_type": XSS_PAYLOAD, "details": details}
    url = "/api/v1/compliance/alerts"
    response = await harness.post(url, json=body, auth=harness.get_service_auth())
    alert = response.json()["alert_id"]
    text = (await officer.get(f"{QUEUE_URL}/alerts/{alert}")).text
    assert "<script>alert" not in text and "Release payment" not in text
    await officer.submit_action("alert.resolve", DECISION | {"status": "false_positive"}, id=alert)
    assert alert in (await officer.get(f"{QUEUE_URL}?status=false_positive")).text
    assert alert not in (await officer.get(QUEUE_URL)).text
    assert alert in (await officer.get(f"{QUEUE_URL}?status=all&severity=MEDIUM")).text


#: Detail names in alerts that Tapgate raises.
_DETAIL_NAMES = (
    *("action", "agent_id", "attempts", "card_serial", "counter", "credential", "figure"),
    *("processor_id", "reason", "rule_type", "terminal_id", "terminal_name", "transaction_type"),
    *("uid", "window_seconds", "wrong_pins"),
)
_MALFORMED_VALUES = (None, "", "²", "9" * 4000, XSS_PAYLOAD, 1.5, True, ["review"], {"review": 1})


@pytest.mark.parametrize("alert_type", ["by hand", CLONE_ALERT_TYPE, PIN_GUESSING_ALERT_TYPE])
async def test_malformed_alert_details_do_not_break_the_page(
    officer: ConsoleClient, harness: Harness, alert_type: str
) -> None:
    """A service can create an alert with any detail, and without the details that belong to it."""
    for name, value in itertools.product(_DETAIL_NAMES, _MALFORMED_VALUES):
        response = await harness.post(
            "/api/v1/compliance/alerts",
            json={"alert_type": alert_type, "details": {name: value}},
            auth=harness.get_service_auth(),
        )
        assert response.status_code == 201, response.text
        page = await officer.get(f"{QUEUE_URL}/alerts/{response.json()['alert_id']}")
        assert page.status_code == 200, (name, value)
        assert "<script>alert" not in page.text


async def test_alert_of_every_type_is_shown_with_and_without_notes(
    officer: ConsoleClient, harness: Harness
) -> None:
    pos, chip = await create_signing_pos(harness, balance="100")
    terminal, proof = await pos.create_terminal(), tap(chip)
    for _ in range(2):
        await pos.pay("10", card_proof=proof, terminal_id=terminal)
    for _ in range(7):
        customer = await harness.create_subscriber()
        card = await harness.create_card(customer["id"])
        for _ in range(3):
            await pos.pay("1", card_serial=card, pin=WRONG_PIN, terminal_id=terminal)
    payer = await harness.create_subscriber(balance="500")
    await create_held_transfer(harness, payer, await harness.create_subscriber())
    for alert_type in (*RuleType, SUPPORT_REQUEST):
        response = await harness.post(
            "/api/v1/compliance/alerts",
            json={"alert_type": alert_type, "details": {}, "subscriber_id": payer["id"]},
            auth=harness.get_service_auth(),
        )
        assert response.status_code == 201, response.text
    alerts = await list_alerts(harness)
    assert {alert["alert_type"] for alert in alerts} == {
        *(CLONE_ALERT_TYPE, PIN_GUESSING_ALERT_TYPE, SUPPORT_REQUEST),
        *RuleType,
    }
    for alert in alerts:
        page = f"{QUEUE_URL}/alerts/{alert['id']}"
        text = await officer.get_page_text(page)
        assert alert["id"] in text and "Investigation</dt>" not in text
        if alert["alert_type"] == CLONE_ALERT_TYPE:
            assert terminal in text and "Rejected taps of cards" in text
        if alert["alert_type"] == PIN_GUESSING_ALERT_TYPE:
            assert "Till</dd>" in text and "Wrong PINs per key" in text
        await officer.submit_action("alert.investigate", {"note": "Called them"}, id=alert["id"])
        assert "Called them</span>" in await officer.get_page_text(page)


async def test_rule_can_be_changed_and_deactivated(
    officer: ConsoleClient, harness: Harness
) -> None:
    text = await officer.get_page_text(f"{QUEUE_URL}/rules")
    assert "More than 20 payments in a day: decline and alert." in text
    rule = (await get_rules_by_name(harness))["Daily velocity"]
    form = {
        "name": "Very many",
        "threshold": "30",
        "window_seconds": "7200",
        "action": "review",
        "severity": "LOW",
        "transaction_types": ["transfer", "pos_payment"],
    }
    response = await officer.get_partial(f"/console/actions/rule.count?id={rule['id']}")
    assert 'value="Daily velocity"' in response.text and response.text.count(" checked") == 4
    await officer.submit_action("rule.count", form, id=rule["id"])
    text = await officer.get_page_text(f"{QUEUE_URL}/rules")
    assert "More than 30 payments in 2 hours: hold for review." in text
    response = await officer.get_partial(f"/console/actions/rule.count?id={rule['id']}")
    assert '<option value="7200" selected>2 hours</option>' in response.text
    await officer.submit_action("rule.deactivate", {"status": "inactive"}, id=rule["id"])
    changed = (await get_rules_by_name(harness))["Very many"]
    assert (changed["status"], changed["transaction_types"]) == (
        "inactive",
        ["transfer", "pos_payment"],
    )
    rejected = await officer.submit_action(
        "rule.count", form | {"threshold": "many"}, id=rule["id"]
    )
    assert "Very many" in rejected.text and 'aria-invalid="true"' in rejected.text


async def test_every_default_rule_has_a_description_for_every_action(harness: Harness) -> None:
    rules = (await get_rules_by_name(harness)).values()
    assert {rule["type"] for rule in rules} <= set(CHANGE_ACTIONS)
    english = get_translator(Language.EN)
    for action in ("alert", "review", "block"):
        for rule in rules:
            assert describe_rule(rule | {"action": action}, english).endswith(".")
    busy = (await get_rules_by_name(harness))["Busy agent"]
    other_rule = describe_rule(busy, english)
    assert other_rule == "More than 200 transactions by one agent in a day: allow and alert."
    other_rule = describe_rule(busy, get_translator(Language.FR))
    expected = "Plus de 200 transactions par un même agent en un jour\u00a0: autoriser et alerter."
    assert other_rule == expected
    total = {"type": "CUMULATIVE_AMOUNT", "threshold": "2500.00", "currency": "SLE"}
    total["subject"] = "payer"
    other_rule = describe_rule(total | {"window_seconds": 172_800, "action": "block"}, english)
    assert other_rule == "More than 2,500.00 SLE sent in 2 days: decline and alert."


async def test_rule_is_created_and_deleted(officer: ConsoleClient, harness: Harness) -> None:
    form: dict[str, Any] = {
        "name": "Large cash-in",
        "type": "AMOUNT_THRESHOLD",
        "subject": "payee",
        "threshold": "250",
        "action": "block",
        "severity": "LOW",
        "transaction_types": ["agent_cashin"],
    }
    await officer.get(f"{QUEUE_URL}/rules")
    rejected = await officer.submit_action("rule.new_amount", form | {"subject": "payer"})
    assert 'aria-invalid="true"' in rejected.text or 'role="alert"' in rejected.text
    await officer.submit_action("rule.new_amount", form)
    rule = (await get_rules_by_name(harness))["Large cash-in"]
    assert (rule["subject"], rule["threshold"], rule["action"]) == ("payee", "250.00", "block")
    text = await officer.get_page_text(f"{QUEUE_URL}/rules")
    assert "Incoming payment over 250.00 SLE: decline and alert." in text
    await officer.submit_action("rule.delete", {}, id=rule["id"])
    assert "Large cash-in" not in {*await get_rules_by_name(harness)} - {"Large cash-in or top-up"}
    for action in CREATE_ACTIONS:
        assert (await officer.get_partial(f"/console/actions/{action.name}")).status_code == 200


async def test_agent_alert_links_to_the_agent_even_after_its_rule_is_deleted(
    officer: ConsoleClient, harness: Harness
) -> None:
    await update_rule(harness, "Busy agent", threshold=0)
    agent, customer = await create_agent(harness, balance="50"), await harness.create_subscriber()
    assert (await cash_in(harness, agent, customer, "20")).is_success
    link = f'href="/console/agents/{agent["id"]}"'
    queue = await officer.get_page_text(QUEUE_URL)
    assert link in queue
    response = await harness.get("/api/v1/compliance/alerts", auth=await harness.create_admin("C"))
    page = f"{QUEUE_URL}/alerts/{response.json()['data'][0]['id']}"
    assert link in await officer.get_page_text(page)
    await officer.submit_action(
        "rule.delete", {}, id=(await get_rules_by_name(harness))["Busy agent"]["id"]
    )
    text = await officer.get_page_text(page)
    assert link in text and "Deleted" in text
    assert link in await officer.get_page_text(QUEUE_URL)


async def test_compliance_check_shows_the_expected_outcome(
    officer: ConsoleClient, harness: Harness
) -> None:
    person = await harness.create_subscriber(balance="500")
    payment = {"subscriber_id": person["id"], "transaction_type": "transfer_p2p"}
    response = await officer.submit_action("compliance.check", payment | {"amount": "10"})
    assert "Payment would be allowed" in response.text
    response = await officer.submit_action("compliance.check", payment | {"amount": "70000"})
    assert "Payment would be declined" in response.text
    assert "Per-transaction limit exceeded." in response.text
    response = await officer.submit_action("compliance.check", payment | {"amount": "x"})
    assert 'role="alert"' in response.text


async def test_clone_alert_tells_the_story_and_draws_the_counters(
    officer: ConsoleClient, harness: Harness
) -> None:
    pos, card = await create_signing_pos(harness)
    used = tap(card)
    assert (await pos.pay("10", card_serial=None, card_proof=used)).status_code == 200
    assert (await pos.pay("10", card_serial=None, card_proof=tap(card))).status_code == 200
    assert (await pos.pay("40", card_serial=None, card_proof=used)).status_code == 409
    (alert,) = await list_clone_alerts(harness)
    text = await officer.get_page_text(f"{QUEUE_URL}/alerts/{alert['id']}")
    assert "Someone tapped a copy of " in text and "at Shop" in text
    assert 'class="tap-chart"' in text and "Recent activity" in text
