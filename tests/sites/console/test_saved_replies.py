"""Saved replies in the console: the page that edits them, and the reply form that offers them."""

import html
import re

import pytest

from builders.support import PHONE, send_message
from drivers.console import ConsoleClient, ConsoleClients
from harness import Harness

PAGE = "/console/saved-replies"
URL = "/api/v1/support/saved-replies"
_BUTTON = re.compile(r'data-insert="reply" data-text="([^"]*)">([^<]*)</button>')


@pytest.fixture
async def support(console_clients: ConsoleClients) -> ConsoleClient:
    return await console_clients.create_signed_in("S")


async def list_buttons(client: ConsoleClient, request_id: str) -> dict[str, str]:
    """Return the texts that the reply form offers, by label."""
    text = (await client.get(f"/console/support/{request_id}")).text
    return {html.unescape(label): html.unescape(words) for words, label in _BUTTON.findall(text)}


async def find_id(harness: Harness, label: str) -> str:
    listed = await harness.get(URL, auth=await harness.create_admin("S"))
    return next(item["id"] for item in listed.json()["data"] if item["label"] == label)


@pytest.mark.parametrize(
    "language, start", [("en", "Thank you for your message."), ("fr", "Merci pour votre message.")]
)
async def test_reply_form_has_texts_in_the_language_of_the_customer(
    support: ConsoleClient, harness: Harness, language: str, start: str
) -> None:
    await harness.create_subscriber(phone_number=PHONE, language=language)
    request = await send_message(harness, "Bonjour")
    buttons = await list_buttons(support, request["id"])
    assert buttons["Checking"].startswith(start)
    assert "Recent activity" in await support.get_page_text(f"/console/support/{request['id']}")


async def test_reply_form_uses_english_for_unknown_customers(
    support: ConsoleClient, harness: Harness
) -> None:
    request = await send_message(harness, "Bonjour")
    assert (await list_buttons(support, request["id"]))["Solved"].startswith("This is solved now.")


async def test_reply_form_uses_the_language_of_an_owners_user(
    support: ConsoleClient, harness: Harness
) -> None:
    """A text that is missing in this language is English."""
    shop = await harness.get_processor_id(await harness.create_processor())
    manager = await harness.create_owner_user("M", shop)
    body = {"text": "Pourquoi ?"}
    asked = await harness.post("/api/v1/support/owner-requests", json=body, auth=manager)
    request_id = asked.json()["id"]
    assert asked.json()["language"] == "en"
    await harness.put("/api/v1/admin/me/preferences", json={"language": "fr"}, auth=manager)
    await support.submit_action(
        "saved_reply.create", {"label": "Fees", "texts.en": "See your plan."}
    )
    buttons = await list_buttons(support, request_id)
    assert buttons["Solved"].startswith("C'est résolu.")
    assert buttons["Fees"] == "See your plan."


async def test_reply_is_created_edited_and_deleted_on_the_page(
    support: ConsoleClient, console_clients: ConsoleClients, harness: Harness
) -> None:
    await harness.create_subscriber(phone_number=PHONE, language="fr")
    request = await send_message(harness, "Bonjour")
    fields = {"label": 'A "label"', "texts.en": "Line 1\r\nLine 2", "position": "1"}
    created = await support.submit_action("saved_reply.create", fields)
    assert created.headers["HX-Redirect"] == PAGE
    text = await support.get_page_text(PAGE)
    assert "Saved reply created." in text and "Same as English" in text
    buttons = await list_buttons(support, request["id"])
    assert next(iter(buttons.items())) == ('A "label"', "Line 1\nLine 2")

    reply_id = await find_id(harness, 'A "label"')
    form = await support.get_partial(f"/console/actions/saved_reply.edit?id={reply_id}")
    assert "Line 1\nLine 2" in form.text and 'value="1"' in form.text
    fields = {"label": "B", "texts.en": "Line 3", "texts.fr": "Ligne 3", "position": "2"}
    await support.submit_action("saved_reply.edit", fields, id=reply_id)
    assert list((await list_buttons(support, request["id"])).items())[1] == ("B", "Ligne 3")
    # Without a French text, customers get the English one.
    fields = {"label": "B", "texts.en": "Line 3", "texts.fr": "", "position": "2"}
    await support.submit_action("saved_reply.edit", fields, id=reply_id)
    assert (await list_buttons(support, request["id"]))["B"] == "Line 3"

    ada = await console_clients.create_signed_in("A")
    audit = (await ada.get(f"/console/audit?resource_id={reply_id}")).text
    assert f'href="{PAGE}#{reply_id}"' in audit and f'id="{reply_id}"' in (await ada.get(PAGE)).text

    form = await support.get_partial(f"/console/actions/saved_reply.delete?id={reply_id}")
    assert "Delete this saved reply?" in form.text and "Line 3" in form.text
    await support.submit_action("saved_reply.delete", id=reply_id)
    assert "B" not in await list_buttons(support, request["id"])


async def test_rejected_form_shows_the_error_at_its_field(support: ConsoleClient) -> None:
    fields = {"label": "solved", "texts.en": "Hello", "texts.fr": "x" * 1001}
    response = await support.submit_action("saved_reply.create", fields)
    assert "French text must have 1 to 1000 characters" in response.text
    response = await support.submit_action("saved_reply.create", {**fields, "texts.fr": "Salut"})
    assert "Label is already used by another saved reply" in response.text
    assert "Hello" in response.text


async def test_form_of_an_outdated_page_is_rejected(
    support: ConsoleClient, harness: Harness
) -> None:
    reply_id = await find_id(harness, "Solved")
    form = await support.get_partial(f"/console/actions/saved_reply.edit?id={reply_id}")
    seen = re.search(r'name="seen" value="([^"]*)"', form.text)
    assert seen is not None
    body = {"texts": {"en": "By a colleague"}}
    auth = await harness.create_admin("S")
    await harness.put(f"{URL}/{reply_id}", json=body, auth=auth)
    fields = {"label": "Solved", "texts.en": "Mine", "position": "5", "seen": seen[1]}
    address = f"/console/actions/saved_reply.edit?id={reply_id}"
    response = await support.post_partial(address, fields)
    assert "changed" in response.text
    listed = (await harness.get(f"{URL}/{reply_id}", auth=auth)).json()
    assert listed["texts"]["en"] == "By a colleague"


@pytest.mark.parametrize("role", ["C", "F"])
async def test_other_roles_have_no_access(console_clients: ConsoleClients, role: str) -> None:
    client = await console_clients.create_signed_in(role)
    assert PAGE not in await client.get_page_text("/console")
    assert (await client.get(PAGE)).status_code == 403
