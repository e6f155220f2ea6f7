"""Submission of commands to the ledger on behalf of a caller."""

import hashlib
from typing import Final

import msgspec

from tapgate.api.services import Services
from tapgate.auth.disclosure import (
    Audience,
    Subject,
    find_hidden_accounts,
    find_hidden_subjects,
    has_full_disclosure,
    is_hidden,
)
from tapgate.auth.principals import Principal
from tapgate.ledger import chart
from tapgate.ledger.commands import (
    PIN_POLICIES,
    Command,
    Outcome,
    Party,
    PinPolicy,
    ScopedIdempotencyKey,
)
from tapgate_client import ids
from tapgate_client.errors import Code
from tapgate_client.schemas.transactions import Channel, MoneyRequest

#: Fields outside the fingerprint: the idempotency key, PINs, the proof of a tap, and the currency,
#: which cannot vary.
_FINGERPRINT_EXCLUDED_FIELDS: Final = ("request_id", "pin", "agent_pin", "card_proof", "currency")

#: Fields added since the first release. Without a value they are outside the fingerprint, so that
#: requests stored before still replay.
_FINGERPRINT_ADDED_FIELDS: Final = ("recipient_phone_number",)

_fields_encoder = msgspec.json.Encoder(order="deterministic")

#: Callers behind whom is an admin.
_RECORDED_KINDS: Final = ("admin", "api_key")

_CHANNEL_BY_PRINCIPAL: Final = {
    "api_key": Channel.API,
    "admin": Channel.ADMIN,
    "service": Channel.MESSAGING,
    "partner": Channel.PARTNER,
    "processor": Channel.POS,
}


async def submit(services: Services, caller: Audience, command: Command) -> Outcome:
    """Submit a command, and return its outcome without what the caller may not see.

    A subscriber who pays is not checked here: a caller without full disclosure must send the
    payer's PIN, or the route has already checked access to the payer.
    """
    if caller is not None and (command.payer_pin is not None or command.payee_pin is not None):
        command = msgspec.structs.replace(command, pin_credential=caller.pin_credential)
    if caller is not None and caller.kind in _RECORDED_KINDS:
        # Who asked for a transaction may not release it from review.
        command = msgspec.structs.replace(
            command, context={**(command.context or {}), "requested_by": caller.id}
        )
    if has_full_disclosure(caller) or not _may_be_subscriber(command.payee):
        return await services.ledger.submit(command)
    if caller is not None and caller.kind == "admin":
        # Query this before the ledger commits, so that if it fails with 503, nothing is executed.
        is_payee_hidden = await _is_payee_hidden(services, caller, command.payee)
        outcome = await services.ledger.submit(command)
    else:
        # Every restricted subscriber is hidden. The ledger reads this with its other data.
        outcome = await services.ledger.submit(
            msgspec.structs.replace(command, checks_restriction=True)
        )
        is_payee_hidden = outcome.is_payee_restricted is not False
    return _redact_payee(outcome) if is_payee_hidden else outcome


def _may_be_subscriber(payee: Party) -> bool:
    return payee.by != "owner" or payee.kind == chart.WALLET


async def _is_payee_hidden(services: Services, caller: Audience, payee: Party) -> bool:
    """Return whether the payee is a restricted subscriber to whom an admin has no access."""
    database, now = services.database, services.clock()
    match payee:
        case Party(by="account", key=int(account_id)):
            return bool(await find_hidden_accounts(database, caller, now, [account_id]))
        case Party(by="card", key=str(serial)):
            subjects = [Subject("card", serial)]
            return bool(await find_hidden_subjects(database, caller, now, subjects))
        case Party(by="owner", key=int(owner_id), kind=chart.WALLET):
            return await is_hidden(database, caller, now, owner_id)
    return False


def _redact_payee(outcome: Outcome) -> Outcome:
    """Remove the payee's name and balance, including `used` in the MAX_BALANCE_EXCEEDED details."""
    details, result = outcome.details, outcome.result
    if outcome.code == Code.MAX_BALANCE_EXCEEDED and details is not None:
        details = {name: value for name, value in details.items() if name != "used"}
    if result is not None:
        result = msgspec.structs.replace(result, payee_name=None, payee_available=None)
    return msgspec.structs.replace(outcome, result=result, details=details)


def scope_idempotency_key(
    caller: Principal, request_id: str, path: str, body: MoneyRequest
) -> ScopedIdempotencyKey:
    """Return a key that is unique within the caller's scope, with the request's fingerprint."""
    return ScopedIdempotencyKey(
        caller.idempotency_scope,
        request_id,
        calculate_fingerprint(path, body),
        caller.lookup_scopes,
    )


def calculate_fingerprint(path: str, body: MoneyRequest) -> bytes:
    """Return a hash that distinguishes a replay from another request with the same key."""
    fields = msgspec.structs.asdict(body)
    for name in _FINGERPRINT_EXCLUDED_FIELDS:
        fields.pop(name, None)
    for name in _FINGERPRINT_ADDED_FIELDS:
        if name in fields and fields[name] is None:
            del fields[name]
    encoded_path = path.removeprefix("/api/v1").encode()
    encoded_fields = _fields_encoder.encode(fields)
    return hashlib.blake2b(encoded_path + b"\n" + encoded_fields, digest_size=16).digest()


def get_channel(caller: Principal) -> Channel:
    """Return the channel of a command whose route does not determine it."""
    return _CHANNEL_BY_PRINCIPAL[caller.kind]


def get_pin_policy(caller: Principal, transaction_type: str) -> PinPolicy:
    """Return when the payer of a transaction that the caller requests must enter a PIN."""
    if transaction_type == chart.TRANSFER and caller.kind == "admin":
        return "if_given"
    return PIN_POLICIES.get(transaction_type, "if_given")


def decode_id(prefix: str, public_id: str | None) -> int:
    """Decode a public ID; return 0, which no row has, for an invalid or missing ID.

    The ledger then returns the 404 error itself, after it has checked for a replay.
    """
    return 0 if public_id is None else ids.decode(prefix, public_id) or 0
