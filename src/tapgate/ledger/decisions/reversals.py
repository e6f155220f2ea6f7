"""Reversals: staff undo a transaction, or a part of it.

A reversal moves money back in the opposite direction. A share of the fee and of the agent's
commission goes back with it, in proportion to everything reversed so far and rounded down, so that
the shares add up to the fee and the commission once the whole amount is reversed.
"""

from collections.abc import Callable, Iterable

from tapgate.ledger import chart
from tapgate.ledger.archive.archived import ARCHIVED
from tapgate.ledger.commands import (
    Outcome,
    Reversal,
    ScopedIdempotencyKey,
    TransactionResult,
    build_outcome,
)
from tapgate.ledger.decisions.context import Rejection
from tapgate.ledger.decisions.earned_commission import get_pair
from tapgate.ledger.decisions.state import (
    Account,
    CashShare,
    Decision,
    NewTransaction,
    PostedTransaction,
    Posting,
    State,
    StoredTransaction,
    TransactionChange,
    UsageChange,
)
from tapgate.ledger.idempotency.replays import find_replayed_request
from tapgate_client import money
from tapgate_client.errors import Code
from tapgate_client.schemas.recalls import RecallStatus

_OPEN_RECALL = RecallStatus.OPEN
_REVERSIBLE_STATUSES = (chart.COMPLETED, chart.PARTIALLY_REVERSED)


def decide_reversal(state: State, command: Reversal, new_id: Callable[[], int]) -> Decision:
    key = command.idempotency_key
    replay = None if key is None else find_replayed_request(state.prior_requests, key)
    if replay is not None:
        return Decision(outcome=replay)
    original = state.transactions.get(command.original_id)
    if original is None:
        # Archived, or declined before the payee was known.
        is_archived = command.original_id < state.archive_end
        return _reject(Rejection(Code.NOT_REVERSIBLE, dict(ARCHIVED) if is_archived else None))
    remaining = original.amount - original.refunded_amount
    amount = remaining if command.amount is None else command.amount
    rejection = find_rejection(state, original, amount, is_refused=command.is_refused)
    if rejection is not None:
        return _reject(rejection)
    reversal = UndoneAmount(state, original, amount)
    rejection = reversal.find_missing_funds()
    if rejection is not None:
        return reversal.decline(command, rejection, new_id())
    return reversal.accept(
        new_id(), channel=command.channel, key=command.idempotency_key, context=command.context
    )


def _reject(rejection: Rejection) -> Decision:
    return Decision(outcome=Outcome(None, rejection.code, rejection.details))


def find_rejection(
    state: State,
    original: StoredTransaction,
    amount: int,
    *,
    recall_id: int | None = None,
    is_refused: bool = False,
) -> Rejection | None:
    """Return why an amount cannot be reversed, or None.

    While a recall is open, only the recall itself can reverse the transfer. A transfer between
    books can be reversed only after the other book refused it: otherwise the books would differ.
    """
    accounts = [state.accounts[id_] for id_ in (original.from_account, original.to_account) if id_]
    recall = state.recalls.get(original.id)
    is_recalled = recall is not None and recall.status == _OPEN_RECALL and recall.id != recall_id
    if (
        original.type not in chart.REVERSIBLE_TYPES
        or original.status not in _REVERSIBLE_STATUSES
        or any(account.status == chart.CLOSED for account in accounts)
        or is_recalled
        or is_between_books(original.type, accounts) != is_refused
        or (is_refused and state.accounts[original.to_account].kind != chart.CLEARING)
    ):
        return Rejection(Code.NOT_REVERSIBLE)
    remaining = original.amount - original.refunded_amount
    if amount <= remaining:
        return None
    formatted = money.format_decimal(remaining, state.rules.currency)
    return Rejection(Code.REVERSAL_EXCEEDS_REMAINING, {"reversible_amount": formatted})


def is_between_books(transaction_type: str, accounts: Iterable[Account]) -> bool:
    """Return whether a transaction is a transfer to or from a customer of another book."""
    return transaction_type == chart.TRANSFER_P2P and any(
        account.kind == chart.CLEARING for account in accounts
    )


class UndoneAmount:
    """Part of a transaction that goes back, with its shares of the fee and the commission."""

    def __init__(
        self, state: State, original: StoredTransaction, amount: int, *, keeps_fee: bool = False
    ) -> None:
        assert original.from_account is not None
        self._state = state
        self._original = original
        self._posted = state.posted.get(original.id, PostedTransaction())
        self._amount = amount
        #: The original's parties change sides.
        self._payer = state.accounts[original.to_account]
        self._payee = state.accounts[original.from_account]
        self.fee = 0 if keeps_fee else self._calculate_share(original.fee_amount)
        self.commission = self._calculate_share(self._posted.commission)

    def _calculate_share(self, total: int) -> int:
        """Return the share of a total that goes back now, rounded down on the cumulated amount."""
        original = self._original
        before, after = original.refunded_amount, original.refunded_amount + self._amount
        return total * after // original.amount - total * before // original.amount

    def find_missing_funds(self) -> Rejection | None:
        balances: dict[int, int] = {}
        for posting in self._build_postings():
            for account_id, amount in (
                (posting.debit, -posting.amount),
                (posting.credit, posting.amount),
            ):
                balances[account_id] = balances.get(account_id, 0) + amount
        for account_id, change in balances.items():
            account = self._state.accounts[account_id]
            available = account.available + account.overdraft
            if account.is_locked and change < 0 and available + change < 0:
                currency = self._state.rules.currency
                details = {
                    "available": money.to_float(available, currency),
                    "required": money.to_float(-change, currency),
                    "account": account.kind,
                }
                return Rejection(Code.INSUFFICIENT_FUNDS, details)
        return None

    def accept(
        self,
        transaction_id: int,
        *,
        channel: str,
        key: ScopedIdempotencyKey | None = None,
        context: dict[str, str] | None = None,
    ) -> Decision:
        original = self._original
        remaining = original.amount - original.refunded_amount - self._amount
        result = TransactionResult(
            transaction_id=transaction_id,
            status=chart.COMPLETED,
            amount=self._amount,
            fee=0,
            payer_available=_get_available(self._payer, self._get_change(self._payer)),
            payee_available=_get_available(self._payee, self._get_change(self._payee)),
            commission=self.commission,
            refundable_amount=remaining,
            payee_name=self._payee.public_name,
            original_id=original.id,
            fee_refunded=self.fee,
        )
        usage = None
        if original.usage_day is not None:
            usage = UsageChange(
                self._payee.id, original.card_serial, -self._amount, 0, original.usage_day
            )
        return Decision(
            outcome=build_outcome(result, replayed=False),
            transaction=self._build_transaction(result, channel, key, context),
            postings=tuple(self._build_postings()),
            usage=usage,
            change=TransactionChange(
                original.id,
                chart.PARTIALLY_REVERSED if remaining else chart.REVERSED,
                refunded_amount=self._amount,
            ),
            cash_shares=tuple(self._list_cash_shares()),
        )

    def decline(self, command: Reversal, rejection: Rejection, transaction_id: int) -> Decision:
        result = TransactionResult(
            transaction_id=transaction_id,
            status=chart.FAILED,
            amount=self._amount,
            fee=0,
            code=str(rejection.code),
            details=rejection.details,
            original_id=self._original.id,
        )
        return Decision(
            outcome=build_outcome(result, replayed=False),
            transaction=self._build_transaction(
                result, command.channel, command.idempotency_key, command.context
            ),
        )

    def _build_postings(self) -> list[Posting]:
        """Return the postings: fee first, so that a receiver who paid it can return the amount."""
        platform_accounts, posted = self._state.rules.platform_accounts, self._posted
        postings = [Posting(self._payer.id, self._payee.id, self._amount)]
        if self.fee:
            assert posted.fee_account is not None
            postings.insert(0, Posting(platform_accounts[chart.FEES], posted.fee_account, self.fee))
        if self.commission:
            assert posted.commission_account is not None
            expense = platform_accounts[chart.COMMISSION_EXPENSE]
            postings.append(Posting(posted.commission_account, expense, self.commission))
        return postings

    def _get_change(self, account: Account) -> int:
        return sum(
            (posting.credit == account.id) * posting.amount
            - (posting.debit == account.id) * posting.amount
            for posting in self._build_postings()
        )

    def _build_transaction(
        self,
        result: TransactionResult,
        channel: str,
        key: ScopedIdempotencyKey | None,
        context: dict[str, str] | None,
    ) -> NewTransaction:
        return NewTransaction(
            id=result.transaction_id,
            type=chart.REVERSAL,
            status=result.status,
            channel=channel,
            amount=self._amount,
            fee_amount=0,
            from_account=self._payer.id,
            to_account=self._payee.id,
            held=0,
            card_serial=None,
            to_card_serial=None,
            original_id=self._original.id,
            usage_day=None,
            idempotency_key=key,
            reference=None,
            failure_code=result.code,
            context=context,
            result=result,
        )

    def _list_cash_shares(self) -> list[CashShare]:
        """Return how the reversal changes what later cash movements can be matched with.

        An undone cash-out can no longer be matched. An undone cash-in gives the cash-outs back that
        it was matched with, and the same part of it can no longer be matched.
        """
        original = self._original
        if original.type not in chart.CASH_TYPES:
            return []
        pair = get_pair(self._state, original.type, self._payee.id, self._payer.id)
        movements = {row.transaction_id: row for row in self._state.cash_movements.get(pair, ())}
        undone, shares = self._amount, []
        if original.type == chart.AGENT_CASHIN:
            # A movement that is not loaded is too old to be matched again.
            shares = [
                CashShare(share.matched_id, -self._calculate_share(share.amount))
                for share in self._posted.cash_shares
                if share.matched_id in movements
            ]
            undone = -sum(share.amount for share in shares)
        own = movements.get(original.id)
        if own is not None:
            shares.append(CashShare(original.id, min(own.unmatched, undone)))
        return [share for share in shares if share.amount]


def _get_available(account: Account, change: int) -> int | None:
    return account.available + change if account.is_locked else None
