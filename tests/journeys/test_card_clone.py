"""A card that signs its taps: personalized, used, copied, reported, blocked and replaced."""

from drivers.actors import Admin, Record, require_error, require_success
from drivers.deployments import Deployment
from harness import PIN
from tapgate_sandbox.software_card import SoftwareCard

CARD_FILE = """Serial No.,MAC Address
SUN-0001,04:A2:00:00:00:00:01
SUN-0002,04:A2:00:00:00:00:02
"""


def tap(chip: SoftwareCard) -> Record:
    proof = chip.tap()
    return {"picc_data": proof.picc_data, "cmac": proof.cmac}


async def create_keyset(ada: Admin, *, version: int) -> Record:
    created = await ada.post("cards/keysets", name="Own printer")
    assert created.status_code == 201, created.text
    record: Record = created.json()
    assert record["version"] == version
    return record


async def issue_card(ada: Admin, serial: str, keyset: Record) -> SoftwareCard:
    """Personalize a card and confirm its keys by the first tap."""
    issued = require_success(await ada.post(f"cards/{serial}/personalize", keyset_id=keyset["id"]))
    keys = issued["keys"]
    chip = SoftwareCard(*(bytes.fromhex(part) for part in (issued["uid"], keys["k2"], keys["k1"])))
    record = require_success(
        await ada.post(f"cards/{serial}/personalize/confirm", card_proof=tap(chip))
    )
    assert record["authenticity"] == "sun"
    return chip


async def test_copied_tap_is_rejected_and_the_card_replaced(
    deployment: Deployment, ada: Admin
) -> None:
    app = await ada.create_app()
    compliance = await ada.create_admin("Sorie", "C")
    terminal = (await ada.create_merchant("Kamara Stores")).server
    require_success(await ada.upload_csv(CARD_FILE))
    chip = await issue_card(ada, "SUN-0001", await create_keyset(ada, version=1))
    aminata, bank = await app.register_customer("Aminata Kamara"), await ada.create_partner()
    await app.link_card("SUN-0001", aminata)
    await ada.fund_partner(bank, "100.00")
    require_success(await bank.top_up("100.00", aminata, "first"))

    # The serial is no longer enough, and the tap names the card.
    assert require_error(await terminal.pay("10", "SUN-0001")) == (403, "CARD_PROOF_REQUIRED")
    proof = tap(chip)
    verified = await terminal.post("pos/verify-card", card_proof=proof, pin=PIN)
    assert require_success(verified)["balance"] == "100.00 SLE"
    paid = await terminal.post("pos/payment", card_proof=proof, amount="10.00", request_id="first")
    assert require_success(paid)["remaining_balance"] == "90.00 SLE"

    # A copy of the URL pays nothing, and neither does a chip without the keys.
    clone = SoftwareCard(bytes.fromhex("04A10000000001"), bytes(16), bytes(16), chip.counter)
    for copy, error in (
        (proof, (409, "CARD_PROOF_USED")),
        (tap(clone), (403, "CARD_NOT_GENUINE")),
    ):
        response = await terminal.pay("10", "SUN-0001", card_proof=copy)
        assert require_error(response) == error
    replayed = await terminal.post(
        "pos/payment", card_proof=tap(clone), amount="10.00", request_id="first"
    )
    assert replayed.json() == paid.json()
    (alert,) = await compliance.list_all("compliance/alerts", subscriber_id=aminata.id)
    assert (alert["alert_type"], alert["severity"], alert["occurrences"]) == (
        "CARD_CLONE_SUSPECTED",
        "HIGH",
        2,
    )
    taps = require_success(await compliance.get("cards/SUN-0001/taps"))["data"]
    assert [item["result"] for item in taps] == ["not_genuine", "used", "accepted", "accepted"]

    # The card is blocked and replaced.
    require_success(await compliance.post("cards/SUN-0001/block", reason="stolen"))
    blocked = await terminal.pay("10", "SUN-0001", card_proof=tap(chip))
    assert require_error(blocked) == (403, "CARD_NOT_ACTIVE")
    new_chip = await issue_card(ada, "SUN-0002", await create_keyset(ada, version=2))
    await app.link_card("SUN-0002", aminata)
    require_success(await terminal.pay("10", "SUN-0002", card_proof=tap(new_chip)))
    assert await aminata.get_balance() == "80.00"
    require_success(
        await compliance.post(
            f"compliance/alerts/{alert['id']}/resolve",
            status="resolved",
            resolution_notes="Card replaced",
        )
    )
