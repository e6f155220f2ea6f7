"""State that is loaded for a batch, and decisions on the batch's commands."""

from datetime import date, datetime
from typing import Any, NamedTuple

import msgspec

from tapgate.ledger import chart
from tapgate.ledger.card_proofs.rejected_taps import RejectedTap
from tapgate.ledger.commands import (
    BatchLine,
    NewBookTransfer,
    NewPayout,
    Outcome,
    PartnerReference,
    Party,
    PayoutChange,
    ScopedIdempotencyKey,
    TransactionResult,
)
from tapgate.ledger.idempotency.replays import PriorRequest
from tapgate.ledger.pins.pin_lockout import PinState
from tapgate.ledger.pins.wrong_pins import WrongPin
from tapgate.ledger.rules.commission import CashMatch, CashMovement
from tapgate.ledger.rules.compliance import RuleMatch
from tapgate.ledger.rules.loaded_rules import Rules


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
    #: False for a credit-only account, whose balance is known only after `delta` is added on write,
    #: and for a platform account, whose balance is not updated.
    is_locked: bool = False
    delta: int = 0
    is_changed: bool = False

    @property
    def available(self) -> int:
        return self.balance - self.held

    def get_usage(self, today: date) -> tuple[int, int]:
        """Return the usage that counts toward the daily and the monthly limit."""
        day = self.usage_day
        if day is None or (day.year, day.month) < (today.year, today.month):
            return 0, 0
        return (self.day_used if day >= today else 0), self.month_used

    def add_usage(self, amount: int, counted_on: date, today: date) -> None:
        """Add usage on the day `counted_on`. A negative amount restores allowance.

        The usage day never moves back: if the clock does, usage counts toward the latest day seen.
        Usage on an earlier day does not change `day_used`, and usage in an earlier month does not
        change `month_used`.
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
    keyset_id: int | None = None  # None if the card does not sign its taps
    key_version: int | None = None
    last_counter: int | None = None  # of the last tap that was consumed
    has_retired_keys: bool = False
    is_changed: bool = False

    def get_usage(self, today: date) -> tuple[int, int]:
        """Return today's amounts that count toward the card's daily and no-PIN limits."""
        if self.usage_day is None or self.usage_day < today:
            return 0, 0
        return self.day_spent, self.day_unpinned

    def add_usage(self, amount: int, unpinned: int, counted_on: date, today: date) -> None:
        """Add usage on the day `counted_on`. A negative amount restores allowance.

        The card's usage day is never before `counted_on`, which may be later than today. If a card
        was linked again since, its usage is less than what is restored, and never negative.
        """
        today = max(today, counted_on)
        self.day_spent, self.day_unpinned = self.get_usage(today)
        self.usage_day = today if self.usage_day is None else max(self.usage_day, today)
        if counted_on == self.usage_day:
            self.day_spent = max(0, self.day_spent + amount)
            self.day_unpinned = max(0, self.day_unpinned + unpinned)
        self.is_changed = True


class ConsumedTap(NamedTuple):
    card_serial: str
    counter: int


class Agent(msgspec.Struct, gc=False):
    id: int
    commission_account_id: int
    commission_tier: int
    parent_agent_id: int | None
    commission_remainder: int = 0  # rounding error owed to the agent; negative if overpaid
    is_changed: bool = False

    @property
    def family_id(self) -> int:
        """The super-agent, for itself and all its sub-agents, which share floats."""
        return self.id if self.parent_agent_id is None else self.parent_agent_id


class CashPair(NamedTuple):
    """Customer's wallet and agent family that exchange cash."""

    wallet_id: int
    family_id: int


class EarnedCommission(NamedTuple):
    """Commission on a cash-in or cash-out, and its matches, whose amounts earn no commission."""

    pair: CashPair
    agent_id: int
    matches: tuple[CashMatch, ...]
    amount: int
    remainder: int


class StoredTransaction(msgspec.Struct, gc=False):
    """An existing transaction that is to be refunded, reversed or recalled, or is under review.

    `refunded_amount` is the amount given back: by refunds for a card payment, and by reversals for
    any other type.
    """

    id: int
    type: str
    status: str
    amount: int
    fee_amount: int
    refunded_amount: int
    held: int
    from_account: int | None  # None: declined because the card was not linked
    to_account: int
    card_serial: str | None
    to_card_serial: str | None
    usage_day: date | None
    created_at: datetime
    is_unpinned: bool = False  # whether a held payment used the no-PIN allowance
    failure_code: str | None = None
    completed_at: datetime | None = None
    from_balance: int | None = None
    to_balance: int | None = None
    to_balance_offset: int | None = None
    is_changed: bool = False


class CashShare(NamedTuple):
    """Part of a cash movement that was matched with an earlier one."""

    matched_id: int
    amount: int


class PostedTransaction(msgspec.Struct, gc=False):
    """What a transaction to reverse has posted besides its amount."""

    fee_account: int | None = None  # the account that paid the fee
    commission: int = 0
    commission_account: int | None = None
    cash_shares: tuple[CashShare, ...] = ()


class StoredRecall(msgspec.Struct, gc=False):
    id: int
    transaction_id: int
    sender_account: int
    receiver_account: int
    held_amount: int
    status: str
    scope: str
    request_id: str
    fingerprint: bytes


class RecallChange(NamedTuple):
    """A new recall, or the end of an open one."""

    recall: StoredRecall
    is_new: bool
    amount: int = 0
    reason: str | None = None
    expires_at: datetime | None = None
    decision: str | None = None
    decided_by: str | None = None
    reversal_id: int | None = None


class StoredPayout(msgspec.Struct, gc=False):
    """Payout that a command of the batch changes. The batch has locked its row."""

    id: int
    account_id: int
    amount: int
    fee_amount: int
    status: str
    transaction_id: int
    bank_reference: str | None = None
    return_reason: str | None = None
    is_changed: bool = False


class BatchLineResult(NamedTuple):
    """What became of a batch's line. A held line stays pending until the review decision."""

    line: BatchLine
    status: str
    code: str | None
    transaction_id: int | None
    amount: int = 0  # paid to the receiver


class Posting(NamedTuple):
    debit: int
    credit: int
    amount: int


class UsageChange(NamedTuple):
    """Allowance consumed (positive amount) or restored (negative amount)."""

    account_id: int
    card_serial: str | None
    amount: int
    unpinned: int
    counted_on: date


class Hold(NamedTuple):
    account_id: int
    amount: int  # positive: hold; negative: release


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
    to_balance_offset: int | None = None  # `delta` of a credit-only payee, for `to_balance`


class TransactionChange(NamedTuple):
    """Change to a transaction that existed before the command."""

    transaction_id: int
    status: str
    refunded_amount: int = 0
    failure_code: str | None = None
    is_completion: bool = False


class Decision(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """A command's effects, as plain data."""

    outcome: Outcome
    transaction: NewTransaction | None = None
    postings: tuple[Posting, ...] = ()
    hold: Hold | None = None
    usage: UsageChange | None = None
    pin_updates: tuple[PinState, ...] = ()
    wrong_pin: WrongPin | None = None
    wrong_pin_account_id: int | None = None  # the wallet's account
    change: TransactionChange | None = None
    matches: tuple[RuleMatch, ...] = ()
    earned_commission: EarnedCommission | None = None
    consumed_tap: ConsumedTap | None = None
    rejected_tap: RejectedTap | None = None
    recall: RecallChange | None = None
    #: Matches that a reversal of a cash movement uses up (positive) or gives back (negative).
    cash_shares: tuple[CashShare, ...] = ()
    new_payout: NewPayout | None = None
    payout_change: PayoutChange | None = None
    batch_line: BatchLineResult | None = None
    book_transfer: NewBookTransfer | None = None

    @property
    def transaction_id(self) -> int:
        """Return the created transaction's ID, or else the changed transaction's ID."""
        if self.transaction is not None:
            return self.transaction.id
        assert self.change is not None
        return self.change.transaction_id


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
    #: Loaded for transactions that the batch may reverse.
    posted: dict[int, PostedTransaction] = {}
    #: Transaction ID -> recall, for transactions to reverse or recall and for senders of recalls.
    recalls: dict[int, StoredRecall] = {}
    payouts: dict[int, StoredPayout] = {}
    #: Unpaid lines of running batches, whose rows the batch has locked.
    payable_lines: set[BatchLine] = set()
    #: Transaction ID -> line that is under review.
    held_lines: dict[int, BatchLine] = {}
    prior_requests: dict[tuple[str, str], PriorRequest] = {}
    prior_references: dict[tuple[int, str], PriorRequest] = {}
    #: The first ID that is not archived; loaded if a transaction in the batch is not found.
    archive_end: int = 0
    #: Recent cash-ins and cash-outs, oldest first.
    cash_movements: dict[CashPair, list[CashMovement]] = {}
    #: (rule ID, account ID) -> count and total amount in the rule's window.
    window_totals: dict[tuple[int, int], tuple[int, int]] = {}
    #: (rule ID, account ID) -> number of wrong PINs in the rule's window.
    wrong_pin_counts: dict[tuple[int, int], int] = {}
    #: Restricted subscribers' accounts; loaded if a command in the batch checks its payee.
    restricted_accounts: set[int] = set()
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
