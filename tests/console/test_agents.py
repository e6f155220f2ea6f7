"""Agent pages: trees with float totals, low-float warnings, escaping and permissions."""

from collections.abc import Awaitable, Callable
from urllib.parse import parse_qsl

import pytest

from console.console_client import ConsoleClient, ConsoleClients, contains_digits, parse_request_id
from harness import Harness

XSS_PAYLOAD = "<script>alert(1)</script>"

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
    assert (
        "HX-Redirect"
        in (await ada.submit_action("agent.transfer", {**body, "pin": "2639"})).headers
    )
    text = await ada.get_page_text(f"/console/agents/{sub_agent}")
    assert "200.00 SLE" in text and "Mariama Conteh" in text


async def test_offered_actions_follow_the_agent_status(
    ada: ConsoleClient, register_agent: RegisterAgent
) -> None:
    agent = await register_agent("Mariama Conteh")
    page = f"/console/agents/{agent}"
    await ada.get_page_text(page)
    await ada.submit_action("agent.suspend", {"reason": "On leave"}, id=agent)
    assert "agent.fund" not in await ada.get_page_text(page), (
        "an action that the API would reject is offered"
    )
    await ada.submit_action("agent.activate", id=agent)
    await ada.submit_action("agent.terminate", {"reason": "Moved away"}, id=agent)
    text = await ada.get_page_text(page)
    assert "Agent terminated." in text and "/console/actions/agent" not in text


async def test_agent_names_are_escaped(ada: ConsoleClient, register_agent: RegisterAgent) -> None:
    top = await register_agent(XSS_PAYLOAD, business_name=XSS_PAYLOAD, address=XSS_PAYLOAD)
    await register_agent(XSS_PAYLOAD, top)
    for path in ("/console/agents", "/console/agents?status=active", f"/console/agents/{top}"):
        response = await ada.get(path)
        assert response.status_code == 200
        assert "&lt;script&gt;alert(1)" in response.text and "<script>alert" not in response.text


async def test_actions_are_offered_by_role(
    console_clients: ConsoleClients, register_agent: RegisterAgent
) -> None:
    page = f"/console/agents/{await register_agent('Mariama Conteh')}"
    support, finance = (
        await console_clients.create_signed_in("S"),
        await console_clients.create_signed_in("F"),
    )
    assert "/console/actions/" not in await support.get_page_text(page)
    text = await finance.get_page_text(page)
    assert "agent.fund" in text and "agent.suspend" not in text
    assert (await support.get_partial("/console/actions/agent.register")).status_code == 403


async def test_unknown_agent_is_404_and_invalid_cursor_is_422(ada: ConsoleClient) -> None:
    assert (await ada.get("/console/agents/agt_0800000000000")).status_code == 404
    assert (await ada.get("/console/agents?cursor=nonsense")).status_code == 422


async def _transfer_float(
    ada: ConsoleClient, form: str, request_id: str, amount: str, pin: str
) -> str:
    """Submit a float transfer and return the response text, which is empty on success."""
    fields = {"request_id": request_id, "amount": amount, "pin": pin}
    hidden_fields = dict(parse_qsl(form.partition("?")[2]))
    return (await ada.post_partial(form, {**hidden_fields, **fields})).text


async def test_declined_transfer_gets_a_new_request_id_and_can_be_corrected(
    ada: ConsoleClient, register_agent: RegisterAgent
) -> None:
    top = await register_agent("Mariama Conteh")
    sub = await register_agent("Alie Bangura", top)
    await ada.submit_action("agent.fund", {"amount": "100"}, id=top)
    form = f"/console/actions/agent.transfer?from_agent_id={top}&to_agent_id={sub}"
    first = parse_request_id((await ada.get_partial(form)).text)
    text = await _transfer_float(ada, form, first, "500", "2639")
    assert "Insufficient float" in text
    corrected = parse_request_id(text)
    assert await _transfer_float(ada, form, corrected, "60", "2639") == ""
    assert ">60.00 SLE<" in await ada.get_page_text(f"/console/agents/{sub}")


async def test_completed_transfer_keeps_its_request_id_when_the_form_is_resubmitted(
    ada: ConsoleClient, register_agent: RegisterAgent
) -> None:
    """Simulates a lost response, after which the user edits and resubmits the open form."""
    top = await register_agent("Mariama Conteh")
    sub = await register_agent("Alie Bangura", top)
    await ada.submit_action("agent.fund", {"amount": "100"}, id=top)
    form = f"/console/actions/agent.transfer?from_agent_id={top}&to_agent_id={sub}"
    request_id = parse_request_id((await ada.get_partial(form)).text)
    assert await _transfer_float(ada, form, request_id, "10", "2639") == ""
    for amount, pin in (("20", "2639"), ("ten", "2639"), ("20", "25"), ("500", "2639")):
        assert (
            parse_request_id(await _transfer_float(ada, form, request_id, amount, pin))
            == request_id
        ), (
            amount,
            pin,
        )
    assert ">10.00 SLE<" in await ada.get_page_text(f"/console/agents/{sub}")
