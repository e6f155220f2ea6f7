"""Agent pages: trees with float totals, low-float warnings, escaping and permissions."""

from collections.abc import Awaitable, Callable

import pytest

from drivers.console import ConsoleClient, contains_digits
from harness import Harness

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
