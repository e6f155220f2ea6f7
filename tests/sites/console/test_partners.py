"""Pages of partners, processors and agents: secrets shown once, funding and permissions."""

import re
from collections.abc import Awaitable, Callable

import pytest

from drivers.console import ConsoleClient, ConsoleClients, contains_digits
from harness import Harness


async def _create_partner(ada: ConsoleClient, name: str = "Sierra Bank") -> tuple[str, str]:
    """Create a partner and return its ID and the response text."""
    created = await ada.submit_action("partner.create", {"name": name, "overdraft_limit": "100"})
    match = re.search(r'href="/console/partners/(ptn_\w+)"', created.text)
    assert match is not None, created.text
    return match[1], created.text


async def test_secrets_of_a_new_partner_are_shown_once(ada: ConsoleClient) -> None:
    partner, response_text = await _create_partner(ada)
    copied = re.findall(r'data-copy="([^"]+)"', response_text)
    assert copied[0] == partner and len(copied) == 4
    text = await ada.get_page_text(f"/console/partners/{partner}")
    assert "Sierra Bank" in text and "100.00 SLE" in text
    assert not any(secret in text for secret in copied[2:])
    assert f"/api/v1/webhooks/partners/{partner}" in text


async def test_resubmitted_funding_form_funds_the_partner_once(ada: ConsoleClient) -> None:
    partner, _ = await _create_partner(ada)
    page = f"/console/partners/{partner}"
    await ada.get_page_text(page)
    address = f"/console/actions/partner.fund?id={partner}"
    response = await ada.get_partial(address)
    request_id = response.text.partition('name="request_id" value="')[2].partition('"')[0]
    for _ in range(2):
        response = await ada.post_partial(address, {"amount": "2500", "request_id": request_id})
        assert response.headers["HX-Redirect"] == page
    # After a lost response, the user may edit the form: it keeps its request ID.
    for amount in ("20", "twenty"):
        response = await ada.post_partial(address, {"amount": amount, "request_id": request_id})
        assert f'name="request_id" value="{request_id}"' in response.text
    text = await ada.get_page_text(page)
    assert "2,500.00 SLE" in text and "5,000.00 SLE" not in text and "2,520.00 SLE" not in text


async def test_partner_can_be_suspended_and_activated(ada: ConsoleClient) -> None:
    partner, _ = await _create_partner(ada)
    page = f"/console/partners/{partner}"
    await ada.get_page_text(page)
    await ada.submit_action("partner.suspend", {"reason": "Contract ended"}, id=partner)
    text = await ada.get_page_text(page)
    assert "Partner suspended." in text and "partner.fund" not in text
    for query in ("status=suspended", "search=sierra"):
        assert "Sierra Bank" in (await ada.get_partial(f"/console/partners?{query}")).text
    for query in ("status=active", "search=rokel"):
        assert "No partners match" in (await ada.get_partial(f"/console/partners?{query}")).text
    await ada.submit_action("partner.activate", id=partner)
    assert "Partner activated." in await ada.get_page_text(page)


async def test_signing_keys_can_be_created_and_deleted_and_secrets_are_shown_once(
    ada: ConsoleClient,
) -> None:
    partner, _ = await _create_partner(ada)
    page = f"/console/partners/{partner}"
    (old,) = re.findall(r"api_key_id=(key_\w+)", await ada.get_page_text(page))
    created = await ada.submit_action("partner.key", id=partner)
    new, secret = re.findall(r'data-copy="([^"]+)"', created.text)
    text = await ada.get_page_text(page)
    assert old in text and new in text and secret not in text
    text = await ada.get_page_text(f"{page}/keys")
    assert new in text and "X-Partner-ID" in text and "Replace a key without downtime" in text
    await ada.submit_action("partner.delete_key", id=partner, api_key_id=old)
    assert re.findall(r"api_key_id=(key_\w+)", await ada.get_page_text(page)) == [new]
    await ada.submit_action("partner.delete_key", id=partner, api_key_id=new)
    assert "No signing keys" in await ada.get_page_text(page)


async def test_rotated_webhook_secret_is_shown_once(ada: ConsoleClient) -> None:
    partner, response_text = await _create_partner(ada)
    rotated = await ada.submit_action(
        "partner.rotate_webhook_secret", {"grace_seconds": "86400"}, id=partner
    )
    (secret,) = re.findall(r'data-copy="([^"]+)"', rotated.text)
    assert secret not in response_text
    assert secret not in await ada.get_page_text(f"/console/partners/{partner}")


def _list_copyable_values(response_text: str) -> list[str]:
    """Return the IDs and secrets that have a copy button."""
    return re.findall(r'data-copy="([^"]+)"', response_text)


async def _create_processor(
    ada: ConsoleClient, harness: Harness, name: str = "Kamara Stores"
) -> str:
    form = {"name": name, "phone_number": harness.new_phone_number(), "email": "shop@example.com"}
    created = await ada.submit_action("processor.create", form)
    return _list_copyable_values(created.text)[0]


async def test_secret_of_a_new_processor_is_shown_once(
    ada: ConsoleClient, harness: Harness
) -> None:
    form = {
        "name": "Kamara Stores",
        "phone_number": harness.new_phone_number(),
        "email": "shop@example.com",
    }
    created = await ada.submit_action("processor.create", form)
    processor, key, secret = _list_copyable_values(created.text)
    assert processor.startswith("prc_") and key.startswith("key_") and len(secret) > 30
    page = f"/console/processors/{processor}"
    assert f'href="{page}"' in created.text, "the link to the merchant page is missing"
    text = await ada.get_page_text(page)
    assert key in text and secret not in text


async def test_terminal_keys_can_be_added_and_deleted_and_the_terminal_blocked(
    ada: ConsoleClient, harness: Harness
) -> None:
    processor = await _create_processor(ada, harness)
    page = f"/console/processors/{processor}"
    added = await ada.submit_action("terminal.add", {"name": "Till 1"}, id=processor)
    terminal, key, _ = _list_copyable_values(added.text)
    assert terminal.startswith("ter_") and f'href="{page}"' in added.text
    second_key = await ada.submit_action(
        "terminal.key", {"terminal_id": terminal}, id=processor, terminal_id=terminal
    )
    newest = _list_copyable_values(second_key.text)[0]
    text = await ada.get_page_text(page)
    assert newest in text and text.count("Till 1</td>") == 3, "the keys of the terminal"
    await ada.submit_action("processor.delete_key", id=processor, api_key_id=key)
    assert key not in await ada.get_page_text(page)
    await ada.submit_action("terminal.block", id=processor, terminal_id=terminal)
    text = await ada.get_page_text(page)
    assert "Terminal blocked." in text and "terminal.unblock" in text
    assert "Till 1" in await ada.get_page_text(f"{page}/terminals")
    assert newest in await ada.get_page_text(f"{page}/keys")


async def test_terminals_and_keys_are_shown_only_to_system_admins(
    console_clients: ConsoleClients, ada: ConsoleClient, harness: Harness
) -> None:
    page = f"/console/processors/{await _create_processor(ada, harness)}"
    for role in "CSF":
        other = await console_clients.create_signed_in(role)
        text = await other.get_page_text(page)
        assert "Kamara Stores" in text
        assert "Terminals" not in text and "Signing keys" not in text
        assert ("processor.suspend" in text) is (role == "C")
        assert (await other.get(f"{page}/keys")).status_code == 403
        assert (await other.get_partial("/console/actions/processor.key")).status_code == 403


async def test_suspended_processor_shows_the_reason(ada: ConsoleClient, harness: Harness) -> None:
    processor = await _create_processor(ada, harness)
    page = f"/console/processors/{processor}"
    await ada.get_page_text(page)
    await ada.submit_action("processor.suspend", {"reason": "Chargebacks"}, id=processor)
    text = await ada.get_page_text(page)
    assert "Reason: Chargebacks" in text and "processor.activate" in text
    response = await ada.get_partial("/console/processors?status=suspended")
    assert response.text.count("<tr>") == 1


RegisterAgent = Callable[..., Awaitable[str]]


@pytest.fixture
def register_agent(ada: ConsoleClient, harness: Harness) -> RegisterAgent:
    """Return a function that registers an agent with the form and returns the agent's ID."""

    async def register(name: str, parent: str | None = None, **fields: str) -> str:
        kind = "super_agent" if parent is None else "sub_agent"
        form = {
            "agent_type": kind,
            "name": name,
            "phone_number": harness.new_phone_number(),
            "pin": "2639",
        }
        if parent is not None:
            form["parent_agent_id"] = parent
        action_name = "agent.register" if parent is None else "agent.register_sub"
        response = await ada.submit_action(action_name, {**form, "commission_tier": "1", **fields})
        assert "HX-Redirect" in response.headers, response.text
        return response.headers["HX-Redirect"].removeprefix("/console/agents/")

    return register


async def test_agent_tree_shows_the_total_float_of_an_agent_and_its_sub_agents(
    ada: ConsoleClient, register_agent: RegisterAgent
) -> None:
    top = await register_agent("Mariama Conteh")
    for name, amount in (("Alie Bangura", "250.50"), ("Isha Turay", "1000")):
        sub_agent = await register_agent(name, top)
        await ada.submit_action("agent.fund", {"amount": amount}, id=sub_agent)
    await ada.submit_action("agent.fund", {"amount": "3000"}, id=top)
    text = await ada.get_page_text("/console/agents")
    assert "2 sub-agents" in text
    assert "3,000.00 SLE" in text and "4,250.50 SLE" in text
    assert "4,250.50 SLE" in await ada.get_page_text(f"/console/agents/{top}")


async def test_agent_page_shows_the_delivery_of_the_last_code(
    ada: ConsoleClient, register_agent: RegisterAgent
) -> None:
    page = f"/console/agents/{await register_agent('Mariama Conteh')}"
    assert "None sent in the last 30 days" in await ada.get_page_text(page)
    await ada.submit_action("agent.reset_pin", id=page.rpartition("/")[2])
    text = await ada.get_page_text(page)
    assert "None sent in the last 30 days" not in text and "Queued" in text


async def test_filtered_agents_are_returned_as_a_flat_list(
    ada: ConsoleClient, register_agent: RegisterAgent
) -> None:
    top = await register_agent("Mariama Conteh")
    await register_agent("Alie Bangura", top)
    other = await register_agent("Sorie Kamara")
    response = await ada.get_partial(f"/console/agents?parent_agent_id={top}")
    assert "Alie Bangura" in response.text and "Sorie Kamara" not in response.text
    assert "<html" not in response.text
    response = await ada.get_partial("/console/agents?search=alie")
    assert "Alie Bangura" in response.text and "Mariama Conteh" not in response.text
    await ada.submit_action("agent.suspend", {"reason": "On leave"}, id=other)
    response = await ada.get_partial("/console/agents?status=suspended")
    assert response.text.count("<tr>") == 2, "the header and one row"
    assert "Sorie Kamara" in response.text


async def test_next_page_of_agent_trees_contains_only_list_items(
    ada: ConsoleClient, register_agent: RegisterAgent
) -> None:
    for number in range(21):
        await register_agent(f"Agent {number}")
    first = await ada.get_page_text("/console/agents")
    assert "Agent 20" in first and '"/console/agents/' in first and ">Agent 0<" not in first
    cursor = first.partition("cursor=")[2].partition('"')[0]
    more = await ada.get_partial(f"/console/agents?cursor={cursor}")
    assert ">Agent 0<" in more.text and "<ul" not in more.text


async def test_float_below_1000_is_flagged_until_it_is_funded(
    ada: ConsoleClient, register_agent: RegisterAgent
) -> None:
    agent = await register_agent("Mariama Conteh")
    page = f"/console/agents/{agent}"
    assert "Float is below 1,000 SLE" in await ada.get_page_text(page)
    assert "Low float" in await ada.get_page_text("/console/agents")
    await ada.submit_action("agent.fund", {"amount": "1000"}, id=agent)
    assert "Float is below" not in await ada.get_page_text(page)
    assert "Low float" not in await ada.get_page_text("/console/agents")


async def test_float_transfer_requires_the_pin(
    ada: ConsoleClient, register_agent: RegisterAgent
) -> None:
    top = await register_agent("Mariama Conteh")
    sub_agent = await register_agent("Alie Bangura", top)
    await ada.submit_action("agent.fund", {"amount": "500"}, id=top)
    body = {"from_agent_id": top, "to_agent_id": sub_agent, "amount": "200"}
    rejected = await ada.submit_action("agent.transfer", {**body, "pin": "1111"})
    assert 'role="alert"' in rejected.text and not contains_digits(rejected.text, "1111")
    response = await ada.submit_action("agent.transfer", {**body, "pin": "2639"})
    assert "HX-Redirect" in response.headers
    text = await ada.get_page_text(f"/console/agents/{sub_agent}")
    assert "200.00 SLE" in text and "Mariama Conteh" in text


async def test_offered_actions_follow_the_agent_status(
    ada: ConsoleClient, register_agent: RegisterAgent
) -> None:
    agent = await register_agent("Mariama Conteh")
    page = f"/console/agents/{agent}"
    await ada.get_page_text(page)
    await ada.submit_action("agent.suspend", {"reason": "On leave"}, id=agent)
    page_text = await ada.get_page_text(page)
    assert "agent.fund" not in page_text, "an action that the API would reject is offered"
    await ada.submit_action("agent.activate", id=agent)
    await ada.submit_action("agent.terminate", {"reason": "Moved away"}, id=agent)
    text = await ada.get_page_text(page)
    assert "Agent terminated." in text and "/console/actions/agent" not in text


async def test_agent_can_be_edited_with_the_current_values_prefilled(
    ada: ConsoleClient, register_agent: RegisterAgent
) -> None:
    agent = await register_agent("Mariama Conteh", address="1 Old Road")
    form = await ada.get_partial(f"/console/actions/agent.update?id={agent}")
    assert 'value="1 Old Road"' in form.text and 'name="pin"' not in form.text
    values = {"address": "9 Kissy Road", "commission_tier": "3", "name": ""}
    response = await ada.submit_action("agent.update", values, id=agent)
    assert "HX-Redirect" in response.headers, response.text
    text = await ada.get_page_text(f"/console/agents/{agent}")
    assert "Agent updated." in text and "9 Kissy Road" in text and "Mariama Conteh" in text
    response = await ada.submit_action("agent.update", {"email": "nobody"}, id=agent)
    assert "Fix the highlighted fields" in response.text


async def test_support_sends_an_agent_a_reset_code(
    ada: ConsoleClient,
    console_clients: ConsoleClients,
    register_agent: RegisterAgent,
    harness: Harness,
) -> None:
    phone_number = harness.new_phone_number()
    agent = await register_agent("Mariama Conteh", phone_number=phone_number)
    support = await console_clients.create_signed_in("S")
    text = await support.get_page_text(f"/console/agents/{agent}")
    assert "agent.reset_pin" in text and "agent.update" not in text
    await support.submit_action("agent.reset_pin", id=agent)
    code = await harness.get_pending_code(phone_number)
    text = await support.get_page_text(f"/console/agents/{agent}")
    assert "The agent sets the new PIN in chat." in text and not contains_digits(text, code)
    again = await support.submit_action("agent.reset_pin", id=agent)
    assert "Too many one-time codes" in again.text
