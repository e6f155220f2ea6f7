"""Error codes that clients receive, and the HTTP status of each."""

from collections.abc import Mapping
from enum import StrEnum
from typing import Any, TypeVar

T = TypeVar("T")


class Code(StrEnum):
    """Machine-readable error code. Clients branch on codes, so their meanings never change."""

    INVALID_REQUEST = "INVALID_REQUEST"
    INVALID_PIN = "INVALID_PIN"
    SAME_PIN = "SAME_PIN"
    INVALID_OTP = "INVALID_OTP"
    PERMANENT_BLOCK = "PERMANENT_BLOCK"
    MAX_CHILD_CARDS = "MAX_CHILD_CARDS"
    MISSING_PARENT = "MISSING_PARENT"
    UNAUTHORIZED = "UNAUTHORIZED"
    INSUFFICIENT_FUNDS = "INSUFFICIENT_FUNDS"
    INSUFFICIENT_FLOAT = "INSUFFICIENT_FLOAT"
    FORBIDDEN = "FORBIDDEN"
    ACCOUNT_LOCKED = "ACCOUNT_LOCKED"
    OTP_REQUIRED = "OTP_REQUIRED"
    PIN_REQUIRED = "PIN_REQUIRED"
    SUBSCRIBER_BLOCKED = "SUBSCRIBER_BLOCKED"
    CARD_NOT_ACTIVE = "CARD_NOT_ACTIVE"
    CARD_PROOF_REQUIRED = "CARD_PROOF_REQUIRED"
    CARD_NOT_GENUINE = "CARD_NOT_GENUINE"
    AGENT_NOT_ACTIVE = "AGENT_NOT_ACTIVE"
    PROCESSOR_SUSPENDED = "PROCESSOR_SUSPENDED"
    PARTNER_SUSPENDED = "PARTNER_SUSPENDED"
    TERMINAL_BLOCKED = "TERMINAL_BLOCKED"
    COMPLIANCE_REJECTED = "COMPLIANCE_REJECTED"
    TRANSACTION_LIMIT_EXCEEDED = "TRANSACTION_LIMIT_EXCEEDED"
    CARD_LIMIT_EXCEEDED = "CARD_LIMIT_EXCEEDED"
    DAILY_LIMIT_EXCEEDED = "DAILY_LIMIT_EXCEEDED"
    MONTHLY_LIMIT_EXCEEDED = "MONTHLY_LIMIT_EXCEEDED"
    MAX_BALANCE_EXCEEDED = "MAX_BALANCE_EXCEEDED"
    SUBSCRIBER_NOT_FOUND = "SUBSCRIBER_NOT_FOUND"
    CARD_NOT_FOUND = "CARD_NOT_FOUND"
    CARD_IN_OTHER_BOOK = "CARD_IN_OTHER_BOOK"
    KEYSET_NOT_FOUND = "KEYSET_NOT_FOUND"
    AGENT_NOT_FOUND = "AGENT_NOT_FOUND"
    PROCESSOR_NOT_FOUND = "PROCESSOR_NOT_FOUND"
    TERMINAL_NOT_FOUND = "TERMINAL_NOT_FOUND"
    PARTNER_NOT_FOUND = "PARTNER_NOT_FOUND"
    ACCOUNT_NOT_FOUND = "ACCOUNT_NOT_FOUND"
    TRANSACTION_NOT_FOUND = "TRANSACTION_NOT_FOUND"
    ALERT_NOT_FOUND = "ALERT_NOT_FOUND"
    RULE_NOT_FOUND = "RULE_NOT_FOUND"
    REQUEST_NOT_FOUND = "REQUEST_NOT_FOUND"
    APPROVAL_NOT_FOUND = "APPROVAL_NOT_FOUND"
    DISPUTE_NOT_FOUND = "DISPUTE_NOT_FOUND"
    DAY_NOT_FOUND = "DAY_NOT_FOUND"
    RECALL_NOT_FOUND = "RECALL_NOT_FOUND"
    FLOAT_REQUEST_NOT_FOUND = "FLOAT_REQUEST_NOT_FOUND"
    CASH_OUT_REQUEST_NOT_FOUND = "CASH_OUT_REQUEST_NOT_FOUND"
    BANK_ACCOUNT_NOT_FOUND = "BANK_ACCOUNT_NOT_FOUND"
    PAYOUT_NOT_FOUND = "PAYOUT_NOT_FOUND"
    PAYOUT_RUN_NOT_FOUND = "PAYOUT_RUN_NOT_FOUND"
    BANK_STATEMENT_NOT_FOUND = "BANK_STATEMENT_NOT_FOUND"
    BATCH_NOT_FOUND = "BATCH_NOT_FOUND"
    NOT_FOUND = "NOT_FOUND"
    METHOD_NOT_ALLOWED = "METHOD_NOT_ALLOWED"
    DUPLICATE_PHONE = "DUPLICATE_PHONE"
    DUPLICATE_ID_NUMBER = "DUPLICATE_ID_NUMBER"
    DUPLICATE_EMAIL = "DUPLICATE_EMAIL"
    DUPLICATE_REQUEST = "DUPLICATE_REQUEST"
    DUPLICATE_REFERENCE = "DUPLICATE_REFERENCE"
    CARD_ALREADY_LINKED = "CARD_ALREADY_LINKED"
    CARD_NOT_LINKED = "CARD_NOT_LINKED"
    CARD_PROOF_USED = "CARD_PROOF_USED"
    KEYSET_RETIRED = "KEYSET_RETIRED"
    ALREADY_BLOCKED = "ALREADY_BLOCKED"
    NOT_BLOCKED = "NOT_BLOCKED"
    NOT_CLOSABLE = "NOT_CLOSABLE"
    ALREADY_REFUNDED = "ALREADY_REFUNDED"
    NOT_REFUNDABLE = "NOT_REFUNDABLE"
    ALREADY_RESOLVED = "ALREADY_RESOLVED"
    APPROVAL_NOT_PENDING = "APPROVAL_NOT_PENDING"
    ALREADY_DISPUTED = "ALREADY_DISPUTED"
    NOT_DISPUTABLE = "NOT_DISPUTABLE"
    DISPUTE_NOT_OPEN = "DISPUTE_NOT_OPEN"
    NOT_REVERSIBLE = "NOT_REVERSIBLE"
    NOT_RECALLABLE = "NOT_RECALLABLE"
    RECALL_NOT_OPEN = "RECALL_NOT_OPEN"
    FLOAT_REQUEST_NOT_OPEN = "FLOAT_REQUEST_NOT_OPEN"
    CASH_OUT_REQUEST_NOT_OPEN = "CASH_OUT_REQUEST_NOT_OPEN"
    CASH_OUT_REQUEST_OPEN = "CASH_OUT_REQUEST_OPEN"
    ALREADY_SUSPENDED = "ALREADY_SUSPENDED"
    NOT_SUSPENDED = "NOT_SUSPENDED"
    DAY_NOT_CLOSED = "DAY_NOT_CLOSED"
    BANK_ACCOUNT_NOT_VERIFIED = "BANK_ACCOUNT_NOT_VERIFIED"
    PAYOUT_NOT_PENDING = "PAYOUT_NOT_PENDING"
    LINE_NOT_OPEN = "LINE_NOT_OPEN"
    BATCH_NOT_READY = "BATCH_NOT_READY"
    TRANSFER_CANCELLED = "TRANSFER_CANCELLED"
    PAYLOAD_TOO_LARGE = "PAYLOAD_TOO_LARGE"
    UNSUPPORTED_ENCODING = "UNSUPPORTED_ENCODING"
    VALIDATION_FAILED = "VALIDATION_FAILED"
    CURRENCY_NOT_SUPPORTED = "CURRENCY_NOT_SUPPORTED"
    SELF_TRANSFER = "SELF_TRANSFER"
    REFUND_EXCEEDS_REMAINING = "REFUND_EXCEEDS_REMAINING"
    REVERSAL_EXCEEDS_REMAINING = "REVERSAL_EXCEEDS_REMAINING"
    KYC_REQUIREMENTS_NOT_MET = "KYC_REQUIREMENTS_NOT_MET"
    RATE_LIMITED = "RATE_LIMITED"
    INTERNAL_ERROR = "INTERNAL_ERROR"
    SERVICE_UNAVAILABLE = "SERVICE_UNAVAILABLE"


#: Code to (HTTP status, short text in the response's `error` field).
TABLE: Mapping[Code, tuple[int, str]] = {
    Code.INVALID_REQUEST: (400, "Invalid request"),
    Code.INVALID_PIN: (400, "Invalid PIN"),
    Code.SAME_PIN: (400, "New PIN must differ from the current PIN"),
    Code.INVALID_OTP: (400, "Invalid one-time code"),
    Code.PERMANENT_BLOCK: (400, "Card is permanently blocked"),
    Code.MAX_CHILD_CARDS: (400, "Child card limit reached"),
    Code.MISSING_PARENT: (400, "A sub-agent requires a parent agent"),
    Code.UNAUTHORIZED: (401, "Unauthorized"),
    Code.INSUFFICIENT_FUNDS: (402, "Insufficient funds"),
    Code.INSUFFICIENT_FLOAT: (402, "Insufficient float"),
    Code.FORBIDDEN: (403, "Forbidden"),
    Code.ACCOUNT_LOCKED: (403, "PIN locked after too many incorrect attempts"),
    Code.OTP_REQUIRED: (403, "One-time code required"),
    Code.PIN_REQUIRED: (403, "PIN required"),
    Code.SUBSCRIBER_BLOCKED: (403, "Subscriber is not active"),
    Code.CARD_NOT_ACTIVE: (403, "Card is not active"),
    Code.CARD_PROOF_REQUIRED: (403, "Card proof required"),
    Code.CARD_NOT_GENUINE: (403, "Card is not genuine"),
    Code.AGENT_NOT_ACTIVE: (403, "Agent is not active"),
    Code.PROCESSOR_SUSPENDED: (403, "Processor is suspended"),
    Code.PARTNER_SUSPENDED: (403, "Partner is suspended"),
    Code.TERMINAL_BLOCKED: (403, "Terminal is blocked"),
    Code.COMPLIANCE_REJECTED: (403, "Declined by a compliance rule"),
    Code.TRANSACTION_LIMIT_EXCEEDED: (403, "Per-transaction limit exceeded"),
    Code.CARD_LIMIT_EXCEEDED: (403, "Daily card limit exceeded"),
    Code.DAILY_LIMIT_EXCEEDED: (403, "Daily limit exceeded"),
    Code.MONTHLY_LIMIT_EXCEEDED: (403, "Monthly limit exceeded"),
    Code.MAX_BALANCE_EXCEEDED: (403, "Receiver's maximum balance exceeded"),
    Code.SUBSCRIBER_NOT_FOUND: (404, "Subscriber not found"),
    Code.CARD_NOT_FOUND: (404, "Card not found"),
    Code.CARD_IN_OTHER_BOOK: (404, "Card of another book"),
    Code.KEYSET_NOT_FOUND: (404, "Keyset not found"),
    Code.AGENT_NOT_FOUND: (404, "Agent not found"),
    Code.PROCESSOR_NOT_FOUND: (404, "Processor not found"),
    Code.TERMINAL_NOT_FOUND: (404, "Terminal not found"),
    Code.PARTNER_NOT_FOUND: (404, "Partner not found"),
    Code.ACCOUNT_NOT_FOUND: (404, "Account not found"),
    Code.TRANSACTION_NOT_FOUND: (404, "Transaction not found"),
    Code.ALERT_NOT_FOUND: (404, "Alert not found"),
    Code.RULE_NOT_FOUND: (404, "Rule not found"),
    Code.REQUEST_NOT_FOUND: (404, "Request not found"),
    Code.APPROVAL_NOT_FOUND: (404, "Approval not found"),
    Code.DISPUTE_NOT_FOUND: (404, "Dispute not found"),
    Code.DAY_NOT_FOUND: (404, "Day not found"),
    Code.RECALL_NOT_FOUND: (404, "Recall not found"),
    Code.FLOAT_REQUEST_NOT_FOUND: (404, "Float request not found"),
    Code.CASH_OUT_REQUEST_NOT_FOUND: (404, "Cash-out request not found"),
    Code.BANK_ACCOUNT_NOT_FOUND: (404, "Bank account not found"),
    Code.PAYOUT_NOT_FOUND: (404, "Payout not found"),
    Code.PAYOUT_RUN_NOT_FOUND: (404, "Payout run not found"),
    Code.BANK_STATEMENT_NOT_FOUND: (404, "Bank statement not found"),
    Code.BATCH_NOT_FOUND: (404, "Batch not found"),
    Code.NOT_FOUND: (404, "Not found"),
    Code.METHOD_NOT_ALLOWED: (405, "Method not allowed"),
    Code.DUPLICATE_PHONE: (409, "Phone number is already registered"),
    Code.DUPLICATE_ID_NUMBER: (409, "Identity document is already registered"),
    Code.DUPLICATE_EMAIL: (409, "Email address is already registered"),
    Code.DUPLICATE_REQUEST: (409, "Idempotency key was already used for a different request"),
    Code.DUPLICATE_REFERENCE: (409, "Reference was already used for a different payment"),
    Code.CARD_ALREADY_LINKED: (409, "Card is already linked"),
    Code.CARD_NOT_LINKED: (409, "Card is not linked"),
    Code.CARD_PROOF_USED: (409, "Card proof was already used"),
    Code.KEYSET_RETIRED: (409, "Keyset is retired"),
    Code.ALREADY_BLOCKED: (409, "Already blocked"),
    Code.NOT_BLOCKED: (409, "Not blocked"),
    Code.NOT_CLOSABLE: (409, "Cannot be closed"),
    Code.ALREADY_REFUNDED: (409, "Already refunded"),
    Code.NOT_REFUNDABLE: (409, "Cannot be refunded"),
    Code.ALREADY_RESOLVED: (409, "Already resolved"),
    Code.APPROVAL_NOT_PENDING: (409, "Approval is not pending"),
    Code.ALREADY_DISPUTED: (409, "Payment was already disputed"),
    Code.NOT_DISPUTABLE: (409, "Payment cannot be disputed"),
    Code.DISPUTE_NOT_OPEN: (409, "Dispute is not open"),
    Code.NOT_REVERSIBLE: (409, "Cannot be reversed"),
    Code.NOT_RECALLABLE: (409, "Cannot be recalled"),
    Code.RECALL_NOT_OPEN: (409, "Recall is not open"),
    Code.FLOAT_REQUEST_NOT_OPEN: (409, "Float request is not open"),
    Code.CASH_OUT_REQUEST_NOT_OPEN: (409, "Cash-out request is not open"),
    Code.CASH_OUT_REQUEST_OPEN: (409, "Customer has an open cash-out request"),
    Code.ALREADY_SUSPENDED: (409, "Already suspended"),
    Code.NOT_SUSPENDED: (409, "Not suspended"),
    Code.DAY_NOT_CLOSED: (409, "Day is not closed"),
    Code.BANK_ACCOUNT_NOT_VERIFIED: (409, "Bank account is not verified"),
    Code.PAYOUT_NOT_PENDING: (409, "Payout status does not allow this"),
    Code.LINE_NOT_OPEN: (409, "Line status does not allow this"),
    Code.BATCH_NOT_READY: (409, "Batch status does not allow this"),
    Code.TRANSFER_CANCELLED: (409, "Transfer was cancelled"),
    Code.PAYLOAD_TOO_LARGE: (413, "Request body too large"),
    Code.UNSUPPORTED_ENCODING: (415, "Content-Encoding is not supported"),
    Code.VALIDATION_FAILED: (422, "Validation failed"),
    Code.CURRENCY_NOT_SUPPORTED: (422, "Currency not supported"),
    Code.SELF_TRANSFER: (422, "Sender and receiver are the same"),
    Code.REFUND_EXCEEDS_REMAINING: (422, "Refund exceeds the remaining amount"),
    Code.REVERSAL_EXCEEDS_REMAINING: (422, "Reversal exceeds the remaining amount"),
    Code.KYC_REQUIREMENTS_NOT_MET: (422, "KYC documents are missing"),
    Code.RATE_LIMITED: (429, "Too many requests"),
    Code.INTERNAL_ERROR: (500, "Internal error"),
    Code.SERVICE_UNAVAILABLE: (503, "Service unavailable"),
}


class ApiError(Exception):
    """Error that is returned to the client. `details` never contains a submitted secret."""

    def __init__(
        self,
        code: Code,
        message: str | None = None,
        *,
        details: Mapping[str, Any] | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(code)
        self.code = code
        self.status, self.error = TABLE[code]
        self.message = message
        self.details = details
        self.headers = headers or {}

    def body(self) -> dict[str, Any]:
        body: dict[str, Any] = {"error": self.error, "code": str(self.code)}
        if self.message is not None:
            body["message"] = self.message
        if self.details is not None:
            body["details"] = self.details
        return body


def require_found(value: T | None, code: Code, message: str | None = None) -> T:
    """Return a lookup's result, or raise an error if it is None."""
    if value is None:
        raise ApiError(code, message)
    return value


def invalid_field(field: str, message: str, code: Code = Code.VALIDATION_FAILED) -> ApiError:
    """Return the error for an invalid field value. `message` must not quote the value."""
    return ApiError(code, f"{field} {message}", details={"fields": {field: message}})


def unavailable(message: str) -> ApiError:
    """Return a 503 with `Retry-After`, which tells the client to retry the request."""
    return ApiError(Code.SERVICE_UNAVAILABLE, message, headers={"Retry-After": "1"})
