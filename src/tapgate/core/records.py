"""Conversion between stored rows and API records and IDs."""

from collections.abc import Mapping
from datetime import date, datetime
from typing import Annotated, Any, Final, TypeVar

import msgspec

from tapgate_client import clock, ids
from tapgate_client.errors import Code, require_found

Record = TypeVar("Record", bound=msgspec.Struct)
T = TypeVar("T")

#: Field -> prefix of its public ID.
_ID_PREFIXES: Final = {
    "account_id": ids.ACCOUNT,
    "api_key_id": ids.KEY,
    "bank_account_id": ids.BANK_ACCOUNT,
    "assignee": ids.ADMIN,
    "created_by": ids.ADMIN,
    "keyset_id": ids.CARD_KEYSET,
    "parent_agent_id": ids.AGENT,
    "partner_id": ids.PARTNER,
    "payout_id": ids.PAYOUT,
    "processor_id": ids.PROCESSOR,
    "resolved_by": ids.ADMIN,
    "reversal_id": ids.TRANSACTION,
    "rotated_by": ids.ADMIN,
    "rule_id": ids.RULE,
    "statement_id": ids.BANK_STATEMENT,
    "subscriber_id": ids.SUBSCRIBER,
    "terminal_id": ids.TERMINAL,
    "transaction_id": ids.TRANSACTION,
}

#: IDs in endpoint paths, which handlers receive decoded.
AdminId = Annotated[int, ids.ADMIN]
AgentId = Annotated[int, ids.AGENT]
AlertId = Annotated[int, ids.ALERT]
ApiKeyId = Annotated[int, ids.KEY]
ApprovalId = Annotated[int, ids.APPROVAL]
BankAccountId = Annotated[int, ids.BANK_ACCOUNT]
BankStatementId = Annotated[int, ids.BANK_STATEMENT]
BankStatementLineId = Annotated[int, ids.BANK_STATEMENT_LINE]
BatchId = Annotated[int, ids.BATCH]
CardKeysetId = Annotated[int, ids.CARD_KEYSET]
CashOutRequestId = Annotated[int, ids.CASH_OUT_REQUEST]
DeliveryId = Annotated[int, ids.DELIVERY]
DisputeId = Annotated[int, ids.DISPUTE]
FloatRequestId = Annotated[int, ids.FLOAT_REQUEST]
PartnerId = Annotated[int, ids.PARTNER]
PasskeyId = Annotated[int, ids.PASSKEY]
PayoutId = Annotated[int, ids.PAYOUT]
PayoutRunId = Annotated[int, ids.PAYOUT_RUN]
ProcessorId = Annotated[int, ids.PROCESSOR]
RequestLogId = Annotated[int, ids.REQUEST_LOG]
RuleId = Annotated[int, ids.RULE]
RecallId = Annotated[int, ids.RECALL]
SavedReplyId = Annotated[int, ids.SAVED_REPLY]
SessionId = Annotated[int, ids.SESSION]
SubscriberId = Annotated[int, ids.SUBSCRIBER]
SupportRequestId = Annotated[int, ids.SUPPORT_REQUEST]
TransactionId = Annotated[int, ids.TRANSACTION]
WebhookEndpointId = Annotated[int, ids.WEBHOOK_ENDPOINT]

NOT_FOUND_CODES: Final = {
    ids.AGENT: Code.AGENT_NOT_FOUND,
    ids.ALERT: Code.ALERT_NOT_FOUND,
    ids.APPROVAL: Code.APPROVAL_NOT_FOUND,
    ids.BANK_ACCOUNT: Code.BANK_ACCOUNT_NOT_FOUND,
    ids.BANK_STATEMENT: Code.BANK_STATEMENT_NOT_FOUND,
    ids.BANK_STATEMENT_LINE: Code.BANK_STATEMENT_NOT_FOUND,
    ids.BATCH: Code.BATCH_NOT_FOUND,
    ids.CARD_KEYSET: Code.KEYSET_NOT_FOUND,
    ids.CASH_OUT_REQUEST: Code.CASH_OUT_REQUEST_NOT_FOUND,
    ids.DISPUTE: Code.DISPUTE_NOT_FOUND,
    ids.FLOAT_REQUEST: Code.FLOAT_REQUEST_NOT_FOUND,
    ids.PARTNER: Code.PARTNER_NOT_FOUND,
    ids.PAYOUT: Code.PAYOUT_NOT_FOUND,
    ids.PAYOUT_RUN: Code.PAYOUT_RUN_NOT_FOUND,
    ids.PROCESSOR: Code.PROCESSOR_NOT_FOUND,
    ids.REQUEST_LOG: Code.REQUEST_NOT_FOUND,
    ids.RECALL: Code.RECALL_NOT_FOUND,
    ids.RULE: Code.RULE_NOT_FOUND,
    ids.SUBSCRIBER: Code.SUBSCRIBER_NOT_FOUND,
    ids.SUPPORT_REQUEST: Code.REQUEST_NOT_FOUND,
    ids.TRANSACTION: Code.TRANSACTION_NOT_FOUND,
}
#: Messages for records whose error has the general code `NOT_FOUND`.
_NOT_FOUND_MESSAGES: Final = {
    ids.ADMIN: "No such admin.",
    ids.DELIVERY: "No such delivery.",
    ids.KEY: "No such API key.",
    ids.PASSKEY: "No such passkey.",
    ids.SAVED_REPLY: "No such saved reply.",
    ids.SESSION: "No such session.",
    ids.WEBHOOK_ENDPOINT: "No such webhook endpoint.",
}


def build_record(
    record_type: type[Record], source: msgspec.Struct | Mapping[str, Any], /, **fields: object
) -> Record:
    """Return a record with the given fields, and its other fields copied from `source` by name.

    Times, dates and other records' IDs are formatted. The record's own ID and amounts of
    money are not, so the caller must give them.
    """
    values = msgspec.structs.asdict(source) if isinstance(source, msgspec.Struct) else source
    for name in record_type.__struct_fields__:
        if name not in fields and name in values:
            fields[name] = _format(name, values[name])
    return record_type(**fields)


def _format(name: str, value: Any) -> Any:
    if value is None or isinstance(value, str):
        return value
    if isinstance(value, datetime):
        return clock.format_rfc3339(value)
    if isinstance(value, date):
        return value.isoformat()
    if isinstance(value, int) and name in _ID_PREFIXES:
        return ids.encode(_ID_PREFIXES[name], value)
    if isinstance(value, int) and (name == "id" or name.endswith("_id")):
        raise TypeError(f"{name} is an internal ID")
    return value


def get_given_fields(body: msgspec.Struct) -> dict[str, Any]:
    """Return the request body fields that are neither absent nor null."""
    values = msgspec.structs.asdict(body)
    return {name: value for name, value in values.items() if value is not None}


def require_id(prefix: str, public_id: str) -> int:
    """Decode a public ID, or raise the error that its record is not found."""
    return require_record(prefix, ids.decode(prefix, public_id))


def require_record(prefix: str, value: T | None) -> T:
    """Return the result of looking up a record by its ID, or raise the error that it is missing."""
    code = NOT_FOUND_CODES.get(prefix, Code.NOT_FOUND)
    return require_found(value, code, _NOT_FOUND_MESSAGES.get(prefix))
