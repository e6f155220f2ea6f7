"""Chart of accounts and transaction types: the ledger's business vocabulary."""

from collections.abc import Mapping
from enum import StrEnum
from typing import Final, NamedTuple

from tapgate_client.errors import Code
from tapgate_client.schemas.compliance import RuleSubject
from tapgate_client.schemas.general_ledger import AccountKind
from tapgate_client.schemas.transactions import TransactionStatus, TransactionType

# People's and companies' accounts. A batch locks every such account whose balance it may reduce,
# and keeps the available balance within the overdraft.
WALLET: Final = AccountKind.WALLET.value
FLOAT: Final = AccountKind.FLOAT.value
COMMISSION: Final = AccountKind.COMMISSION.value
SETTLEMENT: Final = AccountKind.SETTLEMENT.value
CLEARING: Final = AccountKind.CLEARING.value

# Platform accounts. They are never locked, and their stored balances are not updated: a balance
# is the sum of the account's entries.
FEES: Final = AccountKind.FEES.value
COMMISSION_EXPENSE: Final = AccountKind.COMMISSION_EXPENSE.value
CASH: Final = AccountKind.CASH.value
#: What was paid out by the ledger, but not yet by the bank.
PAYOUTS_IN_TRANSIT: Final = AccountKind.PAYOUTS_IN_TRANSIT.value
#: Bank items without an explanation yet.
SUSPENSE: Final = AccountKind.SUSPENSE.value
PLATFORM_ACCOUNT_KINDS: Final = (FEES, COMMISSION_EXPENSE, CASH, PAYOUTS_IN_TRANSIT, SUSPENSE)


class AccountStatus(StrEnum):
    """Account status. In the API, its name depends on the holder."""

    ACTIVE = "active"
    BLOCKED = "blocked"
    CLOSED = "closed"


class HolderErrorCodes(NamedTuple):
    """Error codes for a missing or inactive holder, per account kind."""

    not_found: Code
    not_active: Code


HOLDER_ERROR_CODES: Final = {
    WALLET: HolderErrorCodes(Code.SUBSCRIBER_NOT_FOUND, Code.SUBSCRIBER_BLOCKED),
    FLOAT: HolderErrorCodes(Code.AGENT_NOT_FOUND, Code.AGENT_NOT_ACTIVE),
    COMMISSION: HolderErrorCodes(Code.AGENT_NOT_FOUND, Code.AGENT_NOT_ACTIVE),
    SETTLEMENT: HolderErrorCodes(Code.PROCESSOR_NOT_FOUND, Code.PROCESSOR_SUSPENDED),
    CLEARING: HolderErrorCodes(Code.PARTNER_NOT_FOUND, Code.PARTNER_SUSPENDED),
}

# Module constants, because the attribute lookup on an enum class is slow in Python 3.11.
TRANSFER_P2P: Final = TransactionType.TRANSFER_P2P
TRANSFER: Final = TransactionType.TRANSFER
AGENT_CASHIN: Final = TransactionType.AGENT_CASHIN
AGENT_CASHOUT: Final = TransactionType.AGENT_CASHOUT
AGENT_FUND: Final = TransactionType.AGENT_FUND
AGENT_TRANSFER: Final = TransactionType.AGENT_TRANSFER
COMMISSION_PAYOUT: Final = TransactionType.COMMISSION_PAYOUT
POS_PAYMENT: Final = TransactionType.POS_PAYMENT
ONLINE_PAYMENT: Final = TransactionType.ONLINE_PAYMENT
PARTNER_FUND: Final = TransactionType.PARTNER_FUND
PARTNER_DEPOSIT: Final = TransactionType.PARTNER_DEPOSIT
PROCESSOR_TRANSFER: Final = TransactionType.PROCESSOR_TRANSFER
REFUND: Final = TransactionType.REFUND
REVERSAL: Final = TransactionType.REVERSAL
PAYOUT: Final = TransactionType.PAYOUT
PAYOUT_RETURN: Final = TransactionType.PAYOUT_RETURN
BATCH_CREDIT: Final = TransactionType.BATCH_CREDIT
BANK_POSTING: Final = TransactionType.BANK_POSTING
TRANSACTION_TYPES: Final = tuple(TransactionType)

ACTIVE: Final = AccountStatus.ACTIVE.value
CLOSED: Final = AccountStatus.CLOSED.value

COMPLETED: Final = TransactionStatus.COMPLETED
FAILED: Final = TransactionStatus.FAILED
UNDER_REVIEW: Final = TransactionStatus.UNDER_REVIEW
PARTIALLY_REFUNDED: Final = TransactionStatus.PARTIALLY_REFUNDED
REFUNDED: Final = TransactionStatus.REFUNDED
PARTIALLY_REVERSED: Final = TransactionStatus.PARTIALLY_REVERSED
REVERSED: Final = TransactionStatus.REVERSED

#: Cash exchanged at an agent. Both types can earn the agent a commission.
CASH_TYPES: Final = frozenset({AGENT_CASHIN, AGENT_CASHOUT})
#: Types that count toward a sending subscriber's daily and monthly limits.
LIMITED_TYPES: Final = frozenset(
    {TRANSFER_P2P, TRANSFER, AGENT_CASHOUT, POS_PAYMENT, ONLINE_PAYMENT}
)
#: Types other than refunds that a subscriber can only receive.
RECEIVE_ONLY_TYPES: Final = frozenset(
    {AGENT_CASHIN, PARTNER_FUND, PROCESSOR_TRANSFER, BATCH_CREDIT}
)
#: Possible compliance rule subjects, and the types in which each can take part.
SUBJECT_TYPES: Final[Mapping[str, frozenset[str]]] = {
    RuleSubject.PAYER: LIMITED_TYPES,
    RuleSubject.PAYEE: RECEIVE_ONLY_TYPES | {TRANSFER_P2P, TRANSFER, REFUND},
    RuleSubject.AGENT: CASH_TYPES | {TRANSFER, AGENT_FUND, AGENT_TRANSFER, COMMISSION_PAYOUT},
}
#: Payments to a merchant. They can be refunded, and they credit an account that many payers
#: credit concurrently.
PAYMENT_TYPES: Final = frozenset({POS_PAYMENT, ONLINE_PAYMENT})


class Undo(StrEnum):
    """How a transaction type is undone."""

    REVERSAL = "reversal"
    REFUND = "refund"
    NEVER = "never"


#: Every transaction type has an entry.
UNDO_BY_TYPE: Final[Mapping[TransactionType, Undo]] = {
    TRANSFER_P2P: Undo.REVERSAL,
    TRANSFER: Undo.REVERSAL,
    AGENT_CASHIN: Undo.REVERSAL,
    AGENT_CASHOUT: Undo.REVERSAL,
    AGENT_FUND: Undo.REVERSAL,
    AGENT_TRANSFER: Undo.REVERSAL,
    COMMISSION_PAYOUT: Undo.REVERSAL,
    POS_PAYMENT: Undo.REFUND,
    ONLINE_PAYMENT: Undo.REFUND,
    PARTNER_FUND: Undo.REVERSAL,
    PARTNER_DEPOSIT: Undo.REVERSAL,
    PROCESSOR_TRANSFER: Undo.REVERSAL,
    REFUND: Undo.NEVER,
    REVERSAL: Undo.NEVER,
    PAYOUT: Undo.NEVER,
    PAYOUT_RETURN: Undo.NEVER,
    BATCH_CREDIT: Undo.REVERSAL,
    BANK_POSTING: Undo.NEVER,
}
REVERSIBLE_TYPES: Final = frozenset(
    name for name, undo in UNDO_BY_TYPE.items() if undo is Undo.REVERSAL
)
