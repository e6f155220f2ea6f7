"""Stores PINs and attempts to enter them.

The caller must hold the lock on the account that the PIN protects, as every ledger batch does. For
a child card's PIN, this is the wallet's account.
"""

from datetime import datetime
from typing import Any

import msgspec

from tapgate.ledger.pins.pin_lockout import PinState, PinVerdict, evaluate_pin
from tapgate.ledger.pins.pin_verifier import PinHash, PinVerifier


async def set_pin(tx: Any, holder_id: int, pin: PinHash) -> None:
    """Store a PIN, and clear the previous PIN's failure count and lock."""
    await tx.execute(
        """INSERT INTO pins (holder_id, key_id, salt, verifier) VALUES ($1, $2, $3, $4)
           ON CONFLICT (holder_id) DO UPDATE SET key_id = EXCLUDED.key_id, salt = EXCLUDED.salt,
               verifier = EXCLUDED.verifier, failures = 0, locked_until = NULL,
               changed_at = now()""",
        holder_id,
        pin.key_id,
        pin.salt,
        pin.verifier,
    )


async def attempt_pin(
    tx: Any, credential: str, holder_id: int, pin: str, pin_verifier: PinVerifier, now: datetime
) -> PinVerdict:
    """Evaluate one attempt, and store the new failure count and lock.

    The holder must have a PIN. Operations call `check_pin` in `ledger/pins/pin_failures.py`, which
    also counts a wrong PIN for the compliance rules and for the credential.
    """
    row = await tx.fetchrow(
        """SELECT holder_id, key_id, salt, verifier, failures, locked_until
           FROM pins WHERE holder_id = $1""",
        holder_id,
    )
    state = PinState(*row)
    verdict = evaluate_pin(
        state, pin, pin_verifier.matches, now, credential, pin_verifier.wrong_pin_limit
    )
    if verdict.state != state:
        await tx.execute(
            """UPDATE pins SET key_id = $2, salt = $3, verifier = $4, failures = $5,
                      locked_until = $6
               WHERE holder_id = $1""",
            *msgspec.structs.astuple(verdict.state),
        )
    return verdict
