"""What the ledger is asked to do, and what it answers."""

from collections.abc import Awaitable, Callable
from typing import Any, Literal

import msgspec

from tapgate.errors import ApiError, Code
from tapgate.ledger import chart


class Party(msgspec.Struct, frozen=True, gc=False):
    """How a command names one side: by card, by owner (and which of the owner's accounts), or by
    the account itself."""

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


#: Cash that comes in from or goes out to the world outside the books.
CASH_PARTY = Party("owner", 0, chart.CASH)


class ScopedIdempotencyKey(msgspec.Struct, frozen=True, gc=False):
    """An idempotency key: a repeated request is replayed instead of executed."""

    scope: str
    request_id: str
    fingerprint: bytes  # of the request without its PINs
    lookup_scopes: tuple[str, ...] = ()  # where it may be stored, if other than `scope` alone


class PartnerReference(msgspec.Struct, frozen=True, gc=False):
    """A partner's name for a top-up: one name, one top-up, whichever way it was asked for."""

    partner_id: int
    reference: str


class TransactionResult(msgspec.Struct, frozen=True, array_like=True, kw_only=True, gc=False):
    """What came of a command. Stored with the transaction, so that a replay answers the same."""

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


#: Writes, in the database transaction that carries the order out, what else belongs to it. The
#: accounts are locked, so it must not wait for who may wait for them; what it raises fails the
#: order. A decline or a repetition has nothing to witness.
BeforeCommit = Callable[[Any, TransactionResult], Awaitable[None]]


PinPolicy = Literal["if_given", "required", "above_no_pin_limit"]


class Command(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """One movement of money: from the payer to the payee."""

    type: str
    channel: str
    payer: Party
    payee: Party
    amount: int | None  # None: all of it, for refunds and commission payouts
    payer_pin: str | None = None
    payee_pin: str | None = None  # of an agent who hands out the cash
    pin_policy: PinPolicy = "if_given"
    wallets_only: bool = False  # the caller may move subscribers' money only
    original_id: int | None = None  # of a refund
    idempotency_key: ScopedIdempotencyKey | None = None
    reference: PartnerReference | None = None
    context: dict[str, Any] | None = None  # terminal, merchant, memo, metadata: kept, not judged
    caller_error: Code | None = None  # what the caller found; told when it is its turn
    before_commit: BeforeCommit | None = None


class ReviewDecision(msgspec.Struct, frozen=True, kw_only=True):
    """The end of a review: the held funds go on to the payee, or back to the payer."""

    transaction_id: int
    release: bool
    before_commit: BeforeCommit | None = None


LedgerCommand = Command | ReviewDecision


class Outcome(msgspec.Struct, frozen=True, gc=False):
    """An answer, or a refusal that left nothing behind but perhaps a counted PIN try."""

    result: TransactionResult | None
    code: Code | None = None
    details: dict[str, Any] | None = None
    replayed: bool = False

    def require_accepted(self) -> TransactionResult:
        """The answer of a movement that took place; a decline or refusal raised as its error."""
        if self.code is not None:
            headers = {"Idempotent-Replayed": "true"} if self.replayed else None
            raise ApiError(self.code, details=self.details, headers=headers)
        assert self.result is not None
        return self.result


def build_outcome(answer: TransactionResult, *, replayed: bool) -> Outcome:
    if answer.code is None:
        return Outcome(answer, replayed=replayed)
    return Outcome(answer, Code(answer.code), answer.details, replayed)


_encoder = msgspec.msgpack.Encoder()
_decoder = msgspec.msgpack.Decoder(TransactionResult)
encode_result = _encoder.encode
decode_result = _decoder.decode
