"""Limit, fee and commission pages: editing, validation and concurrent changes."""

import re
from typing import Any

from drivers.console import ConsoleClient, ConsoleClients
from harness import Harness
from tapgate.business.payments.fees import model
from tapgate.ledger import chart
from tapgate.sites.console.pages.limits import CHARGED_TYPES

LIMITS_URL = "/console/limits"
P2P_FEES_URL = f"{LIMITS_URL}/fees/transfer_p2p"


async def get_fee_rules(harness: Harness) -> list[dict[str, Any]]:
    response = await harness.get("/api/v1/fee-rules", auth=await harness.create_admin())
    rules: list[dict[str, Any]] = response.json()["data"]
    return rules


async def get_prefilled_form(console: ConsoleClient, path: str) -> dict[str, str]:
    """Return the initial values of the fields of a fee form."""
    text = (await console.get_partial(path)).text
    fields = dict(re.findall(r'name="(\w+)"[^>]* value="([^"]*)"', text))
    chosen = re.findall(r'<option value="(\w+)"( selected)?', text)
    payer = next((name for name, selected in chosen if selected), chosen[0][0])
    return {**fields, "payer": payer}


def test_every_transaction_type_that_is_not_fee_exempt_can_have_a_fee() -> None:
    assert set(CHARGED_TYPES) == set(chart.TRANSACTION_TYPES) - set(model.FEE_EXEMPT_REASONS)


async def test_limits_of_a_kyc_level_can_be_changed(ada: ConsoleClient, harness: Harness) -> None:
    response = await ada.get_partial("/console/actions/limits.level_1?kyc_level=1")
    assert 'value="50000.00"' in response.text and ">phone_number</textarea>" in response.text
    form = {
        "max_balance": "500000",
        "max_transaction": "123.45",
        "daily_limit": "1000",
        "monthly_limit": "2000",
        "no_pin_limit": "0",
        "requirements": "phone_number\r\n selfie \r\n\r\n",
    }
    rejected = await ada.submit_action(
        "limits.level_1", form | {"monthly_limit": "1"}, kyc_level="1"
    )
    assert "The daily limit must not exceed the monthly limit." in rejected.text
    await ada.submit_action("limits.level_1", form, kyc_level="1")
    assert "123.45" in await ada.get_page_text(LIMITS_URL)
    api_response = await harness.get("/api/v1/account-rules/1", auth=await harness.create_admin())
    assert api_response.json()["requirements"] == ["phone_number", "selfie"]
    assert api_response.json()["no_pin_limit"] == "0.00"


async def test_submitting_an_unchanged_fee_form_changes_nothing(
    ada: ConsoleClient, harness: Harness
) -> None:
    before = await get_fee_rules(harness)
    for kind in {tier["type"] for tier in before}:
        path = f"{LIMITS_URL}/fees/{kind}"
        response = await ada.post_partial(path, await get_prefilled_form(ada, path))
        assert response.headers["HX-Redirect"] == LIMITS_URL
    assert await get_fee_rules(harness) == before


async def test_fee_tiers_can_be_added_and_removed(ada: ConsoleClient, harness: Harness) -> None:
    others = [tier for tier in await get_fee_rules(harness) if tier["type"] != "transfer_p2p"]
    form = await get_prefilled_form(ada, P2P_FEES_URL)
    assert (form["up_to_0"], form["rate_0"], form["rate_last"]) == ("50000.00", "1.5", "0.5")
    form |= {"up_to_0": "", "rate_0": "", "up_to_2": "900000", "rate_2": "0.75"}
    await ada.post_partial(P2P_FEES_URL, form | {"payer": "receiver"})
    now = await get_fee_rules(harness)
    assert [tier for tier in now if tier["type"] != "transfer_p2p"] == others
    assert [
        (tier["up_to"], tier["rate"], tier["payer"])
        for tier in now
        if tier["type"] == "transfer_p2p"
    ] == [
        ("500000.00", "1", "receiver"),
        ("900000.00", "0.75", "receiver"),
        (None, "0.5", "receiver"),
    ]


async def test_invalid_fee_field_is_marked(ada: ConsoleClient, harness: Harness) -> None:
    before = await get_fee_rules(harness)
    form = await get_prefilled_form(ada, P2P_FEES_URL)
    for change, invalid_field in (
        ({"rate_last": ""}, "rate_last"),
        ({"rate_0": "a lot"}, "rate_0"),
        ({"up_to_1": ""}, "up_to_1"),
        ({"up_to_1": "10"}, "up_to_1"),
        ({"up_to_0": "", "rate_0": "", "up_to_1": "x"}, "up_to_0"),  # row 1 moves up to row 0
    ):
        response = await ada.post_partial(P2P_FEES_URL, form | change)
        expected = [invalid_field]
        assert re.findall(r'name="(\w+)"[^>]*aria-invalid', response.text) == expected, change
    assert await get_fee_rules(harness) == before


async def test_stale_fee_form_does_not_overwrite_another_admins_change(
    ada: ConsoleClient, console_clients: ConsoleClients, harness: Harness
) -> None:
    form = await get_prefilled_form(ada, P2P_FEES_URL)
    bob = await console_clients.create_signed_in("A")
    await bob.post_partial(
        P2P_FEES_URL, await get_prefilled_form(bob, P2P_FEES_URL) | {"rate_last": "0.25"}
    )
    after_bob = await get_fee_rules(harness)
    response = await ada.post_partial(P2P_FEES_URL, form | {"rate_last": "0.9"})
    assert "This record has changed" in response.text
    assert await get_fee_rules(harness) == after_bob


async def test_fees_are_shown_to_finance_users_and_changed_only_by_system_admins(
    console_clients: ConsoleClients,
) -> None:
    for role in "SCF":
        console = await console_clients.create_signed_in(role)
        text = await console.get_page_text(LIMITS_URL)
        assert "10,000,000.00" in text and "/console/actions/limits" not in text
        assert ("1.5% up to 50,000.00 SLE" in text) == (role == "F")
        assert P2P_FEES_URL not in text
        assert (await console.get_partial(P2P_FEES_URL)).status_code == 403
        assert (await console.post_partial(P2P_FEES_URL, {"rate_last": "5"})).status_code == 403
    ada = await console_clients.create_signed_in("A")
    assert P2P_FEES_URL in await ada.get_page_text(LIMITS_URL)
    response = await ada.post_without_csrf(P2P_FEES_URL, {"rate_last": "5"})
    assert response.status_code == 403  # the CSRF token is missing
    for unknown in ("refund", "tips", "%3Cscript%3E"):
        assert (await ada.get_partial(f"{LIMITS_URL}/fees/{unknown}")).status_code == 404


COMMISSION_URL = f"{LIMITS_URL}/commission"


async def get_commission_rules(harness: Harness) -> list[dict[str, Any]]:
    response = await harness.get("/api/v1/commission-rules", auth=await harness.create_admin())
    rules: list[dict[str, Any]] = response.json()["data"]
    return rules


async def get_commission_form(console: ConsoleClient) -> dict[str, str]:
    text = (await console.get_partial(COMMISSION_URL)).text
    return dict(re.findall(r'name="(\w+)"[^>]* value="([^"]*)"', text))


async def test_commission_can_be_changed_but_not_with_a_stale_form(
    ada: ConsoleClient, harness: Harness
) -> None:
    before = await get_commission_rules(harness)
    text = await ada.get_page_text(LIMITS_URL)
    assert "1.5%" in text and "from 10.00 SLE" in text
    form = await get_commission_form(ada)
    response = await ada.post_partial(COMMISSION_URL, form)
    assert response.headers["HX-Redirect"] == LIMITS_URL
    assert await get_commission_rules(harness) == before
    changed = form | {
        "rate_agent_cashin_1": "1.25",
        "rate_agent_cashin_3": "",
        "minimum_amount_agent_cashin_1": "",
    }
    assert "HX-Redirect" in (await ada.post_partial(COMMISSION_URL, changed)).headers
    now = await get_commission_rules(harness)
    assert now[0] == before[0] | {"rate": "1.25", "minimum_amount": "0.00"}
    expected = [("agent_cashout", 3)]
    assert [(rule["type"], rule["tier"]) for rule in now if rule["tier"] == 3] == expected
    # The rules have changed since this form was opened.
    stale = await ada.post_partial(COMMISSION_URL, form)
    assert "HX-Redirect" not in stale.headers and 'role="alert"' in stale.text
    assert await get_commission_rules(harness) == now


async def test_invalid_commission_fields_are_marked(ada: ConsoleClient, harness: Harness) -> None:
    before = await get_commission_rules(harness)
    form = await get_commission_form(ada)
    invalid_fields = {
        "rate_agent_cashin_1": "",
        "rate_agent_cashin_2": "101",
        "minimum_amount_agent_cashout_3": "x<b>",
    }
    response = await ada.post_partial(COMMISSION_URL, form | invalid_fields)
    assert response.text.count('aria-invalid="true"') == 2
    assert 'id="about-rate_agent_cashin_2"' in response.text
    assert 'id="about-minimum_amount_agent_cashout_3"' in response.text
    assert "x&lt;b&gt;" in response.text
    assert await get_commission_rules(harness) == before
