"""Verifies card proofs: which card was tapped, and whether its chip signed the tap.

The verifier needs no statement for a card that it has seen before, because keysets and card keys
are cached. A card's keys can change at any time, so the result names the keys that signed the tap.
The ledger compares them with the card under the card's lock.
"""

import asyncio
from typing import Final, NamedTuple, Protocol

import msgspec
import structlog

from tapgate.core.vault import Vault, VaultError
from tapgate.ledger.card_proofs.card_loader import CardLoader
from tapgate.ledger.card_proofs.issuer_keys import IssuerKeys
from tapgate.ledger.card_proofs.sun import FileReadKey, MetaReadKey, Tap, diversify_file_read_key
from tapgate.runtime.store.database import Database
from tapgate.runtime.store.signals import Signals
from tapgate_client import ids
from tapgate_client.errors import Code, unavailable
from tapgate_client.schemas.card_proofs import CardProof, KeysetStatus

log = structlog.get_logger()

#: Signal sent to every process when a keyset is created or retired.
KEYSETS_CHANGED: Final = "card_keysets"

#: Error message for the field `card_proof` if the request also names a card.
OTHER_CARD_MESSAGE: Final = "must come from the card that the request names"
#: CARD_NOT_GENUINE details if the card's new keys signed the tap, but are not confirmed yet.
NOT_CONFIRMED_DETAILS: Final = {"reason": "keys_not_confirmed"}

_MAX_CACHED_CARDS: Final = 10_000
#: Key version for cards from a file. Only this one is tried for an unknown UID.
_FIRST_VERSION: Final = 1


class ProofResult(msgspec.Struct, frozen=True, gc=False):
    """Card that a proof names, and the keys that signed it."""

    card_serial: str | None = None  # None if no card has the UID
    counter: int | None = None  # None if the proof cannot be decrypted
    #: The keys under which the MAC is valid; None if it is not valid, or if the keyset is retired.
    keyset_id: int | None = None
    key_version: int | None = None
    is_pending: bool = False  # whether no tap had confirmed these keys when they were loaded
    uid: str | None = None  # set only if the MAC is valid and no card has the UID

    @property
    def is_signed(self) -> bool:
        return self.keyset_id is not None


class ProvableCard(Protocol):
    """Card, with its keys and the last consumed tap counter.

    The keys are None if the card does not sign its taps.
    """

    @property
    def keyset_id(self) -> int | None: ...
    @property
    def key_version(self) -> int | None: ...
    @property
    def last_counter(self) -> int | None: ...
    @property
    def has_retired_keys(self) -> bool: ...


def find_proof_error(proof: ProofResult | None, card: ProvableCard) -> Code | None:
    """Return the error for a bad or missing proof. The caller must hold the card's lock."""
    if proof is None:
        return None if card.keyset_id is None else Code.CARD_PROOF_REQUIRED
    if (
        proof.keyset_id is None
        or proof.keyset_id != card.keyset_id
        or proof.key_version != card.key_version
        or card.has_retired_keys
    ):
        return Code.CARD_NOT_GENUINE
    if card.last_counter is not None and (proof.counter or 0) <= card.last_counter:
        return Code.CARD_PROOF_USED
    return None


def is_not_confirmed(proof: ProofResult, card: ProvableCard) -> bool:
    """Return whether the card's new keys signed the tap, but do not belong to the card yet."""
    return proof.is_pending and proof.key_version != card.key_version


class _Keyset(msgspec.Struct, frozen=True):
    id: int
    is_active: bool
    meta_read_key: MetaReadKey
    file_read_key: bytes

    def find_key(self, tap: Tap, version: int, mac: bytes) -> FileReadKey | None:
        """Return the card's key for this version if it signed the tap and the keyset is active."""
        key = FileReadKey(diversify_file_read_key(self.file_read_key, tap.uid, version))
        return key if self.is_active and key.is_valid(tap, mac) else None


class DecryptedProof(NamedTuple):
    """Proof, with the taps to which the keysets decrypt it. Usually, only one keyset does."""

    candidates: list[tuple[_Keyset, Tap]]
    mac: bytes

    def verify(self, serial: str, uid: bytes, card: ProvableCard) -> ProofResult:
        """Return the result for a card whose UID and keys are known."""
        result = ProofResult()
        for keyset, tap in self.candidates:
            if tap.uid != uid:
                continue
            result = ProofResult(serial, tap.counter)
            version = card.key_version
            if keyset.id != card.keyset_id or version is None:
                continue
            if keyset.find_key(tap, version, self.mac) is not None:
                return ProofResult(serial, tap.counter, keyset.id, version)
        return result


class _CardKeys(NamedTuple):
    serial: str
    keyset_id: int | None
    key_version: int | None
    pending_keyset_id: int | None
    pending_key_version: int | None


class _CachedCard(NamedTuple):
    """Card whose confirmed keys have signed a tap."""

    serial: str
    keyset_id: int
    key_version: int
    file_read_key: FileReadKey


class ProofVerifier:
    def __init__(self, database: Database, signals: Signals, vault: Vault) -> None:
        self._database = database
        self._loader = CardLoader(database)
        self._signals = signals
        self._vault = vault
        self._keysets: list[_Keyset] | None = None
        #: Keysets that could not be opened. The value is whether the keyset is active.
        self._unreadable_keysets: dict[int, bool] = {}
        self._generation = 0
        self._pending: list[tuple[CardProof, asyncio.Future[ProofResult | None]]] = []
        #: Cards by UID. An entry may be out of date, because it is only a first guess.
        self._cards: dict[bytes, _CachedCard] = {}
        signals.subscribe(KEYSETS_CHANGED, lambda _: self._invalidate())
        signals.on_reconnect(self._invalidate)

    async def verify(self, proof: CardProof) -> ProofResult:
        """Return the card that a proof names, and the keys that signed it.

        Proofs that arrive in one event loop iteration are verified together. Between a request's
        other work, the cryptography would run with cold processor caches, which takes several times
        as long (docs/benchmark-details.md).
        """
        loop = asyncio.get_running_loop()
        if not self._pending:
            loop.call_soon(self._verify_pending)
        future: asyncio.Future[ProofResult | None] = loop.create_future()
        self._pending.append((proof, future))
        return await future or await self._load_and_verify(proof)

    def _verify_pending(self) -> None:
        pending, self._pending = self._pending, []
        for proof, future in pending:
            if future.done():  # the request was canceled
                continue
            try:
                future.set_result(self._verify_with_caches(proof))
            except Exception as error:
                future.set_exception(error)

    def _verify_with_caches(self, proof: CardProof) -> ProofResult | None:
        """Return the result for a tap signed with confirmed keys that are cached, or None."""
        if self._keysets is None or not self._signals.is_listening:
            return None
        picc_data, mac = proof.decode()
        for keyset in self._keysets:
            tap = keyset.meta_read_key.decrypt(picc_data)
            card = None if tap is None else self._cards.get(tap.uid)
            if tap is None or card is None or card.keyset_id != keyset.id:
                continue
            if keyset.is_active and card.file_read_key.is_valid(tap, mac):
                return ProofResult(card.serial, tap.counter, card.keyset_id, card.key_version)
        return None

    async def _load_and_verify(self, proof: CardProof) -> ProofResult:
        keysets = self._keysets
        if keysets is None or not self._signals.is_listening:
            keysets = await self._load_keysets()
        picc_data, mac = proof.decode()
        result = ProofResult()
        for keyset in keysets:
            tap = keyset.meta_read_key.decrypt(picc_data)
            if tap is None:
                continue
            row = await self._loader.load(format_uid(tap.uid))
            card = None if row is None else _CardKeys(*row)
            signed = None if card is None else self._find_signer(card, keyset, tap, mac)
            if signed is not None:
                return signed
            if result.card_serial is None and result.uid is None:
                result = _describe_unsigned_tap(keyset, card, tap, mac)
        if result.counter is None and any(self._unreadable_keysets.values()):
            # The chip may have keys that cannot be read now, so this does not indicate a clone.
            raise unavailable("The keys of some cards cannot be read. Try again later.")
        return result

    async def decrypt(self, proof: CardProof) -> DecryptedProof:
        picc_data, mac = proof.decode()
        candidates = [
            (keyset, tap)
            for keyset in await self._load_keysets()
            if (tap := keyset.meta_read_key.decrypt(picc_data)) is not None
        ]
        return DecryptedProof(candidates, mac)

    def _find_signer(
        self, card: _CardKeys, keyset: _Keyset, tap: Tap, mac: bytes
    ) -> ProofResult | None:
        """Return the card keys that signed a tap, or None. Confirmed keys are cached."""
        for keyset_id, version, is_pending in (
            (card.keyset_id, card.key_version, False),
            (card.pending_keyset_id, card.pending_key_version, True),
        ):
            if keyset_id != keyset.id or version is None:
                continue
            key = keyset.find_key(tap, version, mac)
            if key is None:
                continue
            if not is_pending:
                self._add_to_cache(tap.uid, _CachedCard(card.serial, keyset_id, version, key))
            return ProofResult(card.serial, tap.counter, keyset_id, version, is_pending)
        return None

    def _add_to_cache(self, uid: bytes, card: _CachedCard) -> None:
        self._cards.pop(uid, None)
        if len(self._cards) >= _MAX_CACHED_CARDS:
            del self._cards[next(iter(self._cards))]
        self._cards[uid] = card

    async def _load_keysets(self) -> list[_Keyset]:
        generation = self._generation
        rows = await self._database.fetch("SELECT id, status, keys FROM card_keysets ORDER BY id")
        keysets = [keyset for row in rows if (keyset := self._open_keyset(*row)) is not None]
        # Do not cache what was loaded during a change: it may be from before the change.
        if generation == self._generation:
            self._keysets = keysets
        return keysets

    def _open_keyset(self, keyset_id: int, status: str, sealed: bytes) -> _Keyset | None:
        """Return a keyset, or None if it cannot be opened: the other keysets must still work."""
        is_active = status == KeysetStatus.ACTIVE
        try:
            keys = IssuerKeys.open(self._vault, keyset_id, sealed)
        except VaultError:
            if keyset_id not in self._unreadable_keysets:
                public_id = ids.encode(ids.CARD_KEYSET, keyset_id)
                log.error("cards.keyset_unreadable", keyset_id=public_id)
            self._unreadable_keysets[keyset_id] = is_active
            return None
        self._unreadable_keysets.pop(keyset_id, None)
        return _Keyset(keyset_id, is_active, MetaReadKey(keys.meta_read), keys.file_read)

    def _invalidate(self) -> None:
        self._generation += 1
        self._keysets = None


def format_uid(uid: bytes) -> str:
    """Return a UID as cards have it: `04:DE:5F:1E:AC:C0:40`."""
    return uid.hex(":").upper()


def _describe_unsigned_tap(
    keyset: _Keyset, card: _CardKeys | None, tap: Tap, mac: bytes
) -> ProofResult:
    if card is not None:
        return ProofResult(card.serial, tap.counter)
    key = FileReadKey(diversify_file_read_key(keyset.file_read_key, tap.uid, _FIRST_VERSION))
    return ProofResult(
        counter=tap.counter, uid=format_uid(tap.uid) if key.is_valid(tap, mac) else None
    )
