"""Subscriber pages: escaping, errors in dialogs, concurrent changes, and message status."""

import re

import pytest

from builders.timeline import TEXT, create_history
from drivers.console import ConsoleClient, ConsoleClients
from harness import Harness
from tapgate_client import ids

XSS_PAYLOAD = "<script>alert(1)</script>"


async def test_subscriber_names_are_escaped(ada: ConsoleClient, harness: Harness) -> None:
    subscriber = await harness.create_subscriber_with_old_name(
        XSS_PAYLOAD, '"><img src=x onerror=alert(1)>'
    )
    for path in ("/console/subscribers", f"/console/subscribers/{subscriber['id']}"):
        response = await ada.get(path)
        assert response.status_code == 200
        assert "&lt;script&gt;alert(1)" in response.text
        assert "<script>alert" not in response.text and "<img src=x" not in response.text


async def test_block_shows_the_reason_and_a_second_block_shows_an_error(
    ada: ConsoleClient, harness: Harness
) -> None:
    subscriber = await harness.create_subscriber()
    page = f"/console/subscribers/{subscriber['id']}"
    await ada.get_page_text(page)
    response = await ada.submit_action(
        "subscriber.block", {"reason": "Lost the phone"}, id=subscriber["id"]
    )
    assert response.headers["HX-Redirect"] == page
    text = await ada.get_page_text(page)
    assert "Customer blocked." in text and "Reason: Lost the phone" in text
    second_response = await ada.post_partial(
        f"/console/actions/subscriber.block?id={subscriber['id']}", {"reason": "Once more"}
    )
    assert second_response.status_code == 200 and 'role="alert"' in second_response.text
    assert "Once more" in second_response.text, "the form keeps its input"


async def test_partial_subscriber_list_contains_only_rows(
    console_clients: ConsoleClients, harness: Harness
) -> None:
    await harness.create_subscriber(first_name="Fatmata")
    await harness.create_subscriber(first_name="Ibrahim")
    support = await console_clients.create_signed_in("S")
    response = await support.get_partial("/console/subscribers?search=fatmata")
    assert response.text.count("<tr>") == 1 and "Fatmata" in response.text
    assert "<html" not in response.text


async def test_stale_form_does_not_overwrite_another_admins_change(
    ada: ConsoleClient, console_clients: ConsoleClients, harness: Harness
) -> None:
    """A form submits all fields, so a stale one would restore old values of unchanged fields."""
    subscriber = await harness.create_subscriber(first_name="Aminata", address="Kissy Road")
    action_url = f"/console/actions/subscriber.update?id={subscriber['id']}"
    form = (await ada.get_partial(action_url)).text
    fingerprint = dict(re.findall(r'name="(seen)" value="([^"]+)"', form))
    other = await console_clients.create_signed_in("S")
    await other.submit_action(
        "subscriber.update", {"address": "Wilkinson Road"}, id=subscriber["id"]
    )
    stale_form = {**fingerprint, "first_name": "Amie", "address": "Kissy Road"}
    for _ in range(2):  # resubmitting does not bypass the check
        response = await ada.post_partial(action_url, stale_form)
        assert "This record has changed" in response.text and 'value="Amie"' in response.text
        assert dict(re.findall(r'name="(seen)" value="([^"]+)"', response.text)) == fingerprint
    record = await harness.get(
        f"/api/v1/subscribers/{subscriber['id']}", auth=harness.get_service_auth()
    )
    assert record.json()["address"] == "Wilkinson Road"
    response = await ada.submit_action(
        "subscriber.update", {"first_name": "Amie"}, id=subscriber["id"]
    )
    assert "HX-Redirect" in response.headers


async def test_blank_field_keeps_its_value_and_the_form_explains_it(
    ada: ConsoleClient, harness: Harness
) -> None:
    subscriber = await harness.create_subscriber(email="aminata@example.com")
    form = await ada.get_page_text(f"/console/actions/subscriber.update?id={subscriber['id']}")
    await ada.submit_action("subscriber.update", {"email": ""}, id=subscriber["id"])
    page_text = await ada.get_page_text(f"/console/subscribers/{subscriber['id']}")
    assert "aminata@<wbr>example.com" in page_text
    assert "Fields you leave blank keep their current value." in form


async def _request_code_and_report_status(
    harness: Harness, subscriber_id: str, status: str, **fields: str
) -> None:
    url = f"/api/v1/subscribers/{subscriber_id}/reset-pin"
    assert (await harness.post(url, auth=harness.get_service_auth())).is_success
    message_id = await harness.database.fetchval("SELECT max(id) FROM messages")
    report = {"message_id": ids.encode(ids.MESSAGE, message_id), "status": status, **fields}
    response = await harness.post(
        "/api/v1/messages/statuses", json={"data": [report]}, auth=harness.get_service_auth()
    )
    assert response.json() == {"updated": 1}


async def test_support_users_see_whether_the_last_code_was_delivered(
    console_clients: ConsoleClients, harness: Harness
) -> None:
    support = await console_clients.create_signed_in("S")
    unrestricted = await harness.create_subscriber()
    restricted = await harness.create_restricted_subscriber()
    for record in (unrestricted, restricted):
        path = f"/console/subscribers/{record['id']}"
        assert "None sent in the last 30 days" in (await support.get(path)).text
        await _request_code_and_report_status(harness, record["id"], "failed", error_code="131026")
        assert "Not delivered (provider error 131026)" in (await support.get(path)).text
        harness.advance_clock(minutes=1)
        await _request_code_and_report_status(harness, record["id"], "delivered")
        text = (await support.get(path)).text
        assert "Not delivered" not in text
        assert "Delivered" in text


async def test_timeline_shows_what_happened(ada: ConsoleClient, harness: Harness) -> None:
    customer = await create_history(harness)
    page = f"/console/subscribers/{customer['id']}"
    assert f'href="{page}/timeline"' in await ada.get_page_text(page)
    text = await ada.get_page_text(f"{page}/timeline")
    for part in (
        "Wrong PIN",
        "Lost phone",
        "Alert: Stolen phone",
        "Message from the customer",
        "Chat: Send money",
        "Text · Messaging · 1 reply",
        "In progress",
    ):
        assert part in text, part
    assert TEXT not in text
    filtered = await ada.get_page_text(f"{page}/timeline?kind=alert")
    assert "Stolen phone" in filtered and "Wrong PIN" not in filtered


@pytest.mark.parametrize(
    "code, label", [("expired", "Expired"), ("provider_code", "provider_code")]
)
async def test_timeline_labels_expired_messages_and_keeps_codes_of_the_provider(
    ada: ConsoleClient, harness: Harness, code: str, label: str
) -> None:
    customer = await harness.create_subscriber()
    await _request_code_and_report_status(harness, customer["id"], "failed", error_code=code)
    text = await ada.get_page_text(f"/console/subscribers/{customer['id']}/timeline?kind=message")
    assert f'<br><span class="quiet">{label}</span>' in text


async def test_timeline_has_the_header_of_the_profile(ada: ConsoleClient, harness: Harness) -> None:
    page = f"/console/subscribers/{(await harness.create_subscriber())['id']}"
    texts = [await ada.get_page_text(path) for path in (page, f"{page}/timeline")]
    headers = [
        re.findall(r'<div class="head">.*?wallet\.send.*?</button>', text, re.S) for text in texts
    ]
    assert len(headers[0]) == 1 and headers[0] == headers[1]


async def test_timeline_of_a_restricted_customer_requires_a_code(
    ada: ConsoleClient, harness: Harness
) -> None:
    customer = await harness.create_restricted_subscriber()
    page = f"/console/subscribers/{customer['id']}"
    response = await ada.get(f"{page}/timeline")
    assert (response.status_code, response.headers["Location"]) == (303, page)
