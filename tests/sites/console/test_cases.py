"""Case pages of disputes and recalls: the story, the evidence, and the customer beside it."""

from builders import disputes
from builders.recalls import recall, send_p2p
from drivers.console import ConsoleClients
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
    listed = await officer.get_page_text("/console/recalls")
    assert f'/console/recalls/{opened["id"]}"' in listed and "Wrong number" in listed
