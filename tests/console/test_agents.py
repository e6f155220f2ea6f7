"""Agents on pages: trees with their float, low floats, hostile names, and who may do what."""

from collections.abc import Awaitable, Callable
from urllib.parse import parse_qsl

import pytest

from console.visitor import Visitor, Visitors, request_id_in, says
from world import World

HOSTILE = "<script>alert(1)</script>"

Register = Callable[..., Awaitable[str]]


@pytest.fixture
def register(ada: Visitor, world: World) -> Register:
    """A new agent's identifier, by the form."""

    async def new(name: str, parent: str | None = None, **fields: str) -> str:
        kind = "super_agent" if parent is None else "sub_agent"
        form = {"agent_type": kind, "name": name, "phone_number": world.phone(), "pin": "2639"}
        if parent is not None:
            form["parent_agent_id"] = parent
        act = "agent.register" if parent is None else "agent.register_sub"
        done = await ada.act(act, {**form, "commission_tier": "1", **fields})
        assert "HX-Redirect" in done.headers, done.text
        return done.headers["HX-Redirect"].removeprefix("/console/agents/")

    return new


async def test_a_tree_adds_up(ada: Visitor, register: Register) -> None:
    top = await register("Mariama Conteh")
    for name, amount in (("Alie Bangura", "250.50"), ("Isha Turay", "1000")):
        sub_agent = await register(name, top)
        await ada.act("agent.fund", {"amount": amount}, id=sub_agent)
    await ada.act("agent.fund", {"amount": "3000"}, id=top)
    shown = await ada.page("/console/agents")
    assert "2 sub-agents" in shown
    assert "3,000.00 SLE" in shown and "4,250.50 SLE" in shown
    assert "4,250.50 SLE" in await ada.page(f"/console/agents/{top}")


async def test_what_is_asked_for_comes_as_a_list(ada: Visitor, register: Register) -> None:
    top = await register("Mariama Conteh")
    await register("Alie Bangura", top)
    other = await register("Sorie Kamara")
    found = await ada.part(f"/console/agents?parent_agent_id={top}")
    assert "Alie Bangura" in found.text and "Sorie Kamara" not in found.text
    assert "<html" not in found.text
    found = await ada.part("/console/agents?search=alie")
    assert "Alie Bangura" in found.text and "Mariama Conteh" not in found.text
    await ada.act("agent.suspend", {"reason": "On leave"}, id=other)
    found = await ada.part("/console/agents?status=suspended")
    assert found.text.count("<tr>") == 2, "the head and one row"
    assert "Sorie Kamara" in found.text


async def test_more_trees_are_items_of_the_list_that_is_there(
    ada: Visitor, register: Register
) -> None:
    for number in range(21):
        await register(f"Agent {number}")
    first = await ada.page("/console/agents")
    assert "Agent 20" in first and '"/console/agents/' in first and ">Agent 0<" not in first
    cursor = first.partition("cursor=")[2].partition('"')[0]
    more = await ada.part(f"/console/agents?cursor={cursor}")
    assert ">Agent 0<" in more.text and "<ul" not in more.text


async def test_a_low_float_is_said(ada: Visitor, register: Register) -> None:
    agent = await register("Mariama Conteh")
    page = f"/console/agents/{agent}"
    assert "The float is below 1,000 SLE" in await ada.page(page)
    assert "Low float" in await ada.page("/console/agents")
    await ada.act("agent.fund", {"amount": "1000"}, id=agent)
    assert "The float is below" not in await ada.page(page)
    assert "Low float" not in await ada.page("/console/agents")


async def test_float_is_passed_on(ada: Visitor, register: Register) -> None:
    top = await register("Mariama Conteh")
    sub_agent = await register("Alie Bangura", top)
    await ada.act("agent.fund", {"amount": "500"}, id=top)
    order = {"from_agent_id": top, "to_agent_id": sub_agent, "amount": "200"}
    wrong = await ada.act("agent.transfer", {**order, "pin": "1111"})
    assert 'role="alert"' in wrong.text and not says(wrong.text, "1111")
    assert "HX-Redirect" in (await ada.act("agent.transfer", {**order, "pin": "2639"})).headers
    shown = await ada.page(f"/console/agents/{sub_agent}")
    assert "200.00 SLE" in shown and "Mariama Conteh" in shown


async def test_states(ada: Visitor, register: Register) -> None:
    agent = await register("Mariama Conteh")
    page = f"/console/agents/{agent}"
    await ada.page(page)
    await ada.act("agent.suspend", {"reason": "On leave"}, id=agent)
    assert "agent.fund" not in await ada.page(page), "nothing to offer that would be refused"
    await ada.act("agent.activate", id=agent)
    await ada.act("agent.terminate", {"reason": "Moved away"}, id=agent)
    shown = await ada.page(page)
    assert "The agent is terminated." in shown and "/console/acts/agent" not in shown


async def test_names_are_text(ada: Visitor, register: Register) -> None:
    top = await register(HOSTILE, business_name=HOSTILE, address=HOSTILE)
    await register(HOSTILE, top)
    for path in ("/console/agents", "/console/agents?status=active", f"/console/agents/{top}"):
        answer = await ada.get(path)
        assert answer.status_code == 200
        assert "&lt;script&gt;alert(1)" in answer.text and "<script>alert" not in answer.text


async def test_who_may_what(visitors: Visitors, register: Register) -> None:
    page = f"/console/agents/{await register('Mariama Conteh')}"
    support, finance = await visitors.of("S"), await visitors.of("F")
    assert "/console/acts/" not in await support.page(page)
    seen = await finance.page(page)
    assert "agent.fund" in seen and "agent.suspend" not in seen
    assert (await support.part("/console/acts/agent.register")).status_code == 403


async def test_an_agent_that_is_not_there(ada: Visitor) -> None:
    assert (await ada.get("/console/agents/agt_0800000000000")).status_code == 404
    assert (await ada.get("/console/agents?cursor=nonsense")).status_code == 422


async def _pass_on(ada: Visitor, form: str, request_id: str, amount: str, pin: str) -> str:
    """What is shown then; empty when it is done."""
    fields = {"request_id": request_id, "amount": amount, "pin": pin}
    names = dict(parse_qsl(form.partition("?")[2]))
    return (await ada.post_part(form, {**names, **fields})).text


async def test_what_was_declined_can_be_corrected(ada: Visitor, register: Register) -> None:
    top = await register("Mariama Conteh")
    sub = await register("Alie Bangura", top)
    await ada.act("agent.fund", {"amount": "100"}, id=top)
    form = f"/console/acts/agent.transfer?from_agent_id={top}&to_agent_id={sub}"
    first = request_id_in((await ada.part(form)).text)
    shown = await _pass_on(ada, form, first, "500", "2639")
    assert "Insufficient float" in shown
    corrected = request_id_in(shown)
    assert await _pass_on(ada, form, corrected, "60", "2639") == ""
    assert ">60.00 SLE<" in await ada.page(f"/console/agents/{sub}")


async def test_what_may_have_been_done_is_never_done_under_another_name(
    ada: Visitor, register: Register
) -> None:
    """The answer is lost, and somebody types something else into the form that is still there."""
    top = await register("Mariama Conteh")
    sub = await register("Alie Bangura", top)
    await ada.act("agent.fund", {"amount": "100"}, id=top)
    form = f"/console/acts/agent.transfer?from_agent_id={top}&to_agent_id={sub}"
    own = request_id_in((await ada.part(form)).text)
    assert await _pass_on(ada, form, own, "10", "2639") == ""
    for amount, pin in (("20", "2639"), ("ten", "2639"), ("20", "25"), ("500", "2639")):
        assert request_id_in(await _pass_on(ada, form, own, amount, pin)) == own, (amount, pin)
    assert ">10.00 SLE<" in await ada.page(f"/console/agents/{sub}")
