"""Verification of proofs: which card was tapped, and whether its chip signed the tap.

The verifier needs no statement for a card that it has seen before, because the keysets and the keys
of cards are cached. A card's keys can change at any time, so the result names the keys that signed
the tap. The ledger compares them with the card under the card's lock.
"""

from functools import lru_cache
from typing import Final, NamedTuple, Protocol

import msgspec

from tapgate.card_proofs.issuer_keys import IssuerKeys
from tapgate.card_proofs.sun import FileReadKey, MetaReadKey, Tap, diversify_file_read_key
from tapgate.errors import Code
from tapgate.schemas.card_proofs import CardProof, KeysetStatus
from tapgate.store.database import Database
from tapgate.store.signals import Signals
from tapgate.vault import Vault

#: Signal sent to every process when a keyset is created or retired.
KEYSETS_CHANGED: Final = "card_keysets"

#: Error message for the field `card_proof` if the request also names a card.
OTHER_CARD_MESSAGE: Final = "must be of the card that the request names"

_MAX_CACHED_CARDS: Final = 10_000


class ProofResult(msgspec.Struct, frozen=True, gc=False):
    """Card that a proof names, and the keys that signed it."""

    card_serial: str | None = None  # None if no card has the UID
    counter: int | None = None  # None if the proof cannot be decrypted
    #: The keys under which the MAC is valid; None if it is not valid, or if the keyset is retired.
    keyset_id: int | None = None
    key_version: int | None = None


class ProvableCard(Protocol):
    """Card, with its keys and the counter of the last tap that was consumed.

    The keys are None if the card does not sign its taps.
    """

    @property
    def keyset_id(self) -> int | None: ...
    @property
    def key_version(self) -> int | None: ...
    @property
    def last_counter(self) -> int | None: ...


def find_proof_error(proof: ProofResult | None, card: ProvableCard) -> Code | None:
    """Return the error of a proof, or of a missing one. The caller must hold the card's lock."""
    if proof is None:
        return None if card.keyset_id is None else Code.CARD_PROOF_REQUIRED
    if (
        proof.keyset_id is None
        or proof.keyset_id != card.keyset_id
        or proof.key_version != card.key_version
    ):
        return Code.CARD_NOT_GENUINE
    if card.last_counter is not None and (proof.counter or 0) <= card.last_counter:
        return Code.CARD_PROOF_USED
    return None


class _Keyset(msgspec.Struct, frozen=True):
    id: int
    is_active: bool
    meta_read_key: MetaReadKey
    file_read_key: bytes

    def is_valid(self, tap: Tap, version: int, mac: bytes) -> bool:
        return self.is_active and _get_card_key(self.file_read_key, tap.uid, version).is_valid(
            tap, mac
        )


class DecryptedProof(NamedTuple):
    """Proof, with the taps to which the keysets decrypt it. Usually, only one keyset does."""

    candidates: list[tuple[_Keyset, Tap]]
    mac: bytes

    def find_counter(self, uid: bytes, keyset_id: int, version: int) -> int | None:
        """Return the counter of a tap that these keys of a card signed, or None."""
        for keyset, tap in self.candidates:
            if (keyset.id, tap.uid) == (keyset_id, uid) and keyset.is_valid(tap, version, self.mac):
                return tap.counter
        return None


class _CardKeys(NamedTuple):
    serial: str
    keyset_id: int | None
    key_version: int | None


@lru_cache(maxsize=_MAX_CACHED_CARDS)
def _get_card_key(issuer_key: bytes, uid: bytes, version: int) -> FileReadKey:
    return FileReadKey(diversify_file_read_key(issuer_key, uid, version))


class ProofVerifier:
    def __init__(self, database: Database, signals: Signals, vault: Vault) -> None:
        self._database = database
        self._signals = signals
        self._vault = vault
        self._keysets: list[_Keyset] | None = None
        self._generation = 0
        #: Keys of cards by UID. An entry may be out of date, because it is only a first guess.
        self._cards: dict[bytes, _CardKeys] = {}
        signals.subscribe(KEYSETS_CHANGED, lambda _: self._invalidate())
        signals.on_reconnect(self._invalidate)

    async def verify(self, proof: CardProof) -> ProofResult:
        """Return the card that a proof names, and the keys that signed it."""
        keysets = self._keysets
        if keysets is None or not self._signals.is_listening:
            keysets = await self._load_keysets()
        picc_data, mac = proof.decode()
        result = ProofResult()
        for keyset in keysets:
            tap = keyset.meta_read_key.decrypt(picc_data)
            if tap is None:
                continue
            card = self._cards.get(tap.uid)
            is_signed = card is not None and _is_signed(keyset, card, tap, mac)
            if not is_signed:
                card = await self._load_card(tap.uid)
                is_signed = card is not None and _is_signed(keyset, card, tap, mac)
            if card is not None and is_signed:
                return ProofResult(card.serial, tap.counter, keyset.id, card.key_version)
            if result.card_serial is None:
                result = ProofResult(None if card is None else card.serial, tap.counter)
        return result

    async def decrypt(self, proof: CardProof) -> DecryptedProof:
        picc_data, mac = proof.decode()
        candidates = [
            (keyset, tap)
            for keyset in await self._load_keysets()
            if (tap := keyset.meta_read_key.decrypt(picc_data)) is not None
        ]
        return DecryptedProof(candidates, mac)

    async def _load_card(self, uid: bytes) -> _CardKeys | None:
        row = await self._database.fetchrow(
            "SELECT serial, keyset_id, key_version FROM cards WHERE uid = $1", uid.hex(":").upper()
        )
        if row is None:
            return None
        self._cards.pop(uid, None)
        if len(self._cards) >= _MAX_CACHED_CARDS:
            del self._cards[next(iter(self._cards))]
        self._cards[uid] = _CardKeys(*row)
        return self._cards[uid]

    async def _load_keysets(self) -> list[_Keyset]:
        generation = self._generation
        rows = await self._database.fetch("SELECT id, status, keys FROM card_keysets ORDER BY id")
        keysets = [self._open_keyset(*row) for row in rows]
        # Do not cache what was loaded during a change: it may be from before the change.
        if generation == self._generation:
            self._keysets = keysets
        return keysets

    def _open_keyset(self, keyset_id: int, status: str, sealed: bytes) -> _Keyset:
        keys = IssuerKeys.open(self._vault, keyset_id, sealed)
        is_active = status == KeysetStatus.ACTIVE
        return _Keyset(keyset_id, is_active, MetaReadKey(keys.meta_read), keys.file_read)

    def _invalidate(self) -> None:
        self._generation += 1
        self._keysets = None


def _is_signed(keyset: _Keyset, card: _CardKeys, tap: Tap, mac: bytes) -> bool:
    return (
        card.keyset_id == keyset.id
        and card.key_version is not None
        and keyset.is_valid(tap, card.key_version, mac)
    )
