"""Processor pages: secrets shown once, terminals, keys and permissions."""

import re

from drivers.console import ConsoleClient, ConsoleClients
from harness import Harness


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
    assert newest in text and text.count("Till 1") == 3, "the terminal and its two keys"
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
