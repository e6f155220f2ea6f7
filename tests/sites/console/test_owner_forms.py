"""Console forms for owners: users, API keys and webhooks, and the steps of a new merchant."""

import re

from builders.owner_world import OwnerWorld
from cases import each
from drivers.console import ConsoleClient, ConsoleClients
from harness import Harness
from tapgate_client import ids

_PAGES = {
    ids.PROCESSOR: ("/console/processors/", "merchant_user.create"),
    ids.PARTNER: ("/console/partners/", "partner_user.create"),
    ids.AGENT: ("/console/agents/", "agent_user.create"),
}


@each(
    "prefix, role",
    [
        (ids.PROCESSOR, "merchant_cashier"),
        (ids.PARTNER, "partner_user"),
        (ids.AGENT, "agent_user"),
    ],
)
async def test_admin_invites_a_user_on_the_owners_page(
    harness: Harness, ada: ConsoleClient, prefix: str, role: str
) -> None:
    world = OwnerWorld(harness, "zulu")
    await world.create()
    owner_id, (path, action) = world.get_owner(prefix), _PAGES[prefix]
    assert action in await ada.get_page_text(path + owner_id)
    email = f"{role}@example.com"
    fields = {"name": "Fatu Sesay", "email": email, "role": role}
    form = await ada.get_partial(f"/console/actions/{action}?owner_id={owner_id}")
    assert f'name="owner_id" value="{owner_id}"' in form.text
    fields["owner_id"] = owner_id
    invited = await ada.submit_action(action, fields, owner_id=owner_id)
    assert "/portal/invitation#" in invited.text, invited.text
    assert f"mailto:{role}%40example.com" in invited.text
    text = await ada.get_page_text(path + owner_id)
    assert email in text and "Portal users" in text
    row = await harness.database.fetchrow(
        "SELECT role, owner_id FROM admins WHERE email = $1", email
    )
    assert row is not None and row["role"] == role
    assert ids.encode(prefix, row["owner_id"]) == owner_id


async def test_support_staff_see_no_users(
    harness: Harness, console_clients: ConsoleClients
) -> None:
    world = OwnerWorld(harness, "zulu")
    await world.create()
    client = await console_clients.create_signed_in("S")
    text = await client.get_page_text(f"/console/processors/{world.get_owner(ids.PROCESSOR)}")
    assert "Portal users" not in text and "Get started" not in text


async def test_admin_creates_a_key_and_a_webhook_for_an_owner(
    harness: Harness, ada: ConsoleClient
) -> None:
    world = OwnerWorld(harness, "zulu")
    await world.create()
    shop = world.get_owner(ids.PROCESSOR)
    key = {"name": "Store", "scopes": ["payments:read"], "owner_id": shop}
    created = await ada.submit_action("api_key.create", key)
    assert "Key created" in created.text, created.text
    link = f'href="/console/processors/{shop}"'
    assert link in await ada.get_page_text("/console/api-keys")
    hook = {"url": "https://store.example/", "events": ["transaction.completed"], "owner_id": shop}
    created = await ada.submit_action("webhook.create", hook)
    match = re.search(r"/console/webhooks/whk_\w{13}", created.text)
    assert match is not None, created.text
    assert link in await ada.get_page_text(match[0])
    assert link in await ada.get_page_text("/console/webhooks")


async def test_steps_lead_a_new_merchant_to_its_first_payout(
    harness: Harness, ada: ConsoleClient, console_clients: ConsoleClients
) -> None:
    fields = {"name": "Kamara Stores", "phone_number": "+23276555001", "email": "k@example.com"}
    created = await ada.submit_action("processor.create", fields)
    match = re.search(r"prc_\w{13}", created.text)
    assert match is not None, created.text
    shop, path = match[0], f"/console/processors/{match[0]}"
    assert "0 of 5 done" in await ada.get_page_text(path)
    user = {"name": "Isata", "email": "isata@example.com", "role": "merchant_manager"}
    await ada.submit_action("merchant_user.create", {**user, "owner_id": shop})
    assert "1 of 5 done" in await ada.get_page_text(path)
    manager = console_clients.create_signed_out()
    manager.site = manager.referer = "/portal"
    manager.set_session(await harness.create_owner_user("M", shop))
    assert "0 of 3 done" in await manager.get_page_text("/portal")
    await manager.submit_action("terminal.add", {"name": "Till 1"}, id=shop)
    assert "1 of 3 done" in await manager.get_page_text("/portal")
    account = {"holder_name": "Kamara", "bank_code": "RCBK", "number": "001234567"}
    await manager.submit_action("bank_account.create", {**account, "owner_id": shop})
    assert "2 of 3 done" in await manager.get_page_text("/portal")
    assert "4 of 5 done" in await ada.get_page_text(path)
    cashier = console_clients.create_signed_out()
    cashier.set_session(await harness.create_owner_user("K", shop))
    assert "Get started" not in await cashier.get_page_text("/portal")


async def test_steps_disappear_once_the_merchant_is_paid_and_can_be_paid_out(
    harness: Harness, ada: ConsoleClient, console_clients: ConsoleClients
) -> None:
    world = OwnerWorld(harness, "zulu")
    await world.create()
    shop = world.get_owner(ids.PROCESSOR)
    assert "Get started" not in await ada.get_page_text(f"/console/processors/{shop}")
    manager = console_clients.create_signed_out()
    manager.set_session(await harness.create_owner_user("M", shop))
    assert "Get started" not in await manager.get_page_text("/portal")
