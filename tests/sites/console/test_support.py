"""Support pages: the queue, the conversation, replies, assignment and closing."""

import pytest

from builders.support import PHONE, send_message
from drivers.console import ConsoleClient, ConsoleClients
from harness import Harness

QUEUE_URL = "/console/support"


@pytest.fixture
async def support(console_clients: ConsoleClients) -> ConsoleClient:
    return await console_clients.create_signed_in("S")


async def test_support_reads_answers_and_closes_a_request(
    support: ConsoleClient, harness: Harness
) -> None:
    subscriber = await harness.create_subscriber(phone_number=PHONE, first_name="Fatmata")
    request = await send_message(harness, "<script>alert(1)</script> was charged twice")
    page = f"{QUEUE_URL}/{request['id']}"
    for path in (QUEUE_URL, page):
        text = (await support.get(path)).text
        assert "&lt;script&gt;alert(1)&lt;/script&gt; was charged twice" in text
        assert PHONE in text and "Fatmata" in text
    assert subscriber["id"] in text
    response = await support.submit_action(
        "support.reply", {"text": "Which day?\r\nWhich shop?"}, id=request["id"]
    )
    assert response.headers["HX-Redirect"] == page
    text = await support.get_page_text(page)
    assert "Which day?\nWhich shop?" in text and "Answered" in text
    pending_messages = await harness.list_pending_messages(PHONE, "support_reply")
    assert pending_messages == [["Which day?\nWhich shop?"]]
    await support.submit_action("support.close", id=request["id"])
    text = await support.get_page_text(page)
    assert "Closed." in text and "Send reply" not in text
    assert "All clear" in await support.get_page_text(QUEUE_URL)
    assert request["id"] in await support.get_page_text(f"{QUEUE_URL}?status=closed")


async def test_reply_that_is_too_long_is_shown_again_with_the_error(
    support: ConsoleClient, harness: Harness
) -> None:
    request = await send_message(harness, "Hello")
    response = await support.submit_action("support.reply", {"text": "x" * 1001}, id=request["id"])
    assert "Reply must have 1 to 1000 characters" in response.text and "x" * 1001 in response.text


async def test_requests_are_filtered_by_the_assigned_admin(
    support: ConsoleClient, harness: Harness
) -> None:
    mine, other = (
        await send_message(harness, "Mine"),
        await send_message(harness, "Other", "+23276555003"),
    )
    page = f"{QUEUE_URL}/{mine['id']}"
    assert "Assign to me" in await support.get_page_text(page)
    await support.submit_action("support.assign", id=mine["id"])
    assert "Assign to me" not in await support.get_page_text(page)
    record = await harness.get(
        f"/api/v1/support/requests/{mine['id']}", auth=await harness.create_admin("A")
    )
    text = await support.get_page_text(f"{QUEUE_URL}?assignee={record.json()['assignee']}")
    assert mine["id"] in text and other["id"] not in text


async def test_request_of_a_restricted_customer_is_hidden(
    support: ConsoleClient, harness: Harness
) -> None:
    await harness.create_restricted_subscriber(phone_number=PHONE, first_name="Zainab")
    request = await send_message(harness, "Secret words")
    for path in (QUEUE_URL, f"{QUEUE_URL}/{request['id']}"):
        text = await support.get_page_text(path)
        assert "restricted" in text
        assert not any(value in text for value in (PHONE, "Secret words", "Zainab"))
    assert "Personal data hidden." in text and "Send reply" not in text


@pytest.mark.parametrize("role", ["C", "F"])
async def test_other_roles_have_no_access(
    console_clients: ConsoleClients, harness: Harness, role: str
) -> None:
    request = await send_message(harness, "Hello")
    client = await console_clients.create_signed_in(role)
    assert QUEUE_URL not in await client.get_page_text("/console")
    for path in (QUEUE_URL, f"{QUEUE_URL}/{request['id']}"):
        assert (await client.get(path)).status_code == 403


async def test_navigation_shows_the_number_of_open_requests(
    console_clients: ConsoleClients, support: ConsoleClient, harness: Harness
) -> None:
    page = "/console/subscribers"
    assert " waiting</span>" not in await support.get_page_text(page)
    requests = [await send_message(harness, "Hello", f"+2327655510{n}") for n in range(3)]
    await support.submit_action("support.close", id=requests[0]["id"])
    badge = '2<span class="visually-hidden"> waiting</span>'
    assert badge in await support.get_page_text(page)
    officer = await console_clients.create_signed_in("C")
    assert " waiting</span>" not in await officer.get_page_text(page)


async def test_number_of_open_requests_is_counted_up_to_a_limit(
    support: ConsoleClient, harness: Harness
) -> None:
    await harness.database.execute(
        """INSERT INTO support_requests (id, phone_number, created_at, updated_at)
           SELECT n, '+2327600' || n, now(), now() FROM generate_series(1000, 1120) AS n"""
    )
    response = await harness.get("/api/v1/support/summary", auth=await harness.create_admin("S"))
    assert response.json() == {"open": 100}
    page_text = await support.get_page_text("/console/subscribers")
    assert '99+<span class="visually-hidden"> waiting</span>' in page_text


async def test_request_of_a_registered_customer_is_titled_with_the_name(
    support: ConsoleClient, harness: Harness
) -> None:
    await harness.create_subscriber(phone_number=PHONE, first_name="Fatmata", last_name="Bah")
    request = await send_message(harness, "Hello")
    text = await support.get_page_text(f"{QUEUE_URL}/{request['id']}")
    assert "<title>Support request: Fatmata Bah" in text
    other = await send_message(harness, "Hello", "+23276555003")
    text = await support.get_page_text(f"{QUEUE_URL}/{other['id']}")
    assert "<title>Support request: +23276555003" in text
