"""A proof from the chat to its verification, without the database."""

import json
import zlib
from base64 import urlsafe_b64decode

from builders.recalls import send_p2p
from drivers.messenger import MessengerDriver, ServicesDriver
from tapgate.business.finance.day_close.verify_receipt import verify_proof
from tapgate_client.clock import get_platform_day


async def test_customer_gets_a_proof_that_anyone_can_verify(
    services_driver: ServicesDriver, messenger: MessengerDriver
) -> None:
    harness = services_driver.harness
    sender = await harness.create_subscriber(balance="1000.00")
    receiver = await harness.create_subscriber()
    sent = await send_p2p(harness, sender, receiver, "100")
    services = harness.services
    day = get_platform_day(services.clock(), services.settings.timezone)
    harness.advance_clock(days=1)
    messenger.services.clock = services.clock
    phone = messenger.create_phone(sender["phone_number"])
    await phone.send_text("proof")
    assert "not closed yet" in await phone.tap_option("100.00 SLE")
    auth = await harness.create_admin("F")
    closed = await harness.post(f"/api/v1/ledger/days/{day}/close", auth=auth)
    assert closed.status_code == 200, closed.text

    await phone.send_text("proof")
    packed = (await phone.tap_option("100.00 SLE")).rpartition("/verify#")[2]
    content = zlib.decompress(urlsafe_b64decode(packed + "=" * (-len(packed) % 4)))
    proof = json.loads(content)
    assert proof["transaction_id"] == sent
    assert "totals" not in proof["day"]
    keys = (await harness.get("/.well-known/tapgate-keys")).json()
    assert sent in verify_proof(proof, keys["keys"])
