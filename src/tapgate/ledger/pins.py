"""PIN changes, and PIN checks that are not part of a transaction.

The caller must hold the lock on the account that the PIN protects, as every batch does. For the PIN
of a child card, this is the wallet's account.
"""

from datetime import datetime
from typing import Any, Protocol

from tapgate.errors import Code
from tapgate.ids import IdGenerator
from tapgate.ledger import pin_failures, rules
from tapgate.ledger.alerts import raise_alerts
from tapgate.ledger.events import enqueue_alert_events
from tapgate.ledger.pin_lockout import PinMatcher, PinState, PinVerdict, evaluate_pin
from tapgate.ledger.screening import find_wrong_pin_matches


class PinHash(Protocol):
    """Salted, keyed hash of a PIN. `key_id` identifies the key."""

    @property
    def key_id(self) -> str: ...
    @property
    def salt(self) -> bytes: ...
    @property
    def verifier(self) -> bytes: ...


async def set_pin(tx: Any, holder_id: int, pin: PinHash) -> None:
    """Store a PIN, and clear the failure count and the lock of the previous PIN."""
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


async def check_pin(
    tx: Any,
    holder_id: int,
    pin: str,
    is_correct_pin: PinMatcher,
    now: datetime,
    new_id: IdGenerator,
) -> PinVerdict:
    """Evaluate one attempt, and store the new failure count and lock.

    The holder must have a PIN. `new_id` provides the IDs of alerts and their events. A wrong PIN is
    reported in the verdict and not raised, so that the caller can commit the failure count.
    """
    row = await tx.fetchrow(
        """SELECT holder_id, key_id, salt, verifier, failures, locked_until
           FROM pins WHERE holder_id = $1""",
        holder_id,
    )
    state = PinState(*row)
    verdict = evaluate_pin(state, pin, is_correct_pin, now)
    if verdict.state != state:
        await tx.execute(
            "UPDATE pins SET failures = $2, locked_until = $3 WHERE holder_id = $1",
            holder_id,
            verdict.state.failures,
            verdict.state.locked_until,
        )
    if verdict.code == Code.INVALID_PIN:
        await _record_wrong_pin(tx, holder_id, now, new_id)
    return verdict


async def _record_wrong_pin(tx: Any, holder_id: int, now: datetime, new_id: IdGenerator) -> None:
    """Record a wrong PIN of a subscriber or child card, and raise the alerts it triggers."""
    wallet = await tx.fetchrow(
        """SELECT id, owner_id FROM accounts
           WHERE kind = 'wallet'
             AND (owner_id = $1 OR id = (SELECT account_id FROM cards WHERE id = $1))""",
        holder_id,
    )
    if wallet is None:
        return  # the PIN belongs to an agent
    await pin_failures.add_failures(tx, [wallet["id"]], now)
    pin_rules = [
        rule for rule in await rules.load_compliance_rules(tx) if rule.type == rules.PIN_FAILURES
    ]
    failure_counts = await pin_failures.count_failures(tx, pin_rules, [wallet["id"]], now)
    matches = find_wrong_pin_matches(pin_rules, failure_counts, wallet["id"], wallet["owner_id"])
    new_alerts = await raise_alerts(tx, matches, now, new_id)
    await enqueue_alert_events(tx, new_alerts, now, new_id)
