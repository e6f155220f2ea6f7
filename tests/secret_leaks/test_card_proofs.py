"""Tap proofs and card keys appear in no log, table or response."""

from builders.card_proofs import create_keyset, create_signing_card, tap
from builders.payments import VERIFY_URL, PosDriver
from harness import PIN, Harness, parse_error
from secret_leaks.detector import LeakDetector


async def test_proofs_and_keys_of_cards_do_not_leak(
    leak_detector: LeakDetector, harness: Harness
) -> None:
    pos = await PosDriver.create(harness)
    await create_keyset(harness, "Imported", meta_read_key="A1" * 16, file_read_key="B2" * 16)
    chip = await create_signing_card(harness, pos.card)
    proof = tap(chip)
    assert (await pos.pay(card_proof=proof)).status_code == 200
    assert parse_error(await pos.pay(card_proof=proof)) == (409, "CARD_PROOF_USED")
    invalid = {**tap(chip), "cmac": "not hex digits!!"}
    assert parse_error(await pos.pay(card_proof=invalid)) == (422, "VALIDATION_FAILED")
    wrong = {**tap(chip), "cmac": "0123456789ABCDEF"}
    body = {"card_proof": wrong, "pin": PIN}
    response = await harness.post(VERIFY_URL, json=body, auth=pos.merchant_auth)
    assert parse_error(response) == (403, "CARD_NOT_GENUINE")
    assert {"picc_data", "cmac", "k0", "meta_read_key"} <= leak_detector.secrets.kinds
