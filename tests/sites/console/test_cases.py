"""Disputes, recalls and float requests: lists, and cases with the customer beside them."""

import re

from builders import disputes
from builders.float_requests import create_float_request
from builders.participants import create_agent
from builders.recalls import recall, send_p2p
from drivers.console import ConsoleClient, ConsoleClients
from harness import Harness


async def test_dispute_shows_both_sides_and_the_customer(
    console_clients: ConsoleClients, harness: Harness
) -> None:
    driver = await disputes.create_driver(harness)
    dispute = await driver.create_dispute("85.00", description="Nothing <b>arrived</b>")
    officer = await console_clients.create_signed_in("C")
    url = f"/console/disputes/{dispute['id']}"
    text = await officer.get_page_text(url)
    name = "{first_name} {last_name}".format(**driver.customer)
    assert f"{name} contests a payment of 85.00 SLE at " in text
    assert "Not received: Nothing &lt;b&gt;arrived&lt;/b&gt;" in (await officer.get(url)).text
    assert "can answer until" in text and "Recent activity" in text
    assert "Refund 85.00 SLE" in text and "Refunded before" not in text
    assert (await driver.act(dispute, "respond", text="It was sent")).status_code == 200
    answered = await officer.get_page_text(url)
    assert "It was sent" in answered and "can answer until" not in answered
    assert "has answered. Waits for a decision by compliance." in answered


async def test_recall_shows_the_transfer_and_the_recipient(
    console_clients: ConsoleClients, harness: Harness
) -> None:
    sender = await harness.create_subscriber(first_name="Yabom", balance="500")
    receiver = await harness.create_subscriber(first_name="Memunatu")
    transfer = await send_p2p(harness, sender, receiver, "60")
    opened = (await recall(harness, transfer, reason="Wrong number")).json()
    officer = await console_clients.create_signed_in("C")
    text = await officer.get_page_text(f"/console/recalls/{opened['id']}")
    assert "Yabom Kamara asks for 60.00 SLE back from Memunatu Kamara." in text
    assert "Memunatu Kamara can return or keep the money until" in text
    assert "60.00 SLE on hold" in text and "Wrong number" in text
    assert f'/console/subscribers/{receiver["id"]}"' in text
    (row,) = await list_rows(officer, "/console/recalls")
    assert f'/console/recalls/{opened["id"]}"' in row and "Wrong number" in row
    assert "Yabom Kamara" in row and "Memunatu Kamara" in row and "recall.return" in row


async def list_rows(client: ConsoleClient, path: str) -> list[str]:
    page = (await client.get(path)).text
    return re.findall(r"<tr>.*?</tr>", page.partition('<tbody id="rows">')[2], re.DOTALL)


async def test_lists_name_the_parties_unless_one_is_restricted(
    console_clients: ConsoleClients, harness: Harness
) -> None:
    driver = await disputes.create_driver(harness)
    dispute = await driver.create_dispute()
    receiver = await harness.create_subscriber(first_name="Memunatu")
    payer = await harness.create_subscriber(first_name="Yabom", balance="500")
    opened = (await recall(harness, await send_p2p(harness, payer, receiver))).json()
    finance = await console_clients.create_signed_in("F")
    officer = await console_clients.create_signed_in("C")
    (row,) = await list_rows(officer, "/console/disputes")
    name = "{first_name} {last_name}".format(**driver.customer)
    assert name in row and dispute["processor_name"] in row and "dispute.refund" in row
    assert "dispute.refund" not in (await list_rows(finance, "/console/disputes"))[0]
    export = await officer.get("/console/export/disputes")
    assert name in export.text and dispute["id"] in export.text
    assert await list_rows(officer, f"/console/disputes?subscriber_id={driver.customer['id']}")
    other = f"subscriber_id={receiver['id']}"
    assert dispute["id"] not in (await officer.get(f"/console/disputes?{other}")).text
    assert dispute["id"] not in (await officer.get(f"/console/export/disputes?{other}")).text
    await harness.database.execute("UPDATE subscribers SET restricted = true")
    (masked,) = await list_rows(officer, "/console/disputes")
    assert name not in masked and "restricted" in masked and dispute["id"] in masked
    assert name not in (await officer.get("/console/export/disputes")).text
    (masked,) = await list_rows(officer, "/console/recalls")
    assert opened["id"] in masked and "restricted" in masked
    assert "Yabom" not in masked and "Memunatu" not in masked


async def test_open_float_requests_show_the_current_float_and_can_be_funded(
    console_clients: ConsoleClients, harness: Harness
) -> None:
    agent = await create_agent(harness, balance="35")
    item = await create_float_request(harness, agent, "200")
    finance = await console_clients.create_signed_in("F")
    (row,) = await list_rows(finance, "/console/float-requests")
    assert "35.00 SLE" in row and "+200.00 SLE" in row
    assert f"float_request.fund?id={item['id']}" in row
    detail = await finance.get_page_text(f"/console/float-requests/{item['id']}")
    assert "235.00 SLE" in detail and "+571%" in detail
    support = await console_clients.create_signed_in("S")
    assert "float_request.fund" not in (await list_rows(support, "/console/float-requests"))[0]
