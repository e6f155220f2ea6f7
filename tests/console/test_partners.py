"""Partner pages: secrets shown once, funding, status and permissions."""

import re

from drivers.console import ConsoleClient


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
    assert new in await ada.get_page_text(f"{page}/keys")
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
