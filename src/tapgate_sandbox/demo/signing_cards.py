"""Demo cards that sign their taps: their keyset, and the counters of their chips."""

from random import Random
from typing import Final

import msgspec

from tapgate.business.customers.cards.tap_history import COUNTER_FIELD
from tapgate.ledger.card_proofs.proof_verifier import ProofResult
from tapgate.ledger.card_proofs.sun import KEY_BYTES
from tapgate.ledger.commands import Command
from tapgate_client.schemas.card_proofs import NewKeyset

KEYSET_NAME: Final = "Demo cards"
_KEY_VERSION: Final = 1  # the version of uploaded cards
_SEED: Final = 424


def is_signing(serial: str) -> bool:
    """Return whether a demo card signs its taps: every second card does."""
    return int(serial[-1]) % 2 == 0


def build_keyset(*, has_fixed_keys: bool) -> NewKeyset:
    """Return the demo keyset, with the same keys in every demo or with generated keys."""
    if not has_fixed_keys:
        return NewKeyset(name=KEYSET_NAME)
    rng = Random(_SEED)  # noqa: S311 - the keys of a demo are not secret
    meta_read_key, file_read_key = (rng.randbytes(KEY_BYTES).hex().upper() for _ in range(2))
    return NewKeyset(name=KEYSET_NAME, meta_read_key=meta_read_key, file_read_key=file_read_key)


class SigningCards:
    """Chips in cards that sign their taps, reduced to their counters."""

    def __init__(self, keyset_id: int) -> None:
        self._keyset_id = keyset_id
        self._counters: dict[str, int] = {}

    def tap(self, command: Command, *, is_clone: bool = False) -> Command:
        """Return a card payment with a tap's proof. A clone repeats the last tap."""
        serial = str(command.payer.key)
        if not is_signing(serial):
            return command
        counter = self._counters.get(serial, 0) + (0 if is_clone else 1)
        self._counters[serial] = counter
        return msgspec.structs.replace(
            command,
            card_proof=ProofResult(serial, counter, self._keyset_id, _KEY_VERSION),
            context={**(command.context or {}), COUNTER_FIELD: counter},
        )
