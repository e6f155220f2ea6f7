"""Approvals in the console: held forms, the inbox, decisions, the banner and the rules."""

import html
import re

import httpx2

from builders.approvals import RULES_URL, build_rule, require_held, set_rules
from builders.card_proofs import create_keyset
from builders.participants import create_agent, get_balances
from drivers.console import ConsoleClient, ConsoleClients
from harness import Harness


async def test_held_form_is_approved_from_the_inbox(
    ada: ConsoleClient, console_clients: ConsoleClients, harness: Harness
) -> None:
    rules_page = await ada.get_page_text("/console/approvals/rules")
    assert "Use the recommended rules" in rules_page
    alone = await ada.post_form("/console/approvals/rules", {"recommended": "yes"})
    assert alone.status_code == 422
    (problem,) = re.findall(r"<strong>Not saved.</strong>(.*?)</p>", alone.text)
    # One sentence for each set of roles, not one for each of 25 operations.
    assert problem.count("can approve requests of") == 4 and len(problem) < 600
    assert "with the role System admin or Finance can approve" in problem
    assert "Add administrators." in problem
    await harness.create_admin()
    saved = await ada.post_form("/console/approvals/rules", {"recommended": "yes"})
    assert saved.status_code == 303, saved.text
    assert len((await harness.get(RULES_URL, auth=await harness.create_admin())).json()["data"]) > 9
    agent = await create_agent(harness)
    fund = {"amount": "250"}
    asked = await ada.submit_action("agent.fund", fund, id=agent["id"])
    assert (asked.headers["HX-Retarget"], "HX-Redirect" in asked.headers) == (
        "find [data-step-up]",
        False,
    )
    assert 'name="approval_reason"' in asked.text
    assert "Nothing waits for approval" in await ada.get_page_text("/console/approvals")
    fund["approval_reason"] = "Weekend stock for 12 agents"
    sent = await ada.submit_action("agent.fund", fund, id=agent["id"])
    path = sent.headers["HX-Redirect"]
    own = await ada.get_page_text(path)
    assert "Sent for approval" in own
    assert "Cancel request" in own
    assert "Waits for 1 approval by System admin or Finance, other than you." in own
    listed = await ada.get_page_text("/console/approvals")
    assert '<span class="badge">you</span>' in listed and 'data-label="Expires"' in listed
    assert "approval.approve" not in own
    approver = await console_clients.create_signed_in("F")
    listed = await approver.get_page_text("/console/approvals")
    assert "250.00" in listed and '<span class="badge">you</span>' not in listed
    page = await approver.get_page_text(path)
    assert "approval.approve" in page
    assert "Waits for 1 approval by System admin or Finance. Expires" in page
    assert "Weekend stock for 12 agents" in page
    banner_path = f"/console/approvals/banner?resource_id={agent['id']}"
    assert html.escape(banner_path) in (await approver.get(f"/console/agents/{agent['id']}")).text
    banner = (await approver.get_partial(banner_path)).text
    assert "A change waits for approval" in banner and "Weekend stock" in banner
    approval_id = path.rpartition("/")[2]
    await approver.submit_action("approval.approve", id=approval_id)
    assert (await get_balances(harness, agent))[0] == "250.00"
    executed = await ada.get_page_text(path)
    assert "Executed" in executed
    assert "approval.cancel" not in executed


async def test_rule_change_is_sent_for_approval(
    ada: ConsoleClient, console_clients: ConsoleClients
) -> None:
    approver = await console_clients.create_signed_in("F")
    await console_clients.create_signed_in("F")
    form = {"roles_agent_fund": ["finance_user"], "above_agent_fund": "100"}
    assert (await ada.post_form("/console/approvals/rules", form)).status_code == 303
    form_page = await ada.get_page_text("/console/approvals/rules/edit")
    assert 'value="100.00"' in form_page
    assert "1 of 11 need approval" in form_page and "0 of 5 need approval" in form_page
    assert form_page.count('class="rule-group" open') == 1
    held = await ada.post_form("/console/approvals/rules", {})
    assert held.headers["Location"].startswith("/console/approvals/apr_")
    changes = await approver.get_page_text(held.headers["Location"])
    assert "Operation: Float top-up; Above: 100.00 SLE; Roles: Finance" in changes
    assert "; Expires after: 1 day" in changes
    french = await approver.get(held.headers["Location"], **{"Accept-Language": "fr"})
    assert "Au-dessus de\N{NO-BREAK SPACE}: 100,00\N{NO-BREAK SPACE}SLE" in french.text
    assert "Expire après\N{NO-BREAK SPACE}: 1 jour" in french.text
    wrong = await ada.post_form(
        "/console/approvals/rules", {"roles_agent_fund": ["finance_user"], "above_agent_fund": "x"}
    )
    assert wrong.status_code == 422
    problem = "Not saved. Float top-up: above must be a decimal number such as 500.00."
    assert problem in _read(wrong.text)


async def test_fee_change_shows_its_effect_and_waits_on_limits_and_fees(
    ada: ConsoleClient, console_clients: ConsoleClients, harness: Harness
) -> None:
    await set_rules(harness, build_rule("fee_rules"), build_rule("commission_rules"))
    form = {"payer": "sender", "rate_last": "1", "maximum_last": "5"}
    assert "HX-Retarget" in (await submit_fee(ada, form)).headers
    sent = await submit_fee(ada, form | {"approval_reason": "New price list"})
    path = sent.headers["HX-Redirect"]
    approver = await console_clients.create_signed_in("F")
    page = _read(await approver.get_page_text(path))
    assert "New price list" in page
    assert "Cash-out of 100.00 SLE Before: 0.00 → After: 1.00" in page
    assert "Cash-out of 1,000.00 SLE Before: 0.00 → After: 5.00" in page  # the maximum
    limits = await approver.get_page_text("/console/limits")
    banner_path = "/console/approvals/banner?page=/console/limits"
    assert banner_path in limits
    banner = _read((await approver.get_partial(banner_path)).text)
    assert "A change waits for approval: Change the fee rules of Cash-out" in banner
    settings = await approver.get_partial("/console/approvals/banner?page=/console/settings")
    assert "A change waits" not in settings.text


async def test_commission_change_shows_its_effect(ada: ConsoleClient, harness: Harness) -> None:
    await set_rules(harness, build_rule("commission_rules"))
    rules_url, maker = "/api/v1/commission-rules", await harness.create_admin()
    current = (await harness.get(rules_url, auth=maker)).json()["data"]
    rule = {"type": "agent_cashin", "tier": 1, "rate": "2", "minimum_amount": "0"}
    others = [each for each in current if (each["type"], each["tier"]) != ("agent_cashin", 1)]
    body = {"data": [rule, *others]}
    held = (await harness.put(rules_url, json=body, auth=maker)).json()["approval"]
    page = _read(await ada.get_page_text(f"/console/approvals/{held['id']}"))
    assert "Cash-in, commission tier 1 of 100.00 SLE Before:" in page
    assert "→ After: 2.00" in page
    assert "commission tier 2" not in page


async def submit_fee(client: ConsoleClient, form: dict[str, str]) -> httpx2.Response:
    path = "/console/limits/fees/agent_cashout"
    shown = await client.get_partial(path)
    seen = re.search(r'name="seen" value="([^"]+)"', shown.text)
    assert seen is not None, shown.text
    return await client.post_partial(path, {"seen": seen[1], **form})


async def test_rules_are_sentences_with_the_people_who_could_approve_today(
    ada: ConsoleClient, console_clients: ConsoleClients, harness: Harness
) -> None:
    await set_rules(harness, build_rule("agent_fund", roles=["finance_user"], above="1500.00"))
    record = (await harness.get(RULES_URL, auth=await harness.create_admin("F"))).json()
    for reader in (ada, await console_clients.create_signed_in("C")):
        page = _read(await reader.get_page_text("/console/approvals/rules"))
        sentence = "Float top-up above 1,500.00 SLE must be approved by 1 person with the role"
        assert f"{sentence} Finance" in page
        assert f"Today: {', '.join(record['people'][0]['names'])}" in page
        assert "cannot be approved" not in page
        assert "One admin can do this alone: Partner top-up" in page


async def test_rules_warn_if_too_few_people_could_approve(
    ada: ConsoleClient, harness: Harness
) -> None:
    await harness.database.execute(
        """INSERT INTO approval_rules (id, operation, roles, approvers, expires_in)
           VALUES (1, 'keysets', '{finance_user}', 1, 86400)"""
    )
    page = _read(await ada.get_page_text("/console/approvals/rules"))
    assert "Keysets must be approved by 1 person with the role Finance Requests of" in page
    assert "cannot be approved: 0 of 1 people are available" in page


def _read(page: str) -> str:
    """Return the words on a page."""
    return " ".join(re.sub(r"<[^>]*>", " ", page).split())


async def test_keyset_forms_say_that_they_were_sent_for_approval(
    ada: ConsoleClient, harness: Harness
) -> None:
    keyset = await create_keyset(harness)
    await set_rules(harness, build_rule("keysets"))
    for action, form, parameters in (
        ("keyset.create", {"name": "Bureau"}, {}),
        ("keyset.rotate", {"name": keyset["name"]}, {}),
        ("keyset.retire", {"cards": "0"}, {"id": keyset["id"]}),
    ):
        reason = {"approval_reason": "New card bureau"}
        sent = await ada.submit_action(action, form | reason, **parameters)
        shown = await ada.get_page_text(sent.headers["HX-Redirect"])
        assert "Sent for approval" in shown, action
        assert "created." not in shown and "retired." not in shown
    (only,) = (
        await harness.get("/api/v1/cards/keysets", auth=await harness.create_admin())
    ).json()["data"]
    assert only["status"] == "active"


async def test_request_that_empties_a_list_is_shown(ada: ConsoleClient, harness: Harness) -> None:
    key = await harness.create_api_key("payments:write")
    await set_rules(harness, build_rule("api_keys"))
    body = {"name": "Shop 2", "allowed_ips": []}
    held = await harness.put(
        f"/api/v1/admin/api-keys/{key.id}", json=body, auth=await harness.create_admin()
    )
    assert held.status_code == 202, held.text
    page = await ada.get_page_text(f"/console/approvals/{held.json()['approval']['id']}")
    assert "Shop 2" in page


async def test_request_about_a_restricted_customer_is_shown_masked(
    ada: ConsoleClient, harness: Harness
) -> None:
    customer = await harness.create_subscriber(balance="50")
    processor = await harness.create_processor()
    await set_rules(harness, build_rule("subscriber_phone"), build_rule("wallet_transfer"))
    maker = await harness.create_admin()
    transfer = {
        "from_account_id": customer["account_id"],
        "to_account_id": await harness.get_account_id(processor),
        "amount": "1",
        "description": "Rent",
    }
    held = [
        require_held(await harness.post("/api/v1/wallet/transfer", json=transfer, auth=maker)),
        require_held(
            await harness.put(
                f"/api/v1/subscribers/{customer['id']}",
                json={"phone_number": "+23276123499"},
                auth=maker,
            )
        ),
    ]
    await harness.database.execute("UPDATE subscribers SET restricted = true")
    for approval in held:
        page = await ada.get_page_text(f"/console/approvals/{approval['id']}")
        assert "Personal data hidden" in page
        assert "Rent" not in page and "+23276123499" not in page
        assert "approval.approve" not in page and "approval.reject" in page
        blind = await ada.submit_action("approval.approve", id=approval["id"])
        assert "The values are hidden" in blind.text
