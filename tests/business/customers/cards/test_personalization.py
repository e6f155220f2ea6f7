"""Personalization: issued keys, confirmation by a tap, and new key versions."""

import asyncio
from typing import Any
from unittest.mock import ANY

import asyncpg
import pytest

from builders.approvals import approve, build_rule, get_approval, require_held, set_rules
from builders.card_proofs import (
    CARDS_URL,
    FILE_READ_KEY,
    META_READ_KEY,
    confirm,
    create_keyset,
    create_signing_card,
    encode_card,
    list_clone_alerts,
    list_taps,
    personalize,
    retire_keyset,
    tap,
)
from builders.participants import (
    create_card,
    create_webhook_endpoint,
    get_card,
    link_card,
    list_events,
)
from builders.payments import LOOKUP_URL, PosDriver
from harness import Harness, parse_error
from tapgate.business.customers.cards import keysets
from tapgate.ledger.card_proofs.issuer_keys import (
    derive_legacy_own_keys,
    derive_own_keys,
    split_own_keys,
)
from tapgate.ledger.card_proofs.sun import diversify_file_read_key
from tapgate_client import ids
from tapgate_sandbox.software_card import SoftwareCard

UID = "04:DE:5F:1E:AC:C0:40"


async def create_card_of_holder(harness: Harness, **fields: Any) -> str:
    return await harness.create_card((await harness.create_subscriber())["id"], **fields)


async def test_issued_keys_are_derived_from_the_keyset_and_the_card(harness: Harness) -> None:
    keyset = await create_keyset(harness, meta_read_key=META_READ_KEY, file_read_key=FILE_READ_KEY)
    cards = [await create_card(harness, uid=UID), await create_card_of_holder(harness)]
    issued, other = [(await personalize(harness, card, keyset)).json() for card in cards]
    assert (issued["uid"], issued["key_version"]) == ("04DE5F1EACC040", 1)
    file_read_key = diversify_file_read_key(
        bytes.fromhex(FILE_READ_KEY), bytes.fromhex(issued["uid"]), 1
    )
    assert issued["keys"]["k1"] == file_read_key.hex().upper()
    assert issued["keys"]["k2"] == other["keys"]["k2"] == META_READ_KEY
    own = [keys[f"k{number}"] for keys in (issued["keys"], other["keys"]) for number in (0, 3, 4)]
    assert len(set(own)) == 6
    assert all(len(bytes.fromhex(key)) == 16 for key in own)


async def test_own_keys_do_not_depend_on_the_secret_key(harness: Harness) -> None:
    keyset, card = await create_keyset(harness), await create_card(harness, uid=UID)
    issued = (await personalize(harness, card, keyset)).json()
    row = await harness.database.fetchrow("SELECT id, master_key FROM card_keysets")
    own_keys = derive_own_keys(harness.services.vault, *row, bytes.fromhex(issued["uid"]))
    for number, key in own_keys.items():
        assert issued["keys"][f"k{number}"] == key.hex().upper()
    card_id = await harness.database.fetchval("SELECT id FROM cards")
    legacy_keys = derive_legacy_keys(harness, card_id)
    assert not set(own_keys.values()) & set(legacy_keys.values())


@pytest.mark.parametrize(("hours", "status"), [(23, 200), (24, 422)])
async def test_tap_confirms_issued_keys_for_24_hours(
    harness: Harness, hours: int, status: int
) -> None:
    keyset, card = await create_keyset(harness), await create_card(harness, uid=UID)
    chip = await encode_card(harness, card, keyset)
    await harness.database.execute(
        "UPDATE cards SET pending_since = pending_since - make_interval(hours => $1, secs => 1)",
        hours,
    )
    assert (await confirm(harness, card, tap(chip))).status_code == status
    if status != 200:
        await personalize(harness, card, keyset)
        assert (await confirm(harness, card, tap(chip))).status_code == 200


async def test_keys_that_an_earlier_version_issued_expire_too(harness: Harness) -> None:
    keyset, card = await create_keyset(harness), await create_card(harness, uid=UID)
    chip = await encode_card(harness, card, keyset)
    await harness.database.execute("UPDATE cards SET pending_since = NULL")
    assert (await get_card(harness, card))["authenticity"] == "none"
    await harness.database.execute("UPDATE cards SET updated_at = updated_at - interval '25 hours'")
    assert parse_error(await confirm(harness, card, tap(chip))) == (422, "VALIDATION_FAILED")


def derive_legacy_keys(harness: Harness, card_id: int) -> dict[int, bytes]:
    vault = harness.services.vault
    return split_own_keys(derive_legacy_own_keys(vault, card_id, vault.key_id))


async def test_card_encoded_before_keysets_had_master_keys_keeps_its_keys(
    harness: Harness,
) -> None:
    keyset, old = await create_keyset(harness), await create_card(harness, uid=UID)
    await create_signing_card(harness, old, keyset)
    await harness.database.execute("UPDATE cards SET master_keyset_id = NULL")
    await harness.database.execute("UPDATE card_keysets SET master_key = NULL")
    card_id = await harness.database.fetchval("SELECT id FROM cards")
    issued = (await personalize(harness, old, keyset)).json()
    for number, key in derive_legacy_keys(harness, card_id).items():
        assert issued["keys"][f"k{number}"] == key.hex().upper()
    new = await create_card_of_holder(harness)
    first, second = [(await personalize(harness, new, keyset)).json() for _ in range(2)]
    assert first == second
    assert await harness.database.fetchval("SELECT master_key FROM card_keysets") is not None


async def test_keyset_cannot_be_retired_while_it_is_used(harness: Harness) -> None:
    keyset = await create_keyset(harness)
    keyset_id = ids.decode(ids.CARD_KEYSET, keyset["id"])
    for lock in (
        lambda tx: keysets.lock_for_use(tx, keyset_id, vault=harness.services.vault),
        keysets.lock_active,
    ):
        async with harness.services.transaction() as tx:
            await lock(tx)
            async with harness.services.transaction() as other:
                with pytest.raises(asyncpg.LockNotAvailableError):
                    await other.execute("SELECT FROM card_keysets FOR NO KEY UPDATE NOWAIT")


async def test_offsets_count_from_the_start_of_the_ndef_file(harness: Harness) -> None:
    harness.services.settings = harness.services.settings.replace(
        public_url="https://choose.url.com"
    )
    card = await create_card_of_holder(harness)
    issued = (await personalize(harness, card, await create_keyset(harness))).json()
    url = issued["ndef_url_template"]
    assert url == f"https://choose.url.com/t?picc_data={'0' * 32}&cmac={'0' * 16}"
    rest = url.removeprefix("https://").encode()
    record = b"\xd1\x01" + bytes([len(rest) + 1]) + b"U\x04" + rest
    file = len(record).to_bytes(2) + record
    offsets = issued["sdm"]
    assert file[offsets["picc_data_offset"] :].startswith(b"0" * 32 + b"&")
    assert file[offsets["mac_offset"] :] == b"0" * 16
    assert offsets["mac_input_offset"] == offsets["mac_offset"]


async def test_card_works_as_before_until_a_tap_confirms_its_keys(harness: Harness) -> None:
    pos = await PosDriver.create(harness)
    chip = await encode_card(harness, pos.card, await create_keyset(harness))
    assert (await get_card(harness, pos.card))["authenticity"] == "none"
    assert (await pos.pay()).status_code == 200
    body = {"card_proof": tap(chip)}
    for early in (
        await pos.pay(**body),
        await harness.post(LOOKUP_URL, json=body, auth=pos.merchant_auth),
    ):
        assert parse_error(early) == (403, "CARD_NOT_GENUINE")
        assert early.json()["details"] == {"reason": "keys_not_confirmed"}
    assert await list_clone_alerts(harness) == []
    response = await confirm(harness, pos.card, tap(chip))
    assert response.status_code == 200, response.text
    assert response.json() == await get_card(harness, pos.card)
    assert response.json()["authenticity"] == "sun"
    assert response.json()["last_counter"] == 2
    assert parse_error(await pos.pay()) == (403, "CARD_PROOF_REQUIRED")
    assert (await pos.pay(card_proof=tap(chip))).status_code == 200


async def test_interrupted_encoding_can_be_repeated(harness: Harness) -> None:
    card, keyset = await create_card_of_holder(harness), await create_keyset(harness)
    first, second = [(await personalize(harness, card, keyset)).json() for _ in range(2)]
    assert first == second
    other = await create_keyset(harness)
    changed = (await personalize(harness, card, other)).json()
    assert changed["keys"]["k0"] == first["keys"]["k0"]
    assert changed["keys"]["k1"] != first["keys"]["k1"]
    chip = await encode_card(harness, card, keyset)
    confirmed = await confirm(harness, card, tap(chip))
    assert confirmed.json()["keyset_id"] == keyset["id"]


async def test_new_key_version_ends_the_taps_of_the_previous_one(harness: Harness) -> None:
    pos = await PosDriver.create(harness)
    keyset = await create_keyset(harness)
    old_chip = await create_signing_card(harness, pos.card, keyset)
    old_chip.counter = 500
    assert (await pos.pay(card_proof=tap(old_chip))).status_code == 200
    issued = (await personalize(harness, pos.card, keyset)).json()
    assert issued["key_version"] == 2
    assert (await pos.pay(card_proof=tap(old_chip))).status_code == 200
    chip = await encode_card(harness, pos.card, keyset)
    early = await pos.pay(card_proof=tap(chip))
    assert early.json()["details"] == {"reason": "keys_not_confirmed"}
    assert await list_clone_alerts(harness) == []
    confirmed = await confirm(harness, pos.card, tap(chip))
    assert confirmed.json()["last_counter"] == 2
    assert parse_error(await pos.pay(card_proof=tap(old_chip))) == (403, "CARD_NOT_GENUINE")
    assert (await pos.pay(card_proof=tap(chip))).status_code == 200


async def test_confirmation_is_published_and_recorded(harness: Harness) -> None:
    card = await create_card_of_holder(harness)
    await create_webhook_endpoint(harness)
    chip = await encode_card(harness, card, await create_keyset(harness))
    record = (await confirm(harness, card, tap(chip))).json()
    assert await list_events(harness) == [("card.personalized", record)]
    # Another tap is consumed, but there is nothing left to confirm.
    repeated = await confirm(harness, card, tap(chip))
    assert repeated.json() == {**record, "last_counter": 2, "updated_at": ANY}
    assert len(await list_events(harness)) == 1
    (started,) = await harness.list_audit_entries(card, "card.personalization_started")
    assert started["changes"] == {"keyset_id": [None, record["keyset_id"]], "version": [None, 1]}
    (confirmed,) = await harness.list_audit_entries(card, "card.personalized")
    assert confirmed["changes"] == {
        "authenticity": ["none", "sun"],
        "keyset_id": [None, record["keyset_id"]],
        "last_counter": [None, 1],
    }
    taps = await list_taps(harness, card)
    assert [(item["counter"], item["terminal_id"], item["result"]) for item in taps] == [
        (2, None, "accepted"),
        (1, None, "accepted"),
    ]


async def test_keys_of_a_customers_card_need_an_approval(harness: Harness) -> None:
    pos = await PosDriver.create(harness, balance="100")
    genuine = await create_signing_card(harness, pos.card)
    keyset, stock = await create_keyset(harness), await create_card(harness, uid=UID)
    await set_rules(harness, build_rule("keysets"))
    assert (await personalize(harness, stock, keyset)).status_code == 200
    maker = await harness.create_admin()
    url, body = f"{CARDS_URL}/{pos.card}/personalize", {"keyset_id": keyset["id"]}
    held = require_held(await harness.post(url, json=body, auth=maker))
    assert held["resource_id"] == pos.customer["id"]
    assert (await pos.pay(card_proof=tap(genuine))).status_code == 200
    executed = await approve(harness, held)
    assert executed["status"] == "executed"
    assert executed["result"]["keys"] == "***"
    issued = (await get_approval(harness, held, maker))["result"]
    assert issued["keys"].keys() == {"k0", "k1", "k2", "k3", "k4"}


async def test_holder_is_told_about_new_keys(harness: Harness) -> None:
    holder = await harness.create_subscriber()
    card = await harness.create_card(holder["id"])
    chip = await encode_card(harness, card, await create_keyset(harness))
    for _ in range(2):  # the second tap changes nothing
        assert (await confirm(harness, card, tap(chip))).status_code == 200
    sent = await harness.list_pending_messages(holder["phone_number"], "card_changed")
    assert sorted(text for _, _, text in sent) == [
        "is being encoded again with new keys",
        "was encoded again and pays with new keys from now on",
    ]


async def test_keys_issued_before_the_link_cannot_be_confirmed_after_it(harness: Harness) -> None:
    keyset, card = await create_keyset(harness), await create_card(harness, uid=UID)
    chip = await encode_card(harness, card, keyset)
    assert (await link_card(harness, card, (await harness.create_subscriber())["id"])).is_success
    rejected = await confirm(harness, card, tap(chip))
    assert parse_error(rejected) == (422, "VALIDATION_FAILED")
    assert "before it was linked" in rejected.json()["details"]["fields"]["serial"]
    await personalize(harness, card, keyset)
    assert (await confirm(harness, card, tap(chip))).status_code == 200


async def test_confirmation_with_a_wrong_proof_is_rejected(harness: Harness) -> None:
    keyset = await create_keyset(harness)
    card, other = await create_card_of_holder(harness), await create_card_of_holder(harness)
    unprepared = await confirm(harness, card, tap(SoftwareCard(bytes(7), bytes(16), bytes(16))))
    assert parse_error(unprepared) == (403, "CARD_NOT_GENUINE")
    chip = await encode_card(harness, card, keyset)
    other_chip = await encode_card(harness, other, keyset)
    of_other_card = await confirm(harness, card, tap(other_chip))
    assert parse_error(of_other_card) == (422, "VALIDATION_FAILED")
    wrong = {**tap(chip), "cmac": "0" * 16}
    assert parse_error(await confirm(harness, card, wrong)) == (403, "CARD_NOT_GENUINE")
    assert (await get_card(harness, card))["authenticity"] == "none"
    (alert,) = await list_clone_alerts(harness)
    assert alert["details"]["card_serial"] == card


async def test_tap_confirms_once(harness: Harness) -> None:
    card = await create_card(harness, uid=UID)
    chip = await encode_card(harness, card, await create_keyset(harness))
    proof = tap(chip)
    responses = await asyncio.gather(*(confirm(harness, card, proof) for _ in range(4)))
    assert sorted(response.status_code for response in responses) == [200, 409, 409, 409]
    assert parse_error(await confirm(harness, card, proof)) == (409, "CARD_PROOF_USED")


async def test_keys_of_a_retired_keyset_cannot_be_confirmed(harness: Harness) -> None:
    card, keyset = await create_card_of_holder(harness), await create_keyset(harness)
    chip = await encode_card(harness, card, keyset)
    await retire_keyset(harness, keyset)
    assert parse_error(await confirm(harness, card, tap(chip))) == (403, "CARD_NOT_GENUINE")


async def test_card_without_a_uid_of_seven_bytes_cannot_be_personalized(harness: Harness) -> None:
    keyset = await create_keyset(harness)
    for uid in (None, "04:A2:B3:C4"):
        card = await create_card_of_holder(harness, uid=uid)
        response = await personalize(harness, card, keyset)
        assert parse_error(response) == (422, "VALIDATION_FAILED")
        assert set(response.json()["details"]["fields"]) == {"serial"}


async def test_last_key_version_cannot_be_replaced(harness: Harness) -> None:
    card, keyset = await create_card_of_holder(harness), await create_keyset(harness)
    await create_signing_card(harness, card, keyset)
    await harness.database.execute("UPDATE cards SET key_version = 254 WHERE serial = $1", card)
    chip = await encode_card(harness, card, keyset)
    assert (await confirm(harness, card, tap(chip))).status_code == 200
    response = await personalize(harness, card, keyset)
    assert parse_error(response) == (422, "VALIDATION_FAILED")


async def test_uploaded_cards_of_a_keyset_sign_their_taps(harness: Harness) -> None:
    keyset = await create_keyset(harness, meta_read_key=META_READ_KEY, file_read_key=FILE_READ_KEY)
    retired = await create_keyset(harness, "Old bureau")
    await retire_keyset(harness, retired)
    file = "\n".join(
        [
            "Serial No.,MAC Address,Keyset",
            f"SUN-1,04:DE:5F:1E:AC:C0:40,{keyset['id']}",
            "SUN-2,04:DE:5F:1E:AC:C0:41,Bureau",
            "SUN-3,04:DE:5F:1E:AC:C0:42,",
            "SUN-4,04:DE:5F:1E:AC:C0:43,Old bureau",
            "SUN-5,04:A2:B3:C4,Bureau",
            "SUN-6,,Bureau",
        ]
    )
    response = await harness.post(
        f"{CARDS_URL}/upload-csv",
        content=file,
        headers={"Content-Type": "text/csv"},
        auth=await harness.create_admin(),
    )
    assert response.json()["created"] == 3, response.text
    assert [error["serial"] for error in response.json()["errors"]] == ["SUN-4", "SUN-5", "SUN-6"]
    for serial, expected in (("SUN-1", keyset["id"]), ("SUN-2", keyset["id"]), ("SUN-3", None)):
        record = await get_card(harness, serial)
        assert record["keyset_id"] == expected
        assert record["authenticity"] == ("none" if expected is None else "sun")
        assert record["last_counter"] is None
    uid = bytes.fromhex("04DE5F1EACC040")
    file_read_key = diversify_file_read_key(bytes.fromhex(FILE_READ_KEY), uid, 1)
    chip = SoftwareCard(uid, bytes.fromhex(META_READ_KEY), file_read_key)
    confirmed = await confirm(harness, "SUN-1", tap(chip))
    assert confirmed.status_code == 200, confirmed.text
