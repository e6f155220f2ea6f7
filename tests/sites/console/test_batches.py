"""Batch pages: upload, problems, run and results."""

from builders.batches import create_funded_partner, pay_batches
from drivers.console import ConsoleClient, ConsoleClients
from harness import Harness

BATCHES_URL = "/console/batches"


async def create_batch(finance: ConsoleClient, action: str, **fields: str) -> str:
    """Create a batch on its form; return the path of its page."""
    created = await finance.submit_action(action, {"name": "Salaries May", **fields})
    assert "HX-Redirect" in created.headers, created.text
    return created.headers["HX-Redirect"]


async def upload(finance: ConsoleClient, path: str, content: bytes) -> str:
    response = await finance.post_file(f"{path}/lines", content)
    assert response.status_code == 200, response.text
    return response.text


async def test_batch_is_uploaded_checked_and_paid(
    console_clients: ConsoleClients, harness: Harness
) -> None:
    person = await harness.create_subscriber()
    partner = await create_funded_partner(harness)
    finance = await console_clients.create_signed_in("F")
    assert "No batches yet" in await finance.get_page_text(BATCHES_URL)
    path = await create_batch(finance, "batch.create", source_id=partner)
    phone = person["phone_number"]
    wrong = await upload(finance, path, b"phone_number,reference\n")
    assert "No lines uploaded" in wrong and "amount" in wrong
    lines = f"phone_number,amount,reference\n{phone},50,A\n{phone},fifty,B\n"
    assert await upload(finance, path, lines.encode()) == ""
    batch_id = path.rpartition("/")[2]
    await finance.submit_action("batch.validate", {}, id=batch_id)
    page = await finance.get_page_text(path)
    assert "Validated" in page and "Invalid lines" in page and "fifty" in page
    assert "Pay batch" in page and "Waits for its run" in page
    # The invalid line is listed once, with the label of its column.
    assert page.count("fifty") == 1 and "Amount: " in page

    await finance.submit_action("batch.run", {}, id=batch_id)
    page = await finance.get_page_text(path)
    assert "every 2s" in page and "Stop batch" in page
    assert "The valid lines are paid in the background." in page
    await pay_batches(harness)
    page = await finance.get_page_text(path)
    assert "Completed with errors" in page and "50.00" in page and "every 2s" not in page
    assert "Some lines were not paid." in page and "New batch" in page
    lines_page = await finance.get_page_text(f"{path}/lines?status=invalid")
    assert "fifty" in lines_page and phone in lines_page
    # The counts by status explain why an amount that is paid in full has errors.
    for text in ("All 2", "Paid 1", "Invalid 1", "Correct the value in the file.", "New batch"):
        assert text in lines_page, text
    assert "1 valid line" in page and "not in the total" in page
    every_line = await finance.get_page_text(f"{path}/lines")
    assert "50.00 SLE" in every_line and "/console/transactions/txn_" in every_line
    assert "fifty SLE" not in every_line
    file = await finance.get(f"{path}/file?status=paid")
    assert file.content.count(b"\r\n") == 2
    assert path in await finance.get_page_text(f"{BATCHES_URL}?status=completed_with_errors")


async def test_batch_from_cash_is_cancelled(
    console_clients: ConsoleClients, harness: Harness
) -> None:
    finance = await console_clients.create_signed_in("F")
    path = await create_batch(finance, "batch.create_platform", source_id="platform")
    assert "Cash" in await finance.get_page_text(path)
    await finance.submit_action("batch.cancel", {}, id=path.rpartition("/")[2])
    page = await finance.get_page_text(path)
    assert "Cancelled" in page and "Upload" not in page
