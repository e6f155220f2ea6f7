"""KYC review: queue, review page, decisions and the next customer."""

import pytest

from builders.kyc_documents import upload_document
from drivers.console import ConsoleClient, ConsoleClients
from harness import Harness


@pytest.fixture
async def officer(console_clients: ConsoleClients) -> ConsoleClient:
    return await console_clients.create_signed_in("C")


async def test_queue_lists_the_longest_waiting_customer_first(
    officer: ConsoleClient, harness: Harness
) -> None:
    assert "All clear." in await officer.get_page_text("/console/kyc")
    later, earlier = [
        await harness.create_subscriber(first_name=name) for name in ("Later", "Earlier")
    ]
    await upload_document(harness, earlier)
    harness.advance_clock(hours=3)
    await upload_document(harness, later)
    text = await officer.get_page_text("/console/kyc")
    assert text.index("Earlier Kamara") < text.index("Later Kamara")
    assert text.count("ID front") == 2
    assert "3 h" in text or "3 hours" in text, text
    response = await officer.get("/console/kyc/next")
    assert response.headers["Location"] == f"/console/kyc/{earlier['id']}"
    # A customer who must send more documents leaves the queue until another document arrives.
    response = await officer.submit_action(
        "kyc.more_needed",
        {"decision": "more_needed", "reason": "The back, please"},
        id=earlier["id"],
    )
    assert response.headers["HX-Redirect"] == "/console/kyc/next"
    response = await officer.get("/console/kyc/next")
    assert response.headers["Location"] == f"/console/kyc/{later['id']}"
    text = await officer.get_page_text("/console/kyc")
    assert "Later Kamara" in text and "Earlier Kamara" not in text


async def test_review_shows_requirements_of_the_next_level_and_limits(
    officer: ConsoleClient, harness: Harness
) -> None:
    customer = await harness.create_subscriber(language="fr", id_number="SL-7", id_type="PASSPORT")
    await upload_document(harness, customer)
    path = f"/console/kyc/{customer['id']}"
    text = await officer.get_page_text(path)
    for part in ("Passport SL-7", "French", "Requirements of level 2", "Approve level 2"):
        assert part in text
    assert text.count("Met</span>") == 1 and text.count("Received</span>") == 1
    assert text.count("Missing</span>") == 1
    assert "Missing for level 2: Selfie." in text and "Ask for: Selfie" in text
    assert "50,000.00" in text and "250,000.00" in text
    form = {"decision": "approve", "kyc_level": "2"}
    response = await officer.submit_action("kyc.approve", form, id=customer["id"])
    assert "Level 2 requires these documents: selfie." in response.text
    response = await officer.submit_action("kyc.reject", {"decision": "reject"}, id=customer["id"])
    assert "HX-Redirect" not in response.headers and "reason" in response.text
    await upload_document(harness, customer, document_type="selfie")
    assert "No document is missing for level 2." in await officer.get_page_text(path)
    response = await officer.submit_action("kyc.approve", form, id=customer["id"])
    assert response.headers["HX-Redirect"] == "/console/kyc/next"
    text = await officer.get_page_text(path)
    assert "No documents to review." in text and "Earlier documents (2)" in text
    assert "/console/actions/kyc." not in text, "there is nothing to decide"
    assert "Requirements of level 3" in text


async def test_second_decision_explains_the_conflict(
    officer: ConsoleClient, console_clients: ConsoleClients, harness: Harness
) -> None:
    customer = await harness.create_subscriber()
    await upload_document(harness, customer)
    form = {"decision": "reject", "reason": "Unreadable"}
    await officer.submit_action("kyc.reject", form, id=customer["id"])
    other = await console_clients.create_signed_in("A")
    response = await other.submit_action("kyc.reject", form, id=customer["id"])
    assert "customer&#39;s documents were already decided on" in response.text


async def test_restricted_customer_is_found_only_in_the_audit_log(
    officer: ConsoleClient, harness: Harness
) -> None:
    customer = await harness.create_restricted_subscriber(first_name="Hidden")
    await upload_document(harness, customer)
    queue = await officer.get_page_text("/console/kyc")
    assert "Hidden" not in queue
    audit_path = "/console/audit?event=subscriber.kyc_document_added"
    assert f'href="{audit_path}"' in queue
    audit = await officer.get_page_text(audit_path)
    assert customer["id"] in audit and "Hidden" not in audit
    response = await officer.get(f"/console/kyc/{customer['id']}")
    assert response.headers["Location"] == f"/console/subscribers/{customer['id']}"


async def test_review_is_only_for_compliance_and_system_admins(
    console_clients: ConsoleClients, harness: Harness
) -> None:
    customer = await harness.create_subscriber()
    await upload_document(harness, customer)
    for role in "SF":
        client = await console_clients.create_signed_in(role)
        for path in ("/console/kyc", "/console/kyc/next", f"/console/kyc/{customer['id']}"):
            assert (await client.get(path)).status_code == 403
        text = await client.get_page_text(f"/console/subscribers/{customer['id']}")
        assert "/console/kyc" not in text


async def test_customer_list_can_be_filtered_by_kyc_status(
    officer: ConsoleClient, harness: Harness
) -> None:
    waiting = await harness.create_subscriber(first_name="Waiting")
    await harness.create_subscriber(first_name="Other")
    await upload_document(harness, waiting)
    text = await officer.get_page_text("/console/subscribers?kyc_status=PENDING")
    assert "Waiting Kamara" in text and "Other Kamara" not in text
