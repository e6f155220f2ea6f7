"""Processor pages: secrets shown once, terminals, keys and permissions."""

import re

from console.console_client import ConsoleClient, ConsoleClients
from harness import Harness

XSS_PAYLOAD = "<script>alert(1)</script>"


def _list_copyable_values(answer: str) -> list[str]:
    """Return the values of the copy buttons next to ids and secrets."""
    return re.findall(r'data-copy="([^"]+)"', answer)


async def _create_processor(ada: ConsoleClient, world: Harness, name: str = "Kamara Stores") -> str:
    form = {"name": name, "phone_number": world.new_phone_number(), "email": "shop@example.com"}
    made = await ada.submit_action("processor.create", form)
    return _list_copyable_values(made.text)[0]


async def test_secret_of_a_new_processor_is_shown_once(ada: ConsoleClient, world: Harness) -> None:
    form = {
        "name": "Kamara Stores",
        "phone_number": world.new_phone_number(),
        "email": "shop@example.com",
    }
    made = await ada.submit_action("processor.create", form)
    processor, key, secret = _list_copyable_values(made.text)
    assert processor.startswith("prc_") and key.startswith("key_") and len(secret) > 30
    page = f"/console/processors/{processor}"
    assert f'href="{page}"' in made.text, "where one goes when it is kept"
    shown = await ada.get_page_text(page)
    assert key in shown and secret not in shown


async def test_terminal_keys_can_be_added_and_deleted_and_the_terminal_blocked(
    ada: ConsoleClient, world: Harness
) -> None:
    processor = await _create_processor(ada, world)
    page = f"/console/processors/{processor}"
    added = await ada.submit_action("terminal.add", {"name": "Till 1"}, id=processor)
    terminal, key, _ = _list_copyable_values(added.text)
    assert terminal.startswith("ter_") and f'href="{page}"' in added.text
    further = await ada.submit_action(
        "terminal.key", {"terminal_id": terminal}, id=processor, terminal_id=terminal
    )
    newest = _list_copyable_values(further.text)[0]
    shown = await ada.get_page_text(page)
    assert newest in shown and shown.count("Till 1") == 3, "the terminal, and both of its keys"
    await ada.submit_action("processor.delete_key", id=processor, api_key_id=key)
    assert key not in await ada.get_page_text(page)
    await ada.submit_action("terminal.block", id=processor, terminal_id=terminal)
    shown = await ada.get_page_text(page)
    assert "Terminal blocked." in shown and "terminal.unblock" in shown
    assert "Till 1" in await ada.get_page_text(f"{page}/terminals")
    assert newest in await ada.get_page_text(f"{page}/keys")


async def test_terminals_and_keys_are_hidden_from_other_roles(
    visitors: ConsoleClients, ada: ConsoleClient, world: Harness
) -> None:
    page = f"/console/processors/{await _create_processor(ada, world)}"
    for role in "CSF":
        other = await visitors.create_signed_in(role)
        shown = await other.get_page_text(page)
        assert "Kamara Stores" in shown
        assert "Terminals" not in shown and "Signing keys" not in shown
        assert ("processor.suspend" in shown) is (role == "C")
        assert (await other.get(f"{page}/keys")).status_code == 403
        assert (await other.get_partial("/console/actions/processor.key")).status_code == 403


async def test_suspended_processor_shows_the_reason(ada: ConsoleClient, world: Harness) -> None:
    processor = await _create_processor(ada, world)
    page = f"/console/processors/{processor}"
    await ada.get_page_text(page)
    await ada.submit_action("processor.suspend", {"reason": "Chargebacks"}, id=processor)
    shown = await ada.get_page_text(page)
    assert "Reason: Chargebacks" in shown and "processor.activate" in shown
    found = await ada.get_partial("/console/processors?status=suspended")
    assert found.text.count("<tr>") == 1


async def test_processor_is_found_by_part_of_its_name(ada: ConsoleClient, world: Harness) -> None:
    await _create_processor(ada, world, "Kamara Stores")
    await _create_processor(ada, world, "Bo Market Cloth")
    found = await ada.get_partial("/console/processors?search=cloth")
    assert found.text.count("<tr>") == 1 and "Bo Market Cloth" in found.text
    found = await ada.get_partial("/console/processors?search=nobody")
    assert "No merchants match" in found.text


async def test_rejected_settlement_transfer_keeps_the_form(
    ada: ConsoleClient, world: Harness
) -> None:
    person = await world.create_subscriber()
    processor = await _create_processor(ada, world)
    order = {"subscriber_id": person["id"], "amount": "10"}
    refused = await ada.submit_action("processor.transfer", order, id=processor)
    assert 'role="alert"' in refused.text and person["id"] in refused.text


async def test_processor_and_terminal_names_are_escaped(ada: ConsoleClient, world: Harness) -> None:
    processor = await _create_processor(ada, world, XSS_PAYLOAD)
    await ada.submit_action("terminal.add", {"name": XSS_PAYLOAD}, id=processor)
    one = f"/console/processors/{processor}"
    for path in ("/console/processors", one, f"{one}/terminals", f"{one}/keys"):
        answer = await ada.get(path)
        assert "&lt;script&gt;alert(1)" in answer.text and "<script>alert" not in answer.text
