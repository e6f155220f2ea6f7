"""Rules for deciding commands: limits, fees, commissions, compliance and webhook subscriptions.

All batches in a process share the loaded rules. The process reloads them after a change, and for
every batch while it cannot receive change signals.
"""

from collections.abc import Iterable
from typing import Any, Final

import msgspec

from tapgate.core.id_generator import IdGenerator
from tapgate.ledger import chart
from tapgate.ledger.rules.commission import CommissionRate
from tapgate.ledger.rules.compliance import (
    COUNT_RULE_TYPES,
    ComplianceRule,
    RuleIndex,
    index_rules,
)
from tapgate.ledger.rules.fees import FeeTier, calculate_fee
from tapgate.ledger.rules.kyc_limits import AccountRule
from tapgate_client import money
from tapgate_client.schemas.compliance import RuleSubject, RuleType
from tapgate_client.schemas.transactions import FeePayer

#: Signal sent to every process when rules or webhook subscriptions change.
RULES_CHANGED: Final = "ledger_rules"

# Event types that the ledger publishes.
TRANSACTION_COMPLETED: Final = "transaction.completed"
TRANSACTION_FAILED: Final = "transaction.failed"
TRANSACTION_UNDER_REVIEW: Final = "transaction.under_review"
TRANSACTION_REFUNDED: Final = "transaction.refunded"
TRANSACTION_REVERSED: Final = "transaction.reversed"
ALERT_CREATED: Final = "alert.created"
AGENT_FLOAT_LOW: Final = "agent.float_low"
CARD_CLONE_SUSPECTED: Final = "card.clone_suspected"
EVENT_TYPES: Final = frozenset(
    {
        TRANSACTION_COMPLETED,
        TRANSACTION_FAILED,
        TRANSACTION_UNDER_REVIEW,
        TRANSACTION_REFUNDED,
        TRANSACTION_REVERSED,
        ALERT_CREATED,
        AGENT_FLOAT_LOW,
        CARD_CLONE_SUSPECTED,
    }
)


SELECT_ACCOUNT_RULES: Final = f"""
    SELECT {AccountRule.list_columns()}
    FROM account_rules LEFT JOIN proof_rules USING (kyc_level)"""


class Rules(msgspec.Struct, frozen=True, kw_only=True):
    currency: str
    limits: dict[int, AccountRule]
    fees: dict[str, tuple[FeeTier, ...]]
    commissions: dict[tuple[str, int], CommissionRate]  # (type, tier)
    compliance_rules: tuple[ComplianceRule, ...]
    platform_accounts: dict[str, int]  # kind -> account ID
    subscribed_events: frozenset[str] = frozenset()  # event types that a webhook endpoint receives
    low_float_threshold: int = 0
    notification_kinds: frozenset[str] = frozenset()  # kinds sent to phones
    screening: RuleIndex = {}  # the compliance rules, indexed

    def __post_init__(self) -> None:
        msgspec.structs.force_setattr(self, "screening", index_rules(self.compliance_rules))

    def calculate_fee(self, transaction_type: str, amount: int) -> tuple[int, str]:
        """Return the fee for an amount, and the fee payer: `sender` or `receiver`."""
        return calculate_fee(self.fees.get(transaction_type, ()), amount)

    def list_window_rules(self, subject: str) -> list[ComplianceRule]:
        """Return the rules that count or sum a subject's transactions over a time window."""
        return [
            rule
            for rule in self.compliance_rules
            if rule.subject == subject
            and rule.window_seconds is not None
            and rule.type != RuleType.PIN_FAILURES
        ]

    @property
    def pin_failure_rules(self) -> tuple[ComplianceRule, ...]:
        return tuple(rule for rule in self.compliance_rules if rule.type == RuleType.PIN_FAILURES)


async def load_rules(
    tx: Any,
    currency: str,
    *,
    low_float_threshold: int = 0,
    notification_kinds: frozenset[str] = frozenset(),
) -> Rules:
    limits = await tx.fetch(SELECT_ACCOUNT_RULES)
    tiers = await tx.fetch(
        """SELECT type, up_to, rate, payer, fixed, minimum, maximum
           FROM fee_rules ORDER BY type, up_to NULLS LAST"""
    )
    commissions = await tx.fetch("SELECT type, tier, rate, minimum_amount FROM commission_rules")
    platform_accounts = await tx.fetch("SELECT kind, id FROM accounts WHERE owner_id IS NULL")
    subscriptions = await tx.fetch(
        """SELECT DISTINCT unnest(events) AS event FROM webhook_endpoints
           WHERE deleted_at IS NULL AND status <> 'disabled'"""
    )
    fees: dict[str, list[FeeTier]] = {}
    for tier in tiers:
        fees.setdefault(tier["type"], []).append(FeeTier(**tier))
    return Rules(
        currency=currency,
        limits={row["kyc_level"]: AccountRule(**dict(row)) for row in limits},
        fees={kind: tuple(rows) for kind, rows in fees.items()},
        commissions={(row["type"], row["tier"]): CommissionRate(**row) for row in commissions},
        compliance_rules=await load_compliance_rules(tx),
        platform_accounts={row["kind"]: row["id"] for row in platform_accounts},
        subscribed_events=_parse_subscriptions(row["event"] for row in subscriptions),
        low_float_threshold=low_float_threshold,
        notification_kinds=notification_kinds,
    )


def _parse_subscriptions(subscriptions: Iterable[str]) -> frozenset[str]:
    names = frozenset(subscriptions)
    return EVENT_TYPES if "*" in names else EVENT_TYPES & names


#: The columns of `compliance_rules`, in `ComplianceRule` field order.
COMPLIANCE_RULE_COLUMNS: Final = ", ".join(ComplianceRule.__struct_fields__)


async def load_compliance_rules(tx: Any) -> tuple[ComplianceRule, ...]:
    select = f"SELECT {COMPLIANCE_RULE_COLUMNS} FROM compliance_rules"
    rows = await tx.fetch(f"{select} WHERE status = 'active' ORDER BY id")
    return tuple(ComplianceRule(**row) for row in rows)


#: KYC level -> max_balance, max_transaction, daily_limit, monthly_limit, no_pin_limit (all in major
#: units), requirements
_DEFAULT_LIMITS: Final = {
    1: (500_000, 50_000, 100_000, 1_000_000, 500, ["phone_number"]),
    2: (2_000_000, 250_000, 500_000, 5_000_000, 2_000, ["phone_number", "id_front", "selfie"]),
    3: (
        10_000_000,
        1_000_000,
        2_000_000,
        20_000_000,
        5_000,
        ["phone_number", "id_front", "id_back", "selfie", "proof_of_address"],
    ),
}
#: type, upper bound (major units), rate in thousandths of a percent, fee payer
_DEFAULT_FEES: Final = (
    (chart.TRANSFER_P2P, 50_000, 1_500, FeePayer.SENDER),
    (chart.TRANSFER_P2P, 500_000, 1_000, FeePayer.SENDER),
    (chart.TRANSFER_P2P, None, 500, FeePayer.SENDER),
    (chart.POS_PAYMENT, None, 1_000, FeePayer.RECEIVER),
    (chart.ONLINE_PAYMENT, None, 1_000, FeePayer.RECEIVER),
)
_SCREENED_TYPES: Final = [
    chart.TRANSFER_P2P,
    chart.TRANSFER,
    chart.POS_PAYMENT,
    chart.ONLINE_PAYMENT,
]
_HOUR_SECONDS, _DAY_SECONDS = 3_600, 86_400
#: type -> rate in thousandths of a percent for tiers 1, 2 and 3
_DEFAULT_COMMISSIONS: Final = {
    chart.AGENT_CASHIN: (1_000, 1_500, 2_000),
    chart.AGENT_CASHOUT: (0, 0, 0),
}
_DEFAULT_COMMISSION_MINIMUM: Final = 10  # major units
#: name, type, subject, transaction types, threshold (major units, or a count), window, action,
#: severity, status
_DEFAULT_COMPLIANCE_RULES: Final = (
    ("Large amount", RuleType.AMOUNT_THRESHOLD, RuleSubject.PAYER, _SCREENED_TYPES,
     500_000, None, "review", "HIGH", "active"),
    ("Hourly velocity", RuleType.TRANSACTION_COUNT, RuleSubject.PAYER, _SCREENED_TYPES,
     10, _HOUR_SECONDS, "alert", "MEDIUM", "active"),
    ("Daily velocity", RuleType.TRANSACTION_COUNT, RuleSubject.PAYER, _SCREENED_TYPES,
     20, _DAY_SECONDS, "block", "HIGH", "active"),
    ("Large cash-in or top-up", RuleType.AMOUNT_THRESHOLD, RuleSubject.PAYEE,
     [chart.AGENT_CASHIN, chart.PARTNER_FUND], 200_000, None, "alert", "MEDIUM", "active"),
    ("Busy agent", RuleType.TRANSACTION_COUNT, RuleSubject.AGENT,
     [chart.AGENT_CASHIN, chart.AGENT_CASHOUT], 200, _DAY_SECONDS, "alert", "MEDIUM", "active"),
    ("Wrong PINs", RuleType.PIN_FAILURES, RuleSubject.PAYER, _SCREENED_TYPES,
     5, _DAY_SECONDS, "alert", "MEDIUM", "inactive"),
)  # fmt: skip


async def insert_defaults(tx: Any, currency: str, new_id: IdGenerator) -> None:
    """Insert rules and platform accounts for a new installation; keep existing ones."""
    unit = 10 ** money.get_decimals(currency)
    await tx.executemany(
        """INSERT INTO account_rules VALUES ($1, $2, $3, $4, $5, $6, $7) ON CONFLICT DO NOTHING""",
        [
            (level, *(amount * unit for amount in amounts), requirements)
            for level, (*amounts, requirements) in _DEFAULT_LIMITS.items()
        ],
    )
    if await _mark_defaults_inserted(tx):
        await _insert_default_fees(tx, unit)
        await _insert_default_commissions(tx, unit)
        await _insert_default_compliance_rules(tx, unit, new_id)
    await tx.executemany(
        """INSERT INTO accounts (id, kind, holder_name, public_name, currency, checked)
           VALUES ($1, $2, 'Platform', 'Platform', $3, false) ON CONFLICT DO NOTHING""",
        [(new_id(), kind, currency) for kind in chart.PLATFORM_ACCOUNT_KINDS],
    )


async def _mark_defaults_inserted(tx: Any) -> bool:
    """Return True only once per installation, so that deleted rules are not recreated."""
    first: bool | None = await tx.fetchval(
        """INSERT INTO installation (name, value) VALUES ('default_rules', 'inserted')
           ON CONFLICT DO NOTHING RETURNING true"""
    )
    return bool(first)


async def _insert_default_fees(tx: Any, unit: int) -> None:
    if await tx.fetchval("SELECT EXISTS (SELECT FROM fee_rules)"):
        return
    await tx.executemany(
        "INSERT INTO fee_rules (type, up_to, rate, payer) VALUES ($1, $2, $3, $4)",
        [(kind, up_to and up_to * unit, rate, payer) for kind, up_to, rate, payer in _DEFAULT_FEES],
    )


async def _insert_default_commissions(tx: Any, unit: int) -> None:
    await tx.executemany(
        "INSERT INTO commission_rules VALUES ($1, $2, $3, $4) ON CONFLICT DO NOTHING",
        [
            (kind, tier, rate, _DEFAULT_COMMISSION_MINIMUM * unit)
            for kind, rates in _DEFAULT_COMMISSIONS.items()
            for tier, rate in enumerate(rates, start=1)
        ],
    )


async def _insert_default_compliance_rules(tx: Any, unit: int, new_id: IdGenerator) -> None:
    await tx.executemany(
        """INSERT INTO compliance_rules (id, name, type, subject, transaction_types, threshold,
                                         window_seconds, action, severity, status)
           VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)""",
        [
            (
                new_id(),
                name,
                kind,
                subject,
                types,
                threshold if kind in COUNT_RULE_TYPES else threshold * unit,
                *rest,
            )
            for name, kind, subject, types, threshold, *rest in _DEFAULT_COMPLIANCE_RULES
        ],
    )
