"""Limits and fees on pages: changed as they are shown, and none of them lost on the way."""

import re
from typing import Any

from console.visitor import Visitor, Visitors
from tapgate.console.pages.limits import CHARGED_TYPES
from tapgate.ledger import chart
from tapgate.wallets.fee_rules import model
from world import World

PAGE = "/console/limits"
P2P = f"{PAGE}/fees/transfer_p2p"


async def fees(world: World) -> list[dict[str, Any]]:
    answer = await world.client.get("/api/v1/fee-rules", auth=await world.admin())
    found: list[dict[str, Any]] = answer.json()["data"]
    return found


async def filled(visitor: Visitor, path: str) -> dict[str, str]:
    """The form of a fee, as it is there before anybody has typed."""
    text = (await visitor.part(path)).text
    found = dict(re.findall(r'name="(\w+)"[^>]* value="([^"]*)"', text))
    chosen = re.findall(r'<option value="(\w+)"( selected)?', text)
    payer = next((name for name, selected in chosen if selected), chosen[0][0])
    return {**found, "payer": payer}


def test_everything_that_may_cost_something_can_be_given_a_fee() -> None:
    assert set(CHARGED_TYPES) == set(chart.TRANSACTION_TYPES) - set(model._FEE_EXEMPT_REASONS)


async def test_a_level_is_changed(ada: Visitor, world: World) -> None:
    asked = await ada.part("/console/acts/limits.level_1?kyc_level=1")
    assert 'value="50000.00"' in asked.text and ">phone_number</textarea>" in asked.text
    form = {
        "max_balance": "500000",
        "max_transaction": "123.45",
        "daily_limit": "1000",
        "monthly_limit": "2000",
        "no_pin_limit": "0",
        "requirements": "phone_number\r\n selfie \r\n\r\n",
    }
    refused = await ada.act("limits.level_1", form | {"monthly_limit": "1"}, kyc_level="1")
    assert "A day&#39;s limit is within the month&#39;s" in refused.text
    await ada.act("limits.level_1", form, kyc_level="1")
    assert "123.45" in await ada.page(PAGE)
    answer = await world.client.get("/api/v1/account-rules/1", auth=await world.admin())
    assert answer.json()["requirements"] == ["phone_number", "selfie"]
    assert answer.json()["no_pin_limit"] == "0.00"


async def test_a_fee_that_is_sent_as_it_was_shown_changes_nothing(
    ada: Visitor, world: World
) -> None:
    before = await fees(world)
    for kind in {step["type"] for step in before}:
        path = f"{PAGE}/fees/{kind}"
        answer = await ada.post_part(path, await filled(ada, path))
        assert answer.headers["HX-Redirect"] == PAGE
    assert await fees(world) == before


async def test_a_step_is_added_and_another_left_out(ada: Visitor, world: World) -> None:
    others = [step for step in await fees(world) if step["type"] != "transfer_p2p"]
    form = await filled(ada, P2P)
    assert (form["up_to_0"], form["rate_0"], form["rate_last"]) == ("50000.00", "1.5", "0.5")
    form |= {"up_to_0": "", "rate_0": "", "up_to_2": "900000", "rate_2": "0.75"}
    await ada.post_part(P2P, form | {"payer": "receiver"})
    now = await fees(world)
    assert [step for step in now if step["type"] != "transfer_p2p"] == others
    assert [
        (step["up_to"], step["rate"], step["payer"])
        for step in now
        if step["type"] == "transfer_p2p"
    ] == [
        ("500000.00", "1", "receiver"),
        ("900000.00", "0.75", "receiver"),
        (None, "0.5", "receiver"),
    ]


async def test_what_is_wrong_is_said_where_it_is(ada: Visitor, world: World) -> None:
    before = await fees(world)
    form = await filled(ada, P2P)
    for change, marked in (
        ({"rate_last": ""}, "rate_last"),
        ({"rate_0": "a lot"}, "rate_0"),
        ({"up_to_1": ""}, "up_to_1"),
        ({"up_to_1": "10"}, "up_to_1"),
        ({"up_to_0": "", "rate_0": "", "up_to_1": "x"}, "up_to_0"),  # rows move up
    ):
        answer = await ada.post_part(P2P, form | change)
        assert re.findall(r'name="(\w+)"[^>]*aria-invalid', answer.text) == [marked], change
    assert await fees(world) == before


async def test_what_somebody_else_has_changed_meanwhile_is_not_lost(
    ada: Visitor, visitors: Visitors, world: World
) -> None:
    form = await filled(ada, P2P)
    bob = await visitors.of("A")
    await bob.post_part(P2P, await filled(bob, P2P) | {"rate_last": "0.25"})
    between = await fees(world)
    answer = await ada.post_part(P2P, form | {"rate_last": "0.9"})
    assert "Somebody else has changed this meanwhile" in answer.text
    assert await fees(world) == between


async def test_who_sees_fees_and_who_changes_them(visitors: Visitors) -> None:
    for role in "SCF":
        visitor = await visitors.of(role)
        shown = await visitor.page(PAGE)
        assert "10,000,000.00" in shown and "/console/acts/limits" not in shown
        assert ("1.5 % up to 50,000.00 SLE" in shown) == (role == "F")
        assert P2P not in shown
        assert (await visitor.part(P2P)).status_code == 403
        assert (await visitor.post_part(P2P, {"rate_last": "5"})).status_code == 403
    ada = await visitors.of("A")
    assert P2P in await ada.page(PAGE)
    assert (await ada.send(P2P, {"rate_last": "5"})).status_code == 403  # without the page's token
    for unknown in ("refund", "tips", "%3Cscript%3E"):
        assert (await ada.part(f"{PAGE}/fees/{unknown}")).status_code == 404


COMMISSION = f"{PAGE}/commission"


async def commissions(world: World) -> list[dict[str, Any]]:
    answer = await world.client.get("/api/v1/commission-rules", auth=await world.admin())
    found: list[dict[str, Any]] = answer.json()["data"]
    return found


async def commission_form(visitor: Visitor) -> dict[str, str]:
    text = (await visitor.part(COMMISSION)).text
    return dict(re.findall(r'name="(\w+)"[^>]* value="([^"]*)"', text))


async def test_commission_is_shown_and_changed(ada: Visitor, world: World) -> None:
    before = await commissions(world)
    shown = await ada.page(PAGE)
    assert "1.5 %" in shown and "from 10.00 SLE" in shown
    form = await commission_form(ada)
    answer = await ada.post_part(COMMISSION, form)
    assert answer.headers["HX-Redirect"] == PAGE
    assert await commissions(world) == before
    changed = form | {
        "rate_agent_cashin_1": "1.25",
        "rate_agent_cashin_3": "",
        "minimum_amount_agent_cashin_1": "",
    }
    assert "HX-Redirect" in (await ada.post_part(COMMISSION, changed)).headers
    now = await commissions(world)
    assert now[0] == before[0] | {"rate": "1.25", "minimum_amount": "0.00"}
    assert [(rule["type"], rule["tier"]) for rule in now if rule["tier"] == 3] == [
        ("agent_cashout", 3)
    ]
    # Another admin has changed it since this form was opened.
    late = await ada.post_part(COMMISSION, form)
    assert "HX-Redirect" not in late.headers and 'role="alert"' in late.text
    assert await commissions(world) == now


async def test_invalid_commission_is_marked_where_it_was_typed(ada: Visitor, world: World) -> None:
    before = await commissions(world)
    form = await commission_form(ada)
    wrong = {
        "rate_agent_cashin_1": "",
        "rate_agent_cashin_2": "101",
        "minimum_amount_agent_cashout_3": "x<b>",
    }
    answer = await ada.post_part(COMMISSION, form | wrong)
    assert answer.text.count('aria-invalid="true"') == 2
    assert 'id="about-rate_agent_cashin_2"' in answer.text
    assert 'id="about-minimum_amount_agent_cashout_3"' in answer.text
    assert "x&lt;b&gt;" in answer.text
    assert await commissions(world) == before


async def test_finance_sees_the_commission_and_cannot_change_it(visitors: Visitors) -> None:
    finance, support = await visitors.of("F"), await visitors.of("S")
    shown = await finance.page(PAGE)
    assert "from 10.00 SLE" in shown and COMMISSION not in shown
    assert (await finance.part(COMMISSION)).status_code == 403
    assert (await finance.post_part(COMMISSION, {})).status_code == 403
    assert "from 10.00 SLE" not in await support.page(PAGE)
