"""Commands that the ledger accepts, and their results."""

from collections.abc import Mapping
from typing import Any, Final, Literal

import msgspec

from tapgate.ledger import chart
from tapgate.ledger.card_proofs.proof_verifier import ProofResult
from tapgate.ledger.pins.pin_lockout import build_pin_error
from tapgate_client.errors import ApiError, Code
from tapgate_client.schemas.compliance import Resolution


class Party(msgspec.Struct, frozen=True, gc=False):
    """Reference to a payer or payee: a card, an owner and account kind, or an account ID."""

    by: Literal["card", "owner", "account"]
    key: str | int
    kind: str = ""


def card_party(serial: str) -> Party:
    return Party("card", serial)


def subscriber_party(subscriber_id: int) -> Party:
    return Party("owner", subscriber_id, chart.WALLET)


def agent_party(agent_id: int) -> Party:
    return Party("owner", agent_id, chart.FLOAT)


def commission_party(agent_id: int) -> Party:
    return Party("owner", agent_id, chart.COMMISSION)


def processor_party(processor_id: int) -> Party:
    return Party("owner", processor_id, chart.SETTLEMENT)


def partner_party(partner_id: int) -> Party:
    return Party("owner", partner_id, chart.CLEARING)


def account_party(account_id: int) -> Party:
    return Party("account", account_id)


#: Platform account for cash that enters or leaves the ledger.
CASH_PARTY = Party("owner", 0, chart.CASH)
PAYOUTS_IN_TRANSIT_PARTY = Party("owner", 0, chart.PAYOUTS_IN_TRANSIT)
SUSPENSE_PARTY = Party("owner", 0, chart.SUSPENSE)
#: The payout determines the parties, once it is loaded.
UNKNOWN_PARTY = Party("account", 0)


class ScopedIdempotencyKey(msgspec.Struct, frozen=True, gc=False):
    """A request's idempotency key, unique within its scope."""

    scope: str
    request_id: str
    fingerprint: bytes  # request hash without PINs
    lookup_scopes: tuple[str, ...] = ()  # scopes to search; if empty, only `scope`


class PartnerReference(msgspec.Struct, frozen=True, gc=False):
    """A partner's reference for a top-up by API or webhook.

    It is unique among the partner's top-ups that have not failed.
    """

    partner_id: int
    reference: str


class TransactionResult(msgspec.Struct, frozen=True, array_like=True, kw_only=True, gc=False):
    """Result for an accepted or declined command.

    It is stored with the transaction, so that a replay returns it again. A review decision's result
    is not stored.
    """

    transaction_id: int
    status: str
    amount: int
    fee: int
    code: str | None = None
    details: dict[str, Any] | None = None
    payer_available: int | None = None
    payee_available: int | None = None
    commission: int = 0
    refundable_amount: int | None = None
    payee_name: str | None = None
    original_id: int | None = None
    #: Fee that a refund returned to the merchant. None in results stored before the field existed.
    fee_refunded: int | None = None


class DisputeRefund(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """Dispute that a refund ends: by the merchant's response, or by a decision with its reason."""

    id: int
    response: str | None = None
    decision_reason: str | None = None


class AuditFacts(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """Who asked for a command and why, as recorded in the audit entries that commit with it."""

    actor: dict[str, str]
    ip: str | None
    request_id: str | None
    reason: str | None = None


class NewPayout(msgspec.Struct, frozen=True, array_like=True, kw_only=True, gc=False):
    """Payout that is created if its command is accepted.

    Without an amount in the command, everything available is paid out, fee included, except
    `reserve_percent` of the available balance, and at most `maximum`: approval rules allowed no
    more, although money may have arrived since. Less than `minimum` is not paid out.
    """

    id: int
    owner_type: str
    owner_id: int
    bank_account_id: int
    reference: str
    reserve_percent: int = 0
    minimum: int = 0
    maximum: int | None = None


class PayoutChange(msgspec.Struct, frozen=True, array_like=True, kw_only=True, gc=False):
    """Status change of a payout, decided under the payout's lock.

    The payout determines the parties and the amount of the command.
    """

    payout_id: int
    status: str
    allowed: tuple[str, ...]  # statuses from which the change is possible
    bank_reference: str | None = None
    return_reason: str | None = None


class BankLineChange(msgspec.Struct, frozen=True, array_like=True, kw_only=True, gc=False):
    """Bank statement line that a command changes in its database transaction.

    The command is rejected if the line's status is no longer `before`.
    """

    line_id: int
    before: str
    status: str
    reason: str | None = None
    key: ScopedIdempotencyKey | None = None  # of the request that changes the line


class BatchLine(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """Line of a batch. It is paid once, and only while its batch is running."""

    batch_id: int
    row: int


class NewBookTransfer(msgspec.Struct, frozen=True, array_like=True, kw_only=True, gc=False):
    """Recipient in another book to whom an accepted transfer is delivered."""

    book: str
    recipient_id: str  # the subscriber's public ID in that book
    recipient_name: str


PinPolicy = Literal["if_given", "required", "above_no_pin_limit"]

#: When the payer must enter a PIN, by transaction type. Other types have no PIN.
PIN_POLICIES: Final[Mapping[str, PinPolicy]] = {
    chart.TRANSFER_P2P: "required",
    chart.TRANSFER: "required",
    chart.AGENT_CASHIN: "required",
    chart.AGENT_CASHOUT: "required",
    chart.AGENT_TRANSFER: "required",
    chart.POS_PAYMENT: "above_no_pin_limit",
    chart.ONLINE_PAYMENT: "above_no_pin_limit",
}


class Command(
    msgspec.Struct,
    frozen=True,
    kw_only=True,
    gc=False,
    array_like=True,
    tag_field="command",
    tag="transaction",
):
    """A request to move money from the payer to the payee."""

    type: str
    channel: str
    payer: Party
    payee: Party
    amount: int | None  # None: refund the rest of the payment, or pay out the available balance
    payer_pin: str | None = None
    payee_pin: str | None = None  # for an agent who hands out cash
    #: Credential whose wrong PINs are counted; None if they are counted per phone.
    pin_credential: str | None = None
    card_proof: ProofResult | None = None  # for the payer's card
    pin_policy: PinPolicy = "if_given"
    wallets_only: bool = False  # both accounts must be wallets
    original_id: int | None = None  # the payment to refund
    idempotency_key: ScopedIdempotencyKey | None = None
    reference: PartnerReference | None = None
    context: dict[str, Any] | None = None  # terminal, merchant, memo, metadata: stored, not checked
    caller_error: Code | None = None  # error found by the caller, reported if the parties exist
    caller_error_details: dict[str, str | list[str]] | None = None
    declines_caller_error: bool = False  # stored, so that a replay gets the error
    payout: NewPayout | None = None
    payout_change: PayoutChange | None = None
    batch_line: BatchLine | None = None  # that the command pays
    checks_restriction: bool = False  # whether to set the outcome's `is_payee_restricted`
    audit: AuditFacts | None = None  # set if rows outside the ledger commit with the command
    approval_id: int | None = None  # approval whose execution ends with the command
    traceparent: str | None = None  # the request's span, if traces are exported
    dispute: DisputeRefund | None = None  # ended by this refund
    bank_line: BankLineChange | None = None
    float_request_id: int | None = None  # ended by this funding
    cash_out_request_id: int | None = None  # ended by this cash-out
    refund_limit: int | None = None  # of all refunds of the payment together
    book_transfer: NewBookTransfer | None = None


class ReviewDecision(
    msgspec.Struct, frozen=True, kw_only=True, array_like=True, tag_field="command", tag="review"
):
    """Review outcome: release the held funds to the payee, or return them to the payer."""

    transaction_id: int
    release: bool
    alert_id: int | None = None  # alert that the resolution closes
    resolution: Resolution | None = None
    audit: AuditFacts | None = None  # set if rows outside the ledger commit with the decision
    approval_id: int | None = None  # approval whose execution ends with the decision


class Reversal(
    msgspec.Struct, frozen=True, kw_only=True, array_like=True, tag_field="command", tag="reversal"
):
    """A request to undo a transaction or a part of it, on behalf of staff."""

    original_id: int
    amount: int | None  # None: the rest
    channel: str
    idempotency_key: ScopedIdempotencyKey | None = None
    context: dict[str, str] | None = None  # memo and requester: stored, not checked
    audit: AuditFacts | None = None
    approval_id: int | None = None  # approval whose execution ends with the reversal
    is_refused: bool = False  # whether another book refused the transfer


class RecallRequest(
    msgspec.Struct, frozen=True, kw_only=True, array_like=True, tag_field="command", tag="recall"
):
    """A sender's request to get a transfer back: holds what the receiver still has."""

    transaction_id: int
    max_age_seconds: int  # after the transfer
    hold_seconds: int
    idempotency_key: ScopedIdempotencyKey
    reason: str | None = None
    audit: AuditFacts | None = None


class RecallDecision(
    msgspec.Struct,
    frozen=True,
    kw_only=True,
    array_like=True,
    tag_field="command",
    tag="recall_decision",
):
    """The end of a recall: the hold ends, and with `is_return` the held amount goes back."""

    recall_id: int
    transaction_id: int  # the recalled transfer
    status: str
    is_return: bool
    channel: str
    reason: str | None = None
    decided_by: str | None = None
    audit: AuditFacts | None = None
    approval_id: int | None = None  # approval whose execution ends with the decision


#: Commands are data: another worker may execute them (`node_ledger`).
LedgerCommand = Command | ReviewDecision | Reversal | RecallRequest | RecallDecision


class Outcome(msgspec.Struct, frozen=True, gc=False):
    """Command outcome: a transaction result or a rejection.

    A rejection stores no transaction, but it can update a PIN's failure count and raise alerts.
    """

    result: TransactionResult | None
    code: Code | None = None
    details: dict[str, Any] | None = None
    replayed: bool = False
    #: Whether the payee is a restricted subscriber. None if the command does not check it.
    is_payee_restricted: bool | None = None
    #: Return value of the before-commit hook: a record that committed with the command.
    related: bytes | None = None

    def require_accepted(self) -> TransactionResult:
        """Return an accepted command's result; raise a decline or rejection as an ApiError."""
        if self.code is not None:
            headers = {"Idempotent-Replayed": "true"} if self.replayed else None
            if self.code == Code.RATE_LIMITED:
                raise build_pin_error(self.code, self.details)
            raise ApiError(self.code, details=self.details, headers=headers)
        assert self.result is not None
        return self.result


def build_outcome(result: TransactionResult, *, replayed: bool) -> Outcome:
    if result.code is None:
        return Outcome(result, replayed=replayed)
    return Outcome(result, Code(result.code), result.details, replayed)


class RejectedBeforeCommitError(Exception):
    """Raised by the before-commit hook if the command's precondition no longer holds.

    The command is rejected with the code, and nothing is stored.
    """

    def __init__(self, code: Code) -> None:
        super().__init__(code)
        self.code = code


_encoder = msgspec.msgpack.Encoder()
_decoder = msgspec.msgpack.Decoder(TransactionResult)
encode_result = _encoder.encode
decode_result = _decoder.decode
