"""A day's questions in English, French and Krio, answered from the gateway's records."""

from builders.payments import create_agent
from drivers.messenger import MessengerDriver, ServicesDriver
from harness import PIN, parse_error
from tapgate_client import ids


async def test_customer_asks_everyday_questions_in_three_languages(
    services_driver: ServicesDriver,
) -> None:
    harness = services_driver.harness
    subscriber = await harness.create_subscriber(balance="1000.00")
    recipient = await harness.create_subscriber(first_name="Mary", last_name="Sesay")
    agent_id = await create_agent(harness)
    await harness.services.database.execute(
        "UPDATE agents SET business_name = 'Kargbo Shop', address = '5 Main St, Bo' WHERE id = $1",
        ids.decode(ids.AGENT, agent_id),
    )
    async with services_driver.run_messenger(support_hours="Mon-Sat 8:00-18:00") as messenger:
        phone = messenger.create_phone(subscriber["phone_number"])

        # English: the quote comes from the gateway, and the transfer needs no card.
        assert "Register" not in await phone.send_by_bridge("menu")
        quote = await phone.send_by_bridge("how much does it cost to send 500?")
        for part in ("500.00 SLE", "7.50 SLE", "507.50 SLE", "need your PIN", "today"):
            assert part in quote
        await phone.send_by_bridge(f"send 500 to {recipient['phone_number']}")
        await phone.send_by_bridge("yes")
        assert "492.50 SLE" in await phone.send_by_bridge(PIN)
        assert await services_driver.get_balance(recipient["id"]) == "500.00"
        history = await phone.send_by_bridge("history")
        assert "− 500.00 SLE · fee 7.50 SLE · Mary S." in history
        assert "Sesay" not in history
        assert "500.00 SLE of" in await phone.send_by_bridge("how much more can i send today")
        found = await phone.send_by_bridge("i sent money to the wrong number")
        assert "Which transfer went to the wrong person?" in found
        found = await phone.send_by_bridge("why was my payment declined?")
        assert "None of your recent payments" in found
        response = await harness.client.post(
            "/api/v1/wallet/transfer-p2p",
            json={
                "sender_id": subscriber["id"],
                "recipient_phone_number": recipient["phone_number"],
                "amount": "600",
                "pin": PIN,
                "request_id": "declined",
            },
            auth=await harness.create_api_key("payments:write"),
        )
        assert parse_error(response)[1] == "INSUFFICIENT_FUNDS"
        decline = await phone.send_by_bridge("why was my payment declined?")
        assert "*600.00 SLE* to Mary S." in decline and "wasn't enough money" in decline
        branding = {"support_contact": "help@example.com"}
        admin = await harness.create_admin("A")
        await harness.put("/api/v1/admin/branding", json=branding, auth=admin)
        contact = await phone.send_by_bridge("when are you open?")
        assert "Mon-Sat 8:00-18:00" in contact and "help@example.com" in contact

        # Krio is answered in English.
        assert "Kargbo Shop* · 5 Main St, Bo" in await phone.send_by_bridge("usay ejɛnt de na Bo?")
        assert "*7.50 SLE*" in await phone.send_by_bridge("omɔs fɔ sɛn 500?")

        # French: the recipient does not see the sender's fee.
        await ask_in_french(messenger, recipient["phone_number"])


async def ask_in_french(messenger: MessengerDriver, number: str) -> None:
    phone = messenger.create_phone(number)
    assert "500,00\xa0SLE" in await phone.send_by_bridge("quel est mon solde ?")
    quote = await phone.send_by_bridge("combien ça coûte d'envoyer 100 ?")
    assert "100,00\xa0SLE" in quote and "1,50\xa0SLE" in quote
    history = await phone.send_by_bridge("historique")
    assert "+ 500,00\xa0SLE" in history and "frais" not in history
    assert "Kargbo Shop" in await phone.send_by_bridge("où trouver un agent à Bo ?")
    found = await phone.send_by_bridge("pourquoi mon paiement a été refusé ?")
    assert "Aucun de vos derniers paiements" in found
