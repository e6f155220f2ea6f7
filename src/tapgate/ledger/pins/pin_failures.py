"""Wrong PINs per wallet, including those entered for the wallet's child cards, and their alerts.

A failure is stored together with the PIN's failure count, under the lock on the wallet's account.
It is stored even if no rule is active, so that a rule that is activated later counts it too.
Attempts while the PIN is locked are not stored.
"""

from collections.abc import Collection
from datetime import datetime, timedelta
from typing import Any

from tapgate.ledger.alerts import raise_alerts
from tapgate.ledger.effects.batch_events import enqueue_alert_events
from tapgate.ledger.pins.pin_storage import attempt_pin
from tapgate.ledger.pins.pin_verifier import PinVerifier
from tapgate.ledger.pins.wrong_pins import WrongPin, record_wrong_pins
from tapgate.ledger.rules.compliance import ComplianceRule, find_wrong_pin_matches
from tapgate.ledger.rules.loaded_rules import load_compliance_rules
from tapgate.runtime.store.combined import Query
from tapgate.runtime.store.transaction import Transaction
from tapgate_client.errors import ApiError, Code
from tapgate_client.schemas.compliance import RuleType


async def add_failures(tx: Any, account_ids: Collection[int], now: datetime) -> None:
    """Insert one failure per account ID."""
    await tx.execute(
        "INSERT INTO pin_failures (account_id, failed_at) SELECT unnest($1::bigint[]), $2",
        list(account_ids),
        now,
    )


def build_count_query(
    rules: Collection[ComplianceRule],
    account_ids: Collection[int],
    now: datetime,
    card_serials: Collection[str] = (),
) -> Query | None:
    """Return a query for the nonzero failure counts in the rules' windows.

    Counts failures by account and by card account. Columns: rule ID, account ID and count.
    """
    if not rules or not (account_ids or card_serials):
        return None
    return Query(
        """SELECT rule.id, failure.account_id, count(*) AS failures
           FROM unnest($2::bigint[], $3::timestamptz[]) AS rule (id, since)
           JOIN pin_failures failure
             ON failure.account_id = ANY (ARRAY(
                    SELECT unnest($1::bigint[])
                    UNION ALL SELECT account_id FROM cards WHERE serial = ANY ($4::text[])))
            AND failure.failed_at >= rule.since
           GROUP BY 1, 2""",
        (
            list(account_ids),
            [rule.id for rule in rules],
            [now - timedelta(seconds=rule.window_seconds or 0) for rule in rules],
            list(card_serials),
        ),
    )


async def check_pin(
    tx: Transaction, credential: str, holder_id: int, pin: str, pin_verifier: PinVerifier
) -> ApiError | None:
    """Check a PIN that is not part of a transaction.

    `ledger/pins/pin_storage.py` says which lock is required.
    Wrong PINs are counted for `credential`. The error for a wrong PIN is returned, not raised, so
    that the caller can commit the failure count.
    """
    limit, now = pin_verifier.wrong_pin_limit, tx.now()
    verdict = await attempt_pin(tx, credential, holder_id, pin, pin_verifier, now)
    if verdict.code == Code.INVALID_PIN:
        await _record_wrong_pin(tx, holder_id)
        if limit is not None and verdict.counts:
            wrong_pins = [WrongPin(credential)]
            new_alerts = await record_wrong_pins(tx, limit, wrong_pins, now, tx.new_id)
            await enqueue_alert_events(tx, new_alerts, now, tx.new_id)
    return verdict.error


async def _record_wrong_pin(tx: Transaction, holder_id: int) -> None:
    """Record a wrong PIN for a subscriber or child card, and raise the alerts it triggers."""
    wallet = await tx.fetchrow(
        """SELECT id, owner_id FROM accounts
           WHERE kind = 'wallet'
             AND (owner_id = $1 OR id = (SELECT account_id FROM cards WHERE id = $1))""",
        holder_id,
    )
    if wallet is None:
        return  # the PIN belongs to an agent
    now = tx.now()
    await add_failures(tx, [wallet["id"]], now)
    pin_rules = [
        rule for rule in await load_compliance_rules(tx) if rule.type == RuleType.PIN_FAILURES
    ]
    query = build_count_query(pin_rules, [wallet["id"]], now)
    rows = [] if query is None else await tx.fetch(query.sql, *query.arguments)
    failure_counts = {(rule_id, account_id): count for rule_id, account_id, count in rows}
    matches = find_wrong_pin_matches(pin_rules, failure_counts, wallet["id"], wallet["owner_id"])
    new_alerts = await raise_alerts(tx, matches, now, tx.new_id)
    await enqueue_alert_events(tx, new_alerts, now, tx.new_id)
