"""Payments and card checks with cards that sign their taps."""

import asyncio
from typing import Any

import msgspec
import pytest
from structlog.testing import capture_logs

from builders.card_proofs import (
    create_keyset,
    create_signing_card,
    create_signing_pos,
    list_clone_alerts,
    list_taps,
    retire_keyset,
    tap,
)
from builders.participants import (
    block_card,
    create_card,
    create_webhook_endpoint,
    get_card,
)
from builders.payments import (
    LOOKUP_URL,
    PAY_URL,
    VERIFY_URL,
    PosDriver,
    list_events,
    subscribe_to_events,
)
from cases import each
from harness import PIN, WRONG_PIN, Harness, parse_error
from server.gateway.fixtures import create_terminal_key
from tapgate.ledger.card_proofs.proof_verifier import ProofResult, ProofVerifier
from tapgate.ledger.card_proofs.sun import diversify_file_read_key
from tapgate.ledger.commands import Command, Outcome
from tapgate.ledger.decisions.state import State
from tapgate.ledger.engine import write
from tapgate.ledger.engine.group_commit import Ledger
from tapgate.ledger.rules.loaded_rules import RULES_CHANGED
from tapgate.runtime.store.database import Database
from tapgate.server.event_records import EVENT_RECORD_LOADERS
from tapgate_client import ids
from tapgate_client.schemas.card_proofs import CardProof
from tapgate_sandbox.software_card import SoftwareCard

IN_APP_URL = "/api/v1/payment"
UNKNOWN_CARD_PROOF = {"picc_data": "EF963FF7828658A599F3041510671E88", "cmac": "94EED9EE65337086"}
ZERO_KEYS = {"meta_read_key": "00" * 16, "file_read_key": "00" * 16}
TAP_URL = f"https://pay.example/t?picc_data={'0' * 32}&cmac={'0' * 16}"


async def get_counter(harness: Harness, serial: str) -> int:
    counter: int = (await get_card(harness, serial))["last_counter"]
    return counter


@each("url", [PAY_URL, IN_APP_URL, "/payment"])
async def test_signing_card_pays_with_a_proof_only(harness: Harness, url: str) -> None:
    pos, chip = await create_signing_pos(harness)
    assert parse_error(await pos.pay(url=url)) == (403, "CARD_PROOF_REQUIRED")
    paid = await pos.pay(url=url, card_proof=tap(chip))
    assert paid.status_code == 200, paid.text
    assert await pos.get_balance() == 900_00
    assert await get_counter(harness, pos.card) == chip.counter


async def test_proof_names_the_card(harness: Harness) -> None:
    pos, chip = await create_signing_pos(harness)
    proof = tap(chip)
    url = f"https://pay.example/t?picc_data={proof['picc_data'].lower()}&cmac={proof['cmac']}"
    assert (await pos.pay(card_serial=None, card_proof={"url": url})).status_code == 200
    other = await harness.create_card(pos.customer["id"])
    proof = tap(chip)
    forged = {**proof, "cmac": "0" * 16}
    for serial in (other, "UNKNOWN"):  # the error does not reveal whether the serial exists
        mismatch = await pos.pay(card_serial=serial, card_proof=proof)
        assert parse_error(mismatch) == (422, "VALIDATION_FAILED")
        forgery = await pos.pay(card_serial=serial, card_proof=forged)
        assert parse_error(forgery) == (403, "CARD_NOT_GENUINE")
    verified = await harness.post(
        VERIFY_URL, json={"card_proof": proof, "pin": PIN}, auth=pos.merchant_auth
    )
    assert verified.json()["is_active"] is True
    found = await harness.post(LOOKUP_URL, json={"card_proof": proof}, auth=pos.merchant_auth)
    assert found.json()["card_serial"] == pos.card
    for path, body in (
        (VERIFY_URL, {"card_serial": other, "pin": PIN}),
        (LOOKUP_URL, {"card_identifier": other}),
        (LOOKUP_URL, {"card_identifier": "UNKNOWN"}),
        (f"{IN_APP_URL}/verify-card", {"card_serial": other}),
    ):
        mismatch = await harness.post(
            path, json={**body, "card_proof": proof}, auth=pos.merchant_auth
        )
        assert parse_error(mismatch) == (422, "VALIDATION_FAILED")
        assert set(mismatch.json()["details"]["fields"]) == {"card_proof"}
        forgery = await harness.post(
            path, json={**body, "card_proof": forged}, auth=pos.merchant_auth
        )
        assert parse_error(forgery) == (403, "CARD_NOT_GENUINE")
    (alert,) = await list_clone_alerts(harness)  # of the forged proofs, which name no card
    assert "card_serial" not in alert["details"]


@each(
    "proof, status",
    [
        ({}, 400),
        ({"picc_data": "0" * 32}, 400),
        ({"cmac": "0" * 16}, 400),
        ({"picc_data": 5, "cmac": "0" * 16}, 400),
        ({"picc_data": "0" * 31, "cmac": "0" * 16}, 422),
        ({"picc_data": "0" * 32, "cmac": "x" * 16}, 422),
        ({"url": "https://pay.example/t"}, 422),
        ({"url": "https://pay.example/t?picc_data=1&cmac=2"}, 422),
        ({"url": "https://[/?picc_data=1"}, 422),
        ({"url": "x" * 501}, 422),
        ({"url": f"{TAP_URL}&cmac={'0' * 16}"}, 422),
        ({"url": f"{TAP_URL}&picc_data="}, 422),
        ({"url": f"{TAP_URL}\0"}, 422),
        ({"url": TAP_URL.replace("cmac", "cm\nac")}, 422),
        ({"url": TAP_URL, **UNKNOWN_CARD_PROOF}, 422),
        ({"url": TAP_URL, "cmac": "0" * 16}, 422),
    ],
)
async def test_malformed_proof_is_rejected(
    harness: Harness, proof: dict[str, Any], status: int
) -> None:
    pos = await PosDriver.create(harness)
    response = await pos.pay(card_proof=proof)
    assert response.status_code == status, response.text
    if status == 422:
        (field,) = response.json()["details"]["fields"]
        assert field == "card_proof.url" or "url" not in proof
    assert (await pos.pay(card_serial=None)).status_code == 400


async def test_tap_pays_once(harness: Harness) -> None:
    pos, chip = await create_signing_pos(harness)
    proof = tap(chip)
    responses = await asyncio.gather(*(pos.pay("10", card_proof=proof) for _ in range(8)))
    assert sorted(response.status_code for response in responses) == [200] + [409] * 7
    assert await pos.get_balance() == 990_00
    # Gaps in the counter are normal, but it must rise.
    early = tap(chip)
    chip.counter += 100
    assert (await pos.pay("10", card_proof=tap(chip))).status_code == 200
    assert parse_error(await pos.pay("10", card_proof=early)) == (409, "CARD_PROOF_USED")


async def test_replay_does_not_look_at_the_proof(harness: Harness) -> None:
    pos, chip = await create_signing_pos(harness)
    paid = await pos.pay(request_id="once", card_proof=tap(chip))
    for proof in (tap(chip), UNKNOWN_CARD_PROOF, None):
        replayed = await pos.pay(request_id="once", card_proof=proof)
        assert replayed.json() == paid.json()
        assert replayed.headers["Idempotent-Replayed"] == "true"
    assert await pos.get_balance() == 900_00
    assert await get_counter(harness, pos.card) == 2
    assert await list_clone_alerts(harness) == []


async def test_rejected_proof_records_no_transaction_and_leaves_the_request_id_free(
    harness: Harness,
) -> None:
    pos, chip = await create_signing_pos(harness)
    used = tap(chip)
    await pos.pay(card_proof=used)
    before = await harness.database.fetchval("SELECT count(*) FROM transactions")
    wrong = {**tap(chip), "cmac": "0" * 16}
    for proof, code in (
        (None, (403, "CARD_PROOF_REQUIRED")),
        (wrong, (403, "CARD_NOT_GENUINE")),
        (used, (409, "CARD_PROOF_USED")),
    ):
        # A wrong PIN is not reported, and does not count, because the proof is checked first.
        response = await pos.pay(request_id="free", card_proof=proof, pin=WRONG_PIN)
        assert parse_error(response) == code
    assert await harness.database.fetchval("SELECT count(*) FROM transactions") == before
    failures = await harness.database.fetchval("SELECT coalesce(sum(failures), 0) FROM pins")
    assert failures == 0
    assert (await pos.pay(request_id="free", card_proof=tap(chip))).status_code == 200


async def test_wrong_pin_and_card_checks_do_not_consume_the_tap(harness: Harness) -> None:
    pos, chip = await create_signing_pos(harness)
    proof = tap(chip)
    for _ in range(2):
        verified = await harness.post(
            VERIFY_URL,
            json={"card_serial": pos.card, "pin": PIN, "card_proof": proof},
            auth=pos.merchant_auth,
        )
        assert verified.status_code == 200, verified.text
    looked_up = await harness.post(
        LOOKUP_URL, json={"card_identifier": pos.card, "card_proof": proof}, auth=pos.merchant_auth
    )
    assert looked_up.status_code == 200
    wrong_pin = await pos.pay(card_proof=proof, pin=WRONG_PIN)
    assert parse_error(wrong_pin) == (400, "INVALID_PIN")
    assert await get_counter(harness, pos.card) == 1
    assert (await pos.pay(card_proof=proof, pin=PIN)).status_code == 200
    used = await harness.post(
        VERIFY_URL, json={"pin": PIN, "card_proof": proof}, auth=pos.merchant_auth
    )
    assert parse_error(used) == (409, "CARD_PROOF_USED")


async def test_recorded_decline_consumes_the_tap(harness: Harness) -> None:
    pos, chip = await create_signing_pos(harness, balance="5")
    proof = tap(chip)
    assert parse_error(await pos.pay("10", card_proof=proof)) == (402, "INSUFFICIENT_FUNDS")
    assert parse_error(await pos.pay("1", card_proof=proof)) == (409, "CARD_PROOF_USED")
    await block_card(harness, pos.card)
    assert parse_error(await pos.pay("1", card_proof=tap(chip))) == (403, "CARD_NOT_ACTIVE")
    assert await get_counter(harness, pos.card) == chip.counter


async def test_unlinked_card_consumes_taps_too(harness: Harness) -> None:
    pos = await PosDriver.create(harness)
    card = await create_card(harness, uid="04:DE:5F:1E:AC:C0:40")
    chip = await create_signing_card(harness, card)
    proof = tap(chip)
    declined = await pos.pay(card_serial=card, card_proof=proof)
    assert parse_error(declined) == (403, "CARD_NOT_ACTIVE")
    again = await pos.pay(card_serial=card, card_proof=proof)
    assert parse_error(again) == (409, "CARD_PROOF_USED")
    assert [entry["result"] for entry in await list_taps(harness, card)] == [
        "used",
        "accepted",
        "accepted",
    ]


async def test_unlinked_card_decline_keeps_the_usage_if_the_card_is_linked_concurrently(
    harness: Harness, monkeypatch: pytest.MonkeyPatch
) -> None:
    pos = await PosDriver.create(harness)
    card = await create_card(harness, uid="04:DE:5F:1E:AC:C0:40")
    chip = await create_signing_card(harness, card)
    update = write.update_unlinked_cards

    async def link_and_pay_first(tx: Any, state: State) -> None:
        """Change the card as another process does that links it and pays with it."""
        await harness.database.execute(
            """UPDATE cards SET account_id = linked.account_id, status = 'ACTIVE', type = 'PARENT',
                      subscriber_id = linked.subscriber_id, pin_holder_id = linked.pin_holder_id,
                      usage_day = '2030-01-01', day_unpinned = 10000
               FROM cards AS linked WHERE cards.serial = $1 AND linked.serial = $2""",
            card,
            pos.card,
        )
        await update(tx, state)

    monkeypatch.setattr(write, "update_unlinked_cards", link_and_pay_first)
    response = await pos.pay(card_serial=card, card_proof=tap(chip))
    assert parse_error(response)[:2] == (403, "CARD_NOT_ACTIVE")
    row = await harness.database.fetchrow(
        "SELECT day_unpinned, last_counter FROM cards WHERE serial = $1", card
    )
    assert tuple(row) == (10000, 2)


async def test_card_is_verified_only_with_a_proof_and_looked_up_without(harness: Harness) -> None:
    pos, chip = await create_signing_pos(harness)
    auth = pos.merchant_auth
    for path, body in (
        (VERIFY_URL, {"card_serial": pos.card, "pin": PIN}),
        (f"{IN_APP_URL}/verify-card", {"card_serial": pos.card}),
        ("/payment/verify-card", {"card_serial": pos.card}),
    ):
        response = await harness.post(path, json=body, auth=auth)
        assert parse_error(response) == (403, "CARD_PROOF_REQUIRED")
        response = await harness.post(path, json={**body, "card_proof": tap(chip)}, auth=auth)
        assert response.status_code == 200, response.text
    for path in (LOOKUP_URL, f"{IN_APP_URL}/lookup-card", "/payment/lookup-card"):
        response = await harness.post(path, json={"card_identifier": pos.card}, auth=auth)
        assert response.status_code == 200, response.text
        unknown = await harness.post(path, json={"card_proof": UNKNOWN_CARD_PROOF}, auth=auth)
        assert parse_error(unknown) == (403, "CARD_NOT_GENUINE")


async def test_unknown_uid_wrong_mac_and_retired_keyset_are_not_genuine(harness: Harness) -> None:
    keyset = await create_keyset(harness, **ZERO_KEYS)
    pos = await PosDriver.create(harness)
    for serial in (None, pos.card):  # a card that does not sign its taps has no valid proof
        response = await pos.pay(card_serial=serial, card_proof=UNKNOWN_CARD_PROOF)
        assert parse_error(response) == (403, "CARD_NOT_GENUINE")
    chip = await create_signing_card(harness, pos.card, keyset)
    wrong = {**tap(chip), "cmac": "0" * 16}
    assert parse_error(await pos.pay(card_proof=wrong)) == (403, "CARD_NOT_GENUINE")
    assert (await pos.pay(card_proof=tap(chip))).status_code == 200
    await retire_keyset(harness, keyset)
    for proof in (tap(chip), tap(chip)):
        assert parse_error(await pos.pay(card_proof=proof)) == (403, "CARD_NOT_GENUINE")


async def test_rejected_proofs_raise_one_open_alert_per_card(harness: Harness) -> None:
    pos, chip = await create_signing_pos(harness)
    await create_webhook_endpoint(harness)
    async with harness.services.transaction() as tx:
        await harness.services.signals.publish_and_wait(tx, RULES_CHANGED)
    terminal = await pos.create_terminal()
    proof = tap(chip)
    assert (await pos.pay(card_proof=proof, terminal_id=terminal)).status_code == 200
    for _ in range(3):
        await pos.pay(card_proof=proof, terminal_id=terminal)
    (alert,) = await list_clone_alerts(harness)
    assert (alert["severity"], alert["status"], alert["occurrences"]) == ("HIGH", "open", 3)
    assert alert["subscriber_id"] == pos.customer["id"]
    assert alert["details"] == {
        "card_serial": pos.card,
        "processor_id": await harness.get_processor_id(pos.merchant_auth),
        "terminal_id": terminal,
        "reason": "CARD_PROOF_USED",
        "counter": 2,
    }
    resolved = await harness.post(
        f"/api/v1/compliance/alerts/{alert['id']}/resolve",
        json={"status": "resolved", "resolution_notes": "Card replaced"},
        auth=await harness.create_admin("C"),
    )
    assert resolved.status_code == 200, resolved.text
    await pos.pay(card_proof={**proof, "cmac": "0" * 16}, url=IN_APP_URL)
    newest, _ = await list_clone_alerts(harness)
    assert newest["details"]["reason"] == "CARD_NOT_GENUINE"
    events = await harness.database.fetch(
        "SELECT type, subject_id FROM events WHERE type ~ 'created|clone' ORDER BY id"
    )
    assert [event["type"] for event in events] == ["alert.created", "card.clone_suspected"] * 2
    card_id = events[1]["subject_id"]
    records = await EVENT_RECORD_LOADERS["card"](harness.services, [card_id])
    assert msgspec.to_builtins(records[card_id]) == await get_card(harness, pos.card)


async def test_unknown_chip_raises_one_alert_without_a_card(harness: Harness) -> None:
    keyset = await create_keyset(harness, **ZERO_KEYS)
    file_read_key = diversify_file_read_key(bytes(16), bytes.fromhex("04DE5F1EACC040"), 1)
    chip = SoftwareCard(bytes.fromhex("04DE5F1EACC040"), bytes(16), file_read_key)
    pos = await PosDriver.create(harness)
    for response in (
        await pos.pay(card_serial=None, card_proof=tap(chip)),
        await pos.pay(card_proof=tap(chip)),
        await harness.post(LOOKUP_URL, json={"card_proof": tap(chip)}, auth=pos.merchant_auth),
    ):
        assert parse_error(response) == (403, "CARD_NOT_GENUINE")
    (alert,) = await list_clone_alerts(harness)
    assert (alert["subscriber_id"], alert["occurrences"]) == (None, 3)
    assert alert["details"]["uid"] == "04:DE:5F:1E:AC:C0:40"
    assert "card_serial" not in alert["details"]
    await retire_keyset(harness, keyset)


async def test_card_that_does_not_sign_its_taps_is_not_accused(harness: Harness) -> None:
    pos = await PosDriver.create(harness)
    await subscribe_to_events(harness)
    other = await PosDriver.create(harness)
    for card in (pos.card, other.card):
        response = await pos.pay(card_serial=card, card_proof=UNKNOWN_CARD_PROOF)
        assert parse_error(response) == (403, "CARD_NOT_GENUINE")
        body = {"card_identifier": card, "card_proof": UNKNOWN_CARD_PROOF}
        await harness.post(LOOKUP_URL, json=body, auth=pos.merchant_auth)
        assert await list_taps(harness, card) == []
    (alert,) = await list_clone_alerts(harness)
    assert (alert["occurrences"], alert["subscriber_id"]) == (4, None)
    assert alert["details"] == {
        "processor_id": await harness.get_processor_id(pos.merchant_auth),
        "reason": "CARD_NOT_GENUINE",
    }
    assert await list_events(harness, "card.clone_suspected") == []


async def test_in_app_payment_with_the_key_of_a_terminal_names_the_terminal(
    harness: Harness,
) -> None:
    pos, chip = await create_signing_pos(harness)
    auth = await create_terminal_key(harness, pos.merchant_auth)
    terminal = ids.encode(ids.TERMINAL, await harness.database.fetchval("SELECT id FROM terminals"))
    proof = tap(chip)
    for _ in range(2):
        await pos.pay("1", url=IN_APP_URL, auth=auth, card_proof=proof)
    (alert,) = await list_clone_alerts(harness)
    assert alert["details"]["terminal_id"] == terminal
    taps = await list_taps(harness, pos.card)
    assert [item["terminal_id"] for item in taps] == [terminal, terminal, None]


async def test_keyset_that_is_retired_during_a_payment_does_not_pay(
    harness: Harness, monkeypatch: pytest.MonkeyPatch
) -> None:
    pos = await PosDriver.create(harness)
    keyset = await create_keyset(harness)
    chip = await create_signing_card(harness, pos.card, keyset)
    submit = Ledger.submit

    async def retire_and_submit(ledger: Ledger, command: Command) -> Outcome:
        assert (await retire_keyset(harness, keyset)).status_code == 200
        return await submit(ledger, command)

    monkeypatch.setattr(Ledger, "submit", retire_and_submit)
    assert parse_error(await pos.pay(card_proof=tap(chip))) == (403, "CARD_NOT_GENUINE")
    assert await pos.get_balance() == 1_000_00


async def test_keyset_that_cannot_be_read_does_not_affect_others(harness: Harness) -> None:
    pos, chip = await create_signing_pos(harness)
    other, other_chip = await create_signing_pos(harness)
    card = await get_card(harness, other.card)
    await harness.database.execute(
        "UPDATE card_keysets SET keys = '\\x00' WHERE id = $1",
        ids.decode(ids.CARD_KEYSET, card["keyset_id"]),
    )
    with capture_logs() as lines:
        await create_keyset(harness, "Third")
        assert (await pos.pay(card_proof=tap(chip))).status_code == 200
        unreadable = await other.pay(card_proof=tap(other_chip))
    assert parse_error(unreadable) == (503, "SERVICE_UNAVAILABLE")
    assert await list_clone_alerts(harness) == []
    events = [line for line in lines if line["event"] == "cards.keyset_unreadable"]
    assert [line["keyset_id"] for line in events] == [card["keyset_id"]]
    wrong = {**tap(chip), "cmac": "0" * 16}
    assert parse_error(await pos.pay(card_proof=wrong)) == (403, "CARD_NOT_GENUINE")


async def test_taps_of_a_card_are_listed(harness: Harness) -> None:
    pos, chip = await create_signing_pos(harness)
    terminal = await pos.create_terminal()
    proof = tap(chip)
    await pos.pay(card_proof=proof, terminal_id=terminal)
    await pos.pay(card_proof=proof, terminal_id=terminal)
    await pos.pay(card_proof={**tap(chip), "cmac": "0" * 16})
    await pos.pay(card_proof={"picc_data": "0" * 32, "cmac": "0" * 16})
    taps = await list_taps(harness, pos.card)
    assert [(item["counter"], item["terminal_id"], item["result"]) for item in taps] == [
        (None, None, "not_genuine"),
        (3, None, "not_genuine"),
        (2, terminal, "used"),
        (2, terminal, "accepted"),
        (1, None, "accepted"),
    ]
    assert [item["terminal_name"] for item in taps] == [None, None, "Till", "Till", None]
    assert set(taps[0]) == {"at", "counter", "terminal_id", "terminal_name", "result"}


async def test_at_most_100_taps_are_kept(harness: Harness) -> None:
    pos, chip = await create_signing_pos(harness)
    proof = {**tap(chip), "cmac": "0" * 16}
    await harness.database.execute(
        """INSERT INTO card_taps
           SELECT id, n, now(), n, NULL, 'used' FROM cards, generate_series(1, 120) AS n
           WHERE serial = $1""",
        pos.card,
    )
    await pos.pay(card_proof=proof)
    assert await harness.database.fetchval("SELECT count(*) FROM card_taps") == 100
    assert len(await list_taps(harness, pos.card)) == 100


async def test_account_rule_requires_a_proof_above_an_amount(harness: Harness) -> None:
    pos = await PosDriver.create(harness)
    admin = await harness.create_admin()
    url = "/api/v1/account-rules/1"
    assert (await harness.get(url, auth=admin)).json()["proof_required_above"] is None
    updated = await harness.put(url, json={"proof_required_above": "50"}, auth=admin)
    assert updated.json()["proof_required_above"] == "50.00"
    assert (await pos.pay("50.00")).status_code == 200
    quote = {"type": "pos_payment", "amount": "50.01", "card_serial": pos.card}
    quoted = await harness.post("/api/v1/wallet/quote", json=quote, auth=admin)
    assert quoted.json()["reasons"] == ["CARD_PROOF_REQUIRED"]
    for path in (PAY_URL, IN_APP_URL):
        response = await pos.pay("50.01", url=path)
        assert parse_error(response) == (403, "CARD_PROOF_REQUIRED")
    chip = await create_signing_card(harness, pos.card)
    quoted = await harness.post("/api/v1/wallet/quote", json=quote, auth=admin)
    assert quoted.json()["allowed"] is True
    assert (await pos.pay("50.01", card_proof=tap(chip))).status_code == 200
    unchanged = await harness.put(url, json={"no_pin_limit": "500"}, auth=admin)
    assert unchanged.json()["proof_required_above"] == "50.00"
    cleared = await harness.put(url, json={"proof_required_above": ""}, auth=admin)
    assert cleared.json()["proof_required_above"] is None
    other = await PosDriver.create(harness)
    assert (await other.pay("50.01")).status_code == 200
    invalid = await harness.put(url, json={"proof_required_above": "x"}, auth=admin)
    assert invalid.status_code == 422


async def test_child_card_signs_its_taps_too(harness: Harness) -> None:
    pos = await PosDriver.create(harness)
    child = await harness.create_card(pos.customer["id"], type="CHILD", daily_limit=50_00)
    chip = await create_signing_card(harness, child)
    assert (await pos.pay("30", card_serial=None, card_proof=tap(chip))).status_code == 200
    declined = await pos.pay("30", card_serial=None, card_proof=tap(chip))
    assert parse_error(declined) == (403, "CARD_LIMIT_EXCEEDED")


async def test_keysets_of_other_names_do_not_disturb(harness: Harness) -> None:
    for number in range(3):
        await create_keyset(harness, f"Bureau {number}")
    pos, chip = await create_signing_pos(harness)
    for _ in range(3):
        assert (await pos.pay("1", card_serial=None, card_proof=tap(chip))).status_code == 200


async def test_proof_is_verified_while_changes_cannot_be_received(
    harness: Harness, monkeypatch: pytest.MonkeyPatch
) -> None:
    pos, chip = await create_signing_pos(harness)
    assert (await pos.pay("1", card_proof=tap(chip))).status_code == 200
    monkeypatch.setattr(type(harness.services.signals), "is_listening", False)
    await harness.database.execute("UPDATE card_keysets SET status = 'retired'")
    assert parse_error(await pos.pay("1", card_proof=tap(chip))) == (403, "CARD_NOT_GENUINE")


async def test_proof_adds_no_statement_to_a_payment(harness: Harness) -> None:
    pos, chip = await create_signing_pos(harness)
    plain = await PosDriver.create(harness)
    await pos.pay("1", card_proof=tap(chip))
    await plain.pay("1")
    counts = []
    for payer, proof in ((plain, None), (pos, tap(chip))):
        async with harness.services.ledger.database.connection() as connection:
            statements: list[str] = []
            connection.add_query_logger(lambda query, found=statements: found.append(query.query))
        response = await payer.pay("1", card_proof=proof)
        assert response.status_code == 200
        counts.append(len(statements))
    assert counts[0] == counts[1] > 0


async def test_every_altered_bit_is_rejected_by_the_verifier(harness: Harness) -> None:
    pos, chip = await create_signing_pos(harness)
    verifier = harness.services.proof_verifier
    proof = tap(chip)
    assert (await verifier.verify(CardProof(**proof))).card_serial == pos.card
    for name, digits in proof.items():
        for bit in range(4 * len(digits)):
            altered = f"{int(digits, 16) ^ 1 << bit:0{len(digits)}X}"
            assert not (await verifier.verify(CardProof(**{**proof, name: altered}))).is_signed
    assert (await verifier.verify(CardProof(**proof))).is_signed


async def test_concurrent_proofs_are_verified_independently(
    harness: Harness, monkeypatch: pytest.MonkeyPatch
) -> None:
    keyset = await create_keyset(harness)
    drivers = [await PosDriver.create(harness) for _ in range(3)]
    chips = [await create_signing_card(harness, pos.card, keyset) for pos in drivers]
    verifier = harness.services.proof_verifier
    for chip in chips:  # caches the cards
        assert (await verifier.verify(chip.tap())).is_signed
    failing, canceled, forged, valid = *(chip.tap() for chip in chips), chips[0].tap()
    forged.cmac = "0" * 16
    decode = CardProof.decode

    def decode_or_fail(proof: CardProof) -> tuple[bytes, bytes]:
        if proof is failing:
            raise RuntimeError
        return decode(proof)

    monkeypatch.setattr(CardProof, "decode", decode_or_fail)
    tasks = [
        asyncio.create_task(verifier.verify(proof)) for proof in (failing, canceled, forged, valid)
    ]
    await asyncio.sleep(0)
    tasks[1].cancel()
    failed, ended, rejected, accepted = await asyncio.gather(*tasks, return_exceptions=True)
    assert isinstance(failed, RuntimeError)
    assert isinstance(ended, asyncio.CancelledError)
    assert rejected == ProofResult(drivers[2].card, chips[2].counter)
    assert isinstance(accepted, ProofResult)
    assert (accepted.card_serial, accepted.counter) == (drivers[0].card, chips[0].counter)
    assert accepted.is_signed


async def test_cards_are_loaded_together_and_again_after_an_error(
    harness: Harness, monkeypatch: pytest.MonkeyPatch
) -> None:
    # With several keysets, a tap that decrypts by chance with a wrong one would be looked up too.
    keyset = await create_keyset(harness)
    cards = [(await PosDriver.create(harness)).card for _ in range(3)]
    chips = [await create_signing_card(harness, card, keyset) for card in cards]
    verifier = ProofVerifier(harness.database, harness.services.signals, harness.services.vault)
    statements: list[tuple[object, ...]] = []
    fetch = Database.fetch

    async def count_statements(database: Database, sql: str, *arguments: object) -> Any:
        statements.append(arguments)
        if len(statements) == 2:
            raise ConnectionError
        return await fetch(database, sql, *arguments)

    monkeypatch.setattr(Database, "fetch", count_statements)
    await verifier.decrypt(chips[0].tap())  # loads the keysets
    for error in (ConnectionError, None):
        proofs = [chip.tap() for chip in chips for _ in range(2)]
        results = await asyncio.gather(
            *(verifier.verify(proof) for proof in proofs), return_exceptions=True
        )
        if error is not None:
            assert {type(result) for result in results} == {error}
        else:
            assert all(isinstance(item, ProofResult) and item.is_signed for item in results)
    assert len(statements) == 3
    assert len(statements[2][0]) == 3  # type: ignore[arg-type]


async def test_proof_without_any_keyset_is_not_genuine(harness: Harness) -> None:
    pos = await PosDriver.create(harness)
    chip = SoftwareCard(bytes(7), bytes(16), bytes(16))
    response = await pos.pay(card_serial=None, card_proof=tap(chip))
    assert parse_error(response) == (403, "CARD_NOT_GENUINE")
