"""What a batch has loaded, and how a decision changes it for the decisions after it."""

from datetime import date, datetime
from typing import Any, NamedTuple

import msgspec

from tapgate.ledger import chart
from tapgate.ledger.commands import (
    Outcome,
    PartnerReference,
    Party,
    ScopedIdempotencyKey,
    TransactionResult,
)
from tapgate.ledger.pin_attempts import PinState
from tapgate.ledger.rules import ComplianceRule, Rules


class Account(msgspec.Struct, gc=False):
    id: int
    kind: str
    owner_id: int | None
    public_name: str
    status: str
    kyc_level: int | None
    balance: int
    held: int
    overdraft: int
    usage_day: date | None
    day_used: int
    month_used: int
    is_locked: bool = False  # else only credited, by `delta`; what its balance is is not known
    delta: int = 0
    is_changed: bool = False

    @property
    def available(self) -> int:
        return self.balance - self.held

    def get_usage(self, today: date) -> tuple[int, int]:
        """What counts against the limits of the day and of the month."""
        day = self.usage_day
        if day is None or (day.year, day.month) < (today.year, today.month):
            return 0, 0
        return (self.day_used if day >= today else 0), self.month_used

    def add_usage(self, amount: int, counted_on: date, today: date) -> None:
        """Use up, or give back, an allowance of the day `counted_on`.

        The days only go forward: a clock that steps back goes on in the day it had reached.
        """
        self.day_used, self.month_used = self.get_usage(today)
        self.usage_day = today if self.usage_day is None else max(self.usage_day, today)
        if counted_on == self.usage_day:
            self.day_used += amount
        if (counted_on.year, counted_on.month) == (self.usage_day.year, self.usage_day.month):
            self.month_used += amount
        self.is_changed = True


class Card(msgspec.Struct, gc=False):
    id: int
    serial: str
    status: str
    account_id: int | None
    pin_holder_id: int | None
    daily_limit: int | None
    usage_day: date | None
    day_spent: int
    day_unpinned: int
    expires_at: datetime | None
    is_changed: bool = False

    def get_usage(self, today: date) -> tuple[int, int]:
        """What was spent with it today, and how much of that without a PIN."""
        if self.usage_day is None or self.usage_day < today:
            return 0, 0
        return self.day_spent, self.day_unpinned

    def add_usage(self, amount: int, unpinned: int, counted_on: date, today: date) -> None:
        """Its day is never behind the wallet's, which may have gone ahead of this clock."""
        today = max(today, counted_on)
        self.day_spent, self.day_unpinned = self.get_usage(today)
        self.usage_day = today if self.usage_day is None else max(self.usage_day, today)
        if counted_on == self.usage_day:
            self.day_spent += amount
            self.day_unpinned += unpinned
        self.is_changed = True


class Agent(msgspec.Struct, gc=False):
    id: int
    commission_account_id: int
    commission_tier: int
    parent_agent_id: int | None
    commission_remainder: int = 0  # earned but not paid (below zero: paid in advance) by rounding
    is_changed: bool = False


class CashPair(NamedTuple):
    """The accounts of a customer and an agent who exchange cash."""

    wallet_id: int
    float_id: int


class CashMovement(msgspec.Struct, gc=False):
    """A recent cash-in or cash-out, and how much of it can still be matched."""

    transaction_id: int
    type: str
    moved_at: datetime
    unmatched: int


class CashMatch(NamedTuple):
    movement: CashMovement
    amount: int


class EarnedCommission(NamedTuple):
    """What a cash-in or cash-out earns the agent, and which part of it earns nothing."""

    pair: CashPair
    agent_id: int
    matches: tuple[CashMatch, ...]
    amount: int
    remainder: int


class StoredTransaction(msgspec.Struct, gc=False):
    """A transaction that exists already: to be refunded or settled."""

    id: int
    type: str
    status: str
    amount: int
    fee_amount: int
    refunded_amount: int
    held: int
    from_account: int | None  # None: declined, an unlinked card
    to_account: int
    card_serial: str | None
    to_card_serial: str | None
    usage_day: date | None
    created_at: datetime
    failure_code: str | None = None
    completed_at: datetime | None = None
    from_balance: int | None = None
    to_balance: int | None = None
    to_balance_offset: int | None = None
    is_changed: bool = False


class Posting(NamedTuple):
    debit: int
    credit: int
    amount: int


class UsageChange(NamedTuple):
    """An allowance used up (amount above zero) or given back (below)."""

    account_id: int
    card_serial: str | None
    amount: int
    unpinned: int
    counted_on: date


class Hold(NamedTuple):
    account_id: int
    amount: int  # above zero: held; below: let go


class RuleMatch(NamedTuple):
    """A compliance rule that a transaction, or a wrong PIN, matched."""

    rule: ComplianceRule
    subject_id: int  # the subscriber or agent that the rule is about
    transaction_id: int | None
    needs_review: bool
    details: dict[str, Any]


class NewTransaction(msgspec.Struct, kw_only=True, gc=False):
    id: int
    type: str
    status: str
    channel: str
    amount: int
    fee_amount: int
    from_account: int | None
    to_account: int | None
    held: int
    card_serial: str | None
    to_card_serial: str | None
    original_id: int | None
    usage_day: date | None
    idempotency_key: ScopedIdempotencyKey | None
    reference: PartnerReference | None
    failure_code: str | None
    context: dict[str, Any] | None
    result: TransactionResult
    from_balance: int | None = None
    to_balance: int | None = None
    to_balance_offset: int | None = None  # of `delta`, where the balance is known only when written


class TransactionChange(NamedTuple):
    """What becomes of a transaction that existed before."""

    transaction_id: int
    status: str
    refunded_amount: int = 0
    failure_code: str | None = None
    is_completion: bool = False


class Decision(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """Everything that happens because of one command; plain data."""

    outcome: Outcome
    transaction: NewTransaction | None = None
    postings: tuple[Posting, ...] = ()
    hold: Hold | None = None
    usage: UsageChange | None = None
    pin_updates: tuple[PinState, ...] = ()
    wrong_pin_account_id: int | None = None  # the wallet's account
    change: TransactionChange | None = None
    matches: tuple[RuleMatch, ...] = ()
    earned_commission: EarnedCommission | None = None

    @property
    def transaction_id(self) -> int:
        """The transaction that was created, or else the one that was changed."""
        if self.transaction is not None:
            return self.transaction.id
        assert self.change is not None
        return self.change.transaction_id


class PriorRequest(NamedTuple):
    """What a request id, or a partner's reference, was used for."""

    fingerprint: bytes | None
    to_account: int | None
    amount: int
    result: TransactionResult


class State(msgspec.Struct, kw_only=True):
    now: datetime
    today: date
    rules: Rules
    accounts: dict[int, Account]
    accounts_by_owner: dict[tuple[int, str], Account]
    cards: dict[str, Card] = {}
    pins: dict[int, PinState] = {}
    agents: dict[int, Agent] = {}
    transactions: dict[int, StoredTransaction] = {}
    prior_requests: dict[tuple[str, str], PriorRequest] = {}
    prior_references: dict[tuple[int, str], PriorRequest] = {}
    #: recent cash-ins and cash-outs, oldest first
    cash_movements: dict[CashPair, list[CashMovement]] = {}
    #: (rule, account) -> how many and how much in the rule's window
    window_totals: dict[tuple[int, int], tuple[int, int]] = {}
    #: (rule, account) -> how many wrong PINs in the rule's window
    wrong_pin_counts: dict[tuple[int, int], int] = {}
    changed_pin_holders: set[int] = msgspec.field(default_factory=set)

    def find_party(self, party: Party) -> tuple[Account | None, Card | None]:
        if party.by == "card":
            card = self.cards.get(str(party.key))
            if card is None or card.account_id is None:
                return None, card
            return self.accounts.get(card.account_id), card
        if party.by == "owner":
            if party.kind in chart.PLATFORM_ACCOUNT_KINDS:
                return self.accounts[self.rules.platform_accounts[party.kind]], None
            return self.accounts_by_owner.get((int(party.key), party.kind)), None
        return self.accounts.get(int(party.key)), None


def apply_decision(state: State, decision: Decision) -> None:
    """Make the next decision see what this one did."""
    for posting in decision.postings:
        _apply_posting(state, posting)
    if decision.hold is not None:
        account = state.accounts[decision.hold.account_id]
        account.held += decision.hold.amount
        account.is_changed = True
    if decision.usage is not None:
        _apply_usage(state, decision.usage)
    for pin in decision.pin_updates:
        state.pins[pin.holder_id] = pin
        state.changed_pin_holders.add(pin.holder_id)
    if decision.wrong_pin_account_id is not None:
        for rule in state.rules.pin_failure_rules:
            key = (rule.id, decision.wrong_pin_account_id)
            state.wrong_pin_counts[key] = state.wrong_pin_counts.get(key, 0) + 1
    if decision.change is not None:
        _apply_change(state, decision.change)
    if decision.transaction is not None:
        _add_transaction(state, decision.transaction)
    if decision.earned_commission is not None:
        _apply_cash_matches(state, decision.earned_commission, decision)


def _apply_posting(state: State, posting: Posting) -> None:
    for account_id, amount in ((posting.debit, -posting.amount), (posting.credit, posting.amount)):
        account = state.accounts[account_id]
        account.balance += amount
        account.delta += amount
        account.is_changed = True


def _apply_usage(state: State, usage: UsageChange) -> None:
    state.accounts[usage.account_id].add_usage(usage.amount, usage.counted_on, state.today)
    card = state.cards.get(usage.card_serial) if usage.card_serial else None
    if card is not None and (card.daily_limit is not None or usage.unpinned):
        card.add_usage(usage.amount, usage.unpinned, usage.counted_on, state.today)


def _set_balances(state: State, row: NewTransaction | StoredTransaction) -> None:
    """Note on a transaction the balances it left behind."""
    if row.from_account is None or row.to_account is None:
        return
    payer, payee = state.accounts[row.from_account], state.accounts[row.to_account]
    if payer.is_locked:
        row.from_balance = payer.balance
    if payee.is_locked:
        row.to_balance = payee.balance
    elif payee.kind == chart.SETTLEMENT:
        row.to_balance_offset = payee.delta


def _apply_change(state: State, change: TransactionChange) -> None:
    row = state.transactions[change.transaction_id]
    row.status = change.status
    row.refunded_amount += change.refunded_amount
    row.failure_code = change.failure_code
    row.is_changed = True
    if change.is_completion:
        row.completed_at = state.now
        _set_balances(state, row)


def _add_transaction(state: State, row: NewTransaction) -> None:
    if row.status == "completed":
        _set_balances(state, row)
    if row.idempotency_key is not None:
        key = (row.idempotency_key.scope, row.idempotency_key.request_id)
        state.prior_requests[key] = PriorRequest(
            row.idempotency_key.fingerprint, row.to_account, row.amount, row.result
        )
    if row.status == "failed":
        return
    if row.reference is not None:
        state.prior_references[row.reference.partner_id, row.reference.reference] = PriorRequest(
            None, row.to_account, row.amount, row.result
        )
    if row.from_account is None or row.to_account is None:
        return
    _add_to_windows(state, row, state.accounts[row.from_account], state.accounts[row.to_account])


def _add_to_windows(state: State, row: NewTransaction, payer: Account, payee: Account) -> None:
    """Add a transaction to the windows of the compliance rules that apply to it."""
    for subject, rules in state.rules.screening.get(row.type, {}).items():
        for account in get_subject_accounts(subject, payer, payee):
            for rule in rules:
                if rule.window_seconds is not None:
                    key = (rule.id, account.id)
                    count, total = state.window_totals.get(key, (0, 0))
                    state.window_totals[key] = (count + 1, total + row.amount)


def get_subject_accounts(
    subject: str, payer: Account | None, payee: Account | None
) -> tuple[Account, ...]:
    """Return the accounts that a compliance rule with this subject is about."""
    if subject == chart.PAYER:
        return (payer,) if payer is not None and payer.kind == chart.WALLET else ()
    if subject == chart.PAYEE:
        return (payee,) if payee is not None and payee.kind == chart.WALLET else ()
    return tuple(one for one in (payer, payee) if one is not None and one.kind == chart.FLOAT)


def _apply_cash_matches(state: State, earned: EarnedCommission, decision: Decision) -> None:
    """Make later decisions of the batch see the movement and what it is matched with."""
    agent = state.agents[earned.agent_id]
    agent.is_changed |= agent.commission_remainder != earned.remainder
    agent.commission_remainder = earned.remainder
    for movement, amount in earned.matches:
        movement.unmatched -= amount
    row = decision.transaction or state.transactions[decision.transaction_id]
    # Of a cash-in only the part that was brought back can be matched with the next cash-out.
    returned = sum(match.amount for match in earned.matches)
    unmatched = row.amount if row.type == chart.AGENT_CASHOUT else returned
    state.cash_movements.setdefault(earned.pair, []).append(
        CashMovement(row.id, row.type, state.now, unmatched)
    )
