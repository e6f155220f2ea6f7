"""The chart of accounts and the kinds of movement: what the ledger knows about the business."""

from typing import Final, NamedTuple

from tapgate.errors import Code

# Accounts of people and companies. They are locked, checked and never overdrawn.
WALLET: Final = "wallet"
FLOAT: Final = "float"
COMMISSION: Final = "commission"
SETTLEMENT: Final = "settlement"
CLEARING: Final = "clearing"

# The platform's own. They are never locked: their balance is what their entries say.
FEES: Final = "fees"
COMMISSION_EXPENSE: Final = "commission_expense"
CASH: Final = "cash"
PLATFORM_ACCOUNT_KINDS: Final = (FEES, COMMISSION_EXPENSE, CASH)


class HolderErrorCodes(NamedTuple):
    """How the holder of a kind of account is refused."""

    not_found: Code
    not_active: Code


HOLDER_ERROR_CODES: Final = {
    WALLET: HolderErrorCodes(Code.SUBSCRIBER_NOT_FOUND, Code.SUBSCRIBER_BLOCKED),
    FLOAT: HolderErrorCodes(Code.AGENT_NOT_FOUND, Code.AGENT_NOT_ACTIVE),
    COMMISSION: HolderErrorCodes(Code.AGENT_NOT_FOUND, Code.AGENT_NOT_ACTIVE),
    SETTLEMENT: HolderErrorCodes(Code.PROCESSOR_NOT_FOUND, Code.PROCESSOR_SUSPENDED),
    CLEARING: HolderErrorCodes(Code.PARTNER_NOT_FOUND, Code.PARTNER_SUSPENDED),
}

TRANSFER_P2P: Final = "transfer_p2p"
TRANSFER: Final = "transfer"
AGENT_CASHIN: Final = "agent_cashin"
AGENT_CASHOUT: Final = "agent_cashout"
AGENT_FUND: Final = "agent_fund"
AGENT_TRANSFER: Final = "agent_transfer"
COMMISSION_PAYOUT: Final = "commission_payout"
POS_PAYMENT: Final = "pos_payment"
ONLINE_PAYMENT: Final = "online_payment"
PARTNER_FUND: Final = "partner_fund"
PARTNER_DEPOSIT: Final = "partner_deposit"
PROCESSOR_TRANSFER: Final = "processor_transfer"
REFUND: Final = "refund"
TRANSACTION_TYPES: Final = (
    TRANSFER_P2P,
    TRANSFER,
    AGENT_CASHIN,
    AGENT_CASHOUT,
    AGENT_FUND,
    AGENT_TRANSFER,
    COMMISSION_PAYOUT,
    POS_PAYMENT,
    ONLINE_PAYMENT,
    PARTNER_FUND,
    PARTNER_DEPOSIT,
    PROCESSOR_TRANSFER,
    REFUND,
)

#: Cash that changes hands at an agent. Both can earn the agent a commission.
CASH_TYPES: Final = frozenset({AGENT_CASHIN, AGENT_CASHOUT})
#: What a subscriber sends with these counts against the limits of the day and the month.
LIMITED_TYPES: Final = frozenset(
    {TRANSFER_P2P, TRANSFER, AGENT_CASHOUT, POS_PAYMENT, ONLINE_PAYMENT}
)
#: What a subscriber only ever receives.
RECEIVE_ONLY_TYPES: Final = frozenset({AGENT_CASHIN, PARTNER_FUND, PROCESSOR_TRANSFER})
#: Whom a compliance rule can be about, and the types in which that party can take part.
PAYER, PAYEE, AGENT = "payer", "payee", "agent"
SUBJECT_TYPES: Final = {
    PAYER: LIMITED_TYPES,
    PAYEE: RECEIVE_ONLY_TYPES | {TRANSFER_P2P, TRANSFER, REFUND},
    AGENT: CASH_TYPES | {TRANSFER, AGENT_FUND, AGENT_TRANSFER, COMMISSION_PAYOUT},
}
#: Payments to a merchant: their money arrives on an account that many pay at once, and can be
#: refunded.
PAYMENT_TYPES: Final = frozenset({POS_PAYMENT, ONLINE_PAYMENT})
