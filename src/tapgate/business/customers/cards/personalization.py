"""Personalization: the keys that an encoder writes to a card's chip, and their first tap.

The keys are issued first and confirmed by a tap. Until then, the card works as before, so that an
interrupted encoding can be repeated.
"""

from datetime import timedelta
from typing import Final

import msgspec

from tapgate.auth.actors import Actor
from tapgate.business.customers.cards import keysets, model, operations, queries, tap_history
from tapgate.business.customers.cards.model import Card
from tapgate.business.customers.cards.uids import is_signing_uid
from tapgate.core.settings import Settings
from tapgate.core.vault import Vault
from tapgate.events.audit.trail import AuditTrail
from tapgate.events.webhooks.webhook_events import publish
from tapgate.ledger.card_proofs.issuer_keys import (
    IssuerKeys,
    build_own_keys_context,
    derive_legacy_own_keys,
    derive_own_keys,
    split_own_keys,
)
from tapgate.ledger.card_proofs.proof_verifier import (
    OTHER_CARD_MESSAGE,
    DecryptedProof,
    find_proof_error,
)
from tapgate.ledger.card_proofs.sun import MAX_KEY_VERSION
from tapgate.runtime.store.database import RaiseAfterCommit
from tapgate.runtime.store.installation import get_first_key_id
from tapgate.runtime.store.transaction import Transaction
from tapgate_client import ids
from tapgate_client.errors import invalid_field
from tapgate_client.schemas.card_proofs import (
    CardAuthenticity,
    CardKeys,
    KeysetStatus,
    Personalization,
    SdmOffsets,
)

_trail = AuditTrail("card")

#: Age up to which a tap confirms issued keys. Personalizing the card again issues the same keys.
ISSUED_KEYS_LIFETIME: Final = timedelta(hours=24)

#: Query string in the chip's URL. The chip replaces the zeros at every tap.
_URL_QUERY: Final = f"/t?picc_data={'0' * 32}&cmac={'0' * 16}"
#: Bytes in the NDEF file before the URL without its scheme: the message length, the record header,
#: and one byte for the scheme.
_NDEF_HEADER_BYTES: Final = 7


async def personalize(
    tx: Transaction,
    actor: Actor,
    serial: str,
    keyset_id: str,
    *,
    vault: Vault,
    settings: Settings,
) -> Personalization:
    """Issue keys for a card. Repeating this before the confirmation issues the same keys again."""
    card = await _lock_card(tx, actor, serial)
    keyset = await keysets.lock_for_use(tx, ids.decode(ids.CARD_KEYSET, keyset_id), vault=vault)
    keyset.require_active()
    uid = _require_signing_uid(card)
    version = card.pending_key_version or (card.key_version or 0) + 1
    if version > MAX_KEY_VERSION:
        raise invalid_field("serial", f"must not have {MAX_KEY_VERSION} key versions already")
    was_encoded = (card.keyset_id or card.pending_keyset_id) is not None
    after = msgspec.structs.replace(
        card,
        pending_keyset_id=keyset.id,
        pending_key_version=version,
        pending_since=tx.now(),
        master_keyset_id=card.master_keyset_id if was_encoded else keyset.id,
        updated_at=tx.now(),
    )
    await queries.save_keys(tx, after)
    await _trail.record(
        tx,
        actor,
        serial,
        "personalization_started",
        changes={"keyset_id": (None, keysets.to_record(keyset).id), "version": (None, version)},
    )
    await operations.send_change_notice(tx, after, "keys_issued", settings.currency)
    own_keys = await _derive_own_keys(tx, after, uid, vault)
    issuer_keys = IssuerKeys.open(vault, keyset.id, keyset.keys)
    keys = issuer_keys.build_card_keys(uid, version, own_keys)
    return Personalization(
        uid=uid.hex().upper(),
        key_version=version,
        keys=CardKeys(**{f"k{number}": key.hex().upper() for number, key in enumerate(keys)}),
        ndef_url_template=settings.public_url + _URL_QUERY,
        sdm=_compute_offsets(settings.public_url),
    )


async def _derive_own_keys(
    tx: Transaction, card: Card, uid: bytes, vault: Vault
) -> dict[int, bytes]:
    """Return the keys 0, 3 and 4 of a card.

    They stay the same for all keysets and versions, so that an encoder can authenticate again. They
    come from the first keyset that the card was encoded with.
    """
    if card.master_keyset_id is None:
        sealed = await tx.fetchval("SELECT keys FROM card_own_keys WHERE card_id = $1", card.id)
        if sealed is not None:
            return split_own_keys(vault.open(sealed, build_own_keys_context(card.id)))
        key_id = await get_first_key_id(tx)
        return split_own_keys(derive_legacy_own_keys(vault, card.id, key_id))
    keyset = await keysets.lock_for_use(tx, card.master_keyset_id, vault=vault)
    assert keyset.master_key is not None
    return derive_own_keys(vault, keyset.id, keyset.master_key, uid)


def _compute_offsets(public_url: str) -> SdmOffsets:
    """Return the chip's mirror offsets. The record abbreviates the URL's scheme."""
    start = _NDEF_HEADER_BYTES - len(public_url.partition("://")[0] + "://")
    url = public_url + _URL_QUERY
    mac_offset = start + url.index("cmac=") + len("cmac=")
    return SdmOffsets(
        picc_data_offset=start + url.index("picc_data=") + len("picc_data="),
        mac_offset=mac_offset,
        mac_input_offset=mac_offset,
    )


async def confirm(
    tx: Transaction, actor: Actor, serial: str, decrypted: DecryptedProof, *, settings: Settings
) -> Card:
    """Confirm the issued keys by a tap, which is consumed. The counter starts again with it.

    Without issued keys, a signing card's tap is consumed, and nothing changes.
    """
    card = await _lock_card(tx, actor, serial)
    uid = _require_signing_uid(card)
    issued = card
    if card.pending_keyset_id is not None:
        assert card.pending_since is not None
        if card.linked_at is not None and card.pending_since < card.linked_at:
            raise invalid_field(
                "serial", "has keys that were issued before it was linked. Personalize it again"
            )
        if tx.now() - card.pending_since > ISSUED_KEYS_LIFETIME:
            raise invalid_field(
                "serial", "has keys that were issued more than 24 hours ago. Personalize it again"
            )
        keyset = await keysets.get(tx, card.pending_keyset_id, lock="FOR SHARE")
        issued = _activate_pending_keys(card, is_retired=keyset.status == KeysetStatus.RETIRED)
    await _require_same_card(tx, uid, decrypted)
    proof = decrypted.verify(serial, uid, issued)
    error_code = find_proof_error(proof, issued)
    if error_code is not None:
        raise RaiseAfterCommit(await tap_history.reject(tx, card, proof, error_code))
    after = msgspec.structs.replace(issued, last_counter=proof.counter, updated_at=tx.now())
    await queries.save_keys(tx, after)
    await tap_history.store_accepted(tx, after)
    if card.pending_keyset_id is not None:
        old, new = (model.to_record(each, tx.now(), settings) for each in (card, after))
        await _trail.record_change(tx, actor, serial, "personalized", old, new)
        await publish(tx, "card.personalized", new)
        await operations.send_change_notice(tx, after, "personalized", settings.currency)
    return after


async def _require_same_card(tx: Transaction, uid: bytes, decrypted: DecryptedProof) -> None:
    """Raise an error if the proof names another card."""
    uids = {tap.uid for _, tap in decrypted.candidates}
    if uid not in uids and await queries.exists_with_uid(tx, uids):
        raise invalid_field("card_proof", OTHER_CARD_MESSAGE)


def _activate_pending_keys(card: Card, *, is_retired: bool) -> Card:
    return msgspec.structs.replace(
        card,
        authenticity=CardAuthenticity.SUN,
        keyset_id=card.pending_keyset_id,
        key_version=card.pending_key_version,
        last_counter=None,
        pending_keyset_id=None,
        pending_key_version=None,
        pending_since=None,
        has_retired_keys=is_retired,
    )


async def _lock_card(tx: Transaction, actor: Actor, serial: str) -> Card:
    card = await queries.lock_with_row(tx, serial)
    await queries.require_card_access(tx, card, actor.principal, tx.now())
    return card


def _require_signing_uid(card: Card) -> bytes:
    if card.uid is None or not is_signing_uid(card.uid):
        raise invalid_field("serial", "must be the serial of a card with a UID of 7 bytes")
    return bytes.fromhex(card.uid.replace(":", ""))
