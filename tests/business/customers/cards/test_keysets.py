"""Keysets: creation, versions, retirement, and the secrecy of their keys."""

from builders.card_proofs import (
    CARDS_URL,
    FILE_READ_KEY,
    META_READ_KEY,
    create_keyset,
    create_signing_card,
    personalize,
    retire_keyset,
)
from cases import each
from harness import Harness, parse_error
from tapgate.ledger.card_proofs.issuer_keys import IssuerKeys
from tapgate_client import ids


async def test_keyset_is_created_with_generated_keys(harness: Harness) -> None:
    first, second = [await create_keyset(harness, name) for name in ("Bureau", "Own printer")]
    assert first["id"].startswith("cks_")
    assert set(first) == {"id", "name", "version", "kcv", "status", "cards", "created_at"}
    assert (first["name"], first["version"], first["status"]) == ("Bureau", 1, "active")
    assert first["kcv"] != second["kcv"]
    assert len(first["kcv"]) == len(second["kcv"]) == 12


async def test_keys_are_imported_and_stored_sealed(harness: Harness) -> None:
    keyset = await create_keyset(
        harness, meta_read_key="00" * 16, file_read_key=FILE_READ_KEY.lower()
    )
    assert keyset["kcv"][:6] == "66E94B"
    keyset_id = ids.decode(ids.CARD_KEYSET, keyset["id"]) or 0
    sealed = await harness.database.fetchval(
        "SELECT keys FROM card_keysets WHERE id = $1", keyset_id
    )
    keys = IssuerKeys.open(harness.services.vault, keyset_id, sealed)
    assert keys == (bytes(16), bytes.fromhex(FILE_READ_KEY))
    assert bytes.fromhex(FILE_READ_KEY) not in sealed


async def test_keyset_with_the_same_name_is_the_next_version(harness: Harness) -> None:
    created = [await create_keyset(harness) for _ in range(3)]
    assert [keyset["version"] for keyset in created] == [1, 2, 3]
    listed = await harness.get(f"{CARDS_URL}/keysets", auth=await harness.create_admin())
    assert listed.json() == {"data": created[::-1], "has_more": False, "next_cursor": None}


async def test_retired_keyset_cannot_be_used_or_retired_again(harness: Harness) -> None:
    keyset = await create_keyset(harness)
    retired = await retire_keyset(harness, keyset)
    assert retired.json() == {**keyset, "status": "retired"}
    assert parse_error(await retire_keyset(harness, keyset)) == (409, "KEYSET_RETIRED")
    card = await harness.create_card((await harness.create_subscriber())["id"])
    assert parse_error(await personalize(harness, card, keyset)) == (409, "KEYSET_RETIRED")
    entries = await harness.list_audit_entries(keyset["id"], "keyset.retired")
    assert [entry["changes"] for entry in entries] == [{"status": ["active", "retired"]}]


async def test_retirement_confirms_the_number_of_cards_that_stop(harness: Harness) -> None:
    keyset, other = await create_keyset(harness), await create_keyset(harness)
    admin = await harness.create_admin()
    for issuer in (keyset, keyset, other):
        card = await harness.create_card((await harness.create_subscriber())["id"])
        await create_signing_card(harness, card, issuer)
    read = await harness.get(f"{CARDS_URL}/keysets/{keyset['id']}", auth=admin)
    assert read.json() == {**keyset, "cards": 2}
    listed = await harness.get(f"{CARDS_URL}/keysets", auth=admin)
    assert [item["cards"] for item in listed.json()["data"]] == [1, 2]
    for count in (1, 3, -1, "2"):
        refused = await retire_keyset(harness, keyset, cards=count)
        assert refused.status_code in (400, 422)
        assert "cards" in refused.text
    retired = await retire_keyset(harness, keyset, cards=2)
    assert retired.json() == {**keyset, "cards": 2, "status": "retired"}


async def test_unknown_keyset_is_not_found(harness: Harness) -> None:
    unknown = {"id": ids.encode(ids.CARD_KEYSET, 1)}
    card = await harness.create_card((await harness.create_subscriber())["id"])
    assert parse_error(await retire_keyset(harness, unknown)) == (404, "KEYSET_NOT_FOUND")
    assert parse_error(await personalize(harness, card, unknown)) == (404, "KEYSET_NOT_FOUND")
    malformed = await personalize(harness, card, {"id": "cks_1"})
    assert parse_error(malformed) == (404, "KEYSET_NOT_FOUND")


@each("key", ["", META_READ_KEY[:-1], META_READ_KEY + "0", "G" * 32, "٣" * 32])
async def test_key_must_have_32_hex_digits(harness: Harness, key: str) -> None:
    response = await harness.post(
        f"{CARDS_URL}/keysets",
        json={"name": "Bureau", "meta_read_key": key},
        auth=await harness.create_admin(),
    )
    assert parse_error(response) == (422, "VALIDATION_FAILED")
    assert key == "" or key not in response.text


async def test_no_audit_entry_contains_the_keys(harness: Harness) -> None:
    keyset = await create_keyset(harness, meta_read_key=META_READ_KEY, file_read_key=FILE_READ_KEY)
    (entry,) = await harness.list_audit_entries(keyset["id"], "keyset.created")
    assert META_READ_KEY not in str(entry)
    assert FILE_READ_KEY not in str(entry)
