"""One exception class per error code, with properties for the details of that code."""

from decimal import Decimal

from tapgate.client.exceptions.base import (
    BadRequestError,
    ConflictError,
    ForbiddenError,
    NotFoundError,
    RetryableError,
    ServerError,
    TransactionDeclinedError,
)
from tapgate.errors import Code


class InsufficientFundsError(TransactionDeclinedError, code=Code.INSUFFICIENT_FUNDS):
    """Insufficient funds. Also the base class for an agent's insufficient float."""

    @property
    def available(self) -> Decimal | None:
        return self._get_decimal("available")

    @property
    def required(self) -> Decimal | None:
        return self._get_decimal("required")

    def _get_decimal(self, name: str) -> Decimal | None:
        # The gateway encodes the shortest number that round-trips, which `str` reproduces.
        value = self.details.get(name)
        return Decimal(str(value)) if isinstance(value, int | float) else None


class LimitExceededError(TransactionDeclinedError):
    """A limit would be exceeded. Amounts are decimal strings."""

    @property
    def limit(self) -> str | None:
        return self._get_text("limit")

    @property
    def used(self) -> str | None:
        return self._get_text("used")

    @property
    def attempted(self) -> str | None:
        return self._get_text("attempted")


class InvalidRequestError(BadRequestError, code=Code.INVALID_REQUEST):
    """Invalid request."""


class InvalidPinError(BadRequestError, code=Code.INVALID_PIN):
    """Invalid PIN."""

    @property
    def attempts_remaining(self) -> int | None:
        """Return the number of attempts left before the PIN is locked."""
        return self._get_integer("attempts_remaining")


class SamePinError(BadRequestError, code=Code.SAME_PIN):
    """The new PIN must differ from the current PIN."""


class InvalidOtpError(BadRequestError, code=Code.INVALID_OTP):
    """Invalid one-time code."""

    @property
    def attempts_remaining(self) -> int | None:
        """Return the number of attempts left. At 0, request a new code."""
        return self._get_integer("attempts_remaining")


class PermanentBlockError(BadRequestError, code=Code.PERMANENT_BLOCK):
    """The card is permanently blocked."""


class MaxChildCardsError(BadRequestError, code=Code.MAX_CHILD_CARDS):
    """The maximum number of child cards is reached."""


class MissingParentError(BadRequestError, code=Code.MISSING_PARENT):
    """A sub-agent requires a parent agent."""


class InsufficientFloatError(InsufficientFundsError, code=Code.INSUFFICIENT_FLOAT):
    """Insufficient float."""


class AccountLockedError(ForbiddenError, code=Code.ACCOUNT_LOCKED):
    """The PIN is locked after too many incorrect attempts."""

    @property
    def locked_until(self) -> str | None:
        """Return the time at which the lock ends."""
        return self._get_text("locked_until")


class OtpRequiredError(ForbiddenError, code=Code.OTP_REQUIRED):
    """A one-time code is required."""


class PinRequiredError(ForbiddenError, code=Code.PIN_REQUIRED):
    """A PIN is required."""


class SubscriberBlockedError(TransactionDeclinedError, code=Code.SUBSCRIBER_BLOCKED):
    """The subscriber is not active."""


class CardNotActiveError(TransactionDeclinedError, code=Code.CARD_NOT_ACTIVE):
    """The card is not active."""


class AgentNotActiveError(TransactionDeclinedError, code=Code.AGENT_NOT_ACTIVE):
    """The agent is not active."""


class ProcessorSuspendedError(ForbiddenError, code=Code.PROCESSOR_SUSPENDED):
    """The processor is suspended."""


class PartnerSuspendedError(ForbiddenError, code=Code.PARTNER_SUSPENDED):
    """The partner is suspended."""


class TerminalBlockedError(ForbiddenError, code=Code.TERMINAL_BLOCKED):
    """The terminal is blocked."""


class ComplianceRejectedError(TransactionDeclinedError, code=Code.COMPLIANCE_REJECTED):
    """Declined by a compliance rule."""


class TransactionLimitExceededError(LimitExceededError, code=Code.TRANSACTION_LIMIT_EXCEEDED):
    """The amount exceeds the per-transaction limit."""


class CardLimitExceededError(LimitExceededError, code=Code.CARD_LIMIT_EXCEEDED):
    """The card's daily limit would be exceeded."""


class DailyLimitExceededError(LimitExceededError, code=Code.DAILY_LIMIT_EXCEEDED):
    """The daily limit would be exceeded."""


class MonthlyLimitExceededError(LimitExceededError, code=Code.MONTHLY_LIMIT_EXCEEDED):
    """The monthly limit would be exceeded."""


class MaxBalanceExceededError(LimitExceededError, code=Code.MAX_BALANCE_EXCEEDED):
    """The receiver's maximum balance would be exceeded."""


class SubscriberNotFoundError(NotFoundError, code=Code.SUBSCRIBER_NOT_FOUND):
    """Subscriber not found."""


class CardNotFoundError(NotFoundError, code=Code.CARD_NOT_FOUND):
    """Card not found."""


class AgentNotFoundError(NotFoundError, code=Code.AGENT_NOT_FOUND):
    """Agent not found."""


class ProcessorNotFoundError(NotFoundError, code=Code.PROCESSOR_NOT_FOUND):
    """Processor not found."""


class TerminalNotFoundError(NotFoundError, code=Code.TERMINAL_NOT_FOUND):
    """Terminal not found."""


class PartnerNotFoundError(NotFoundError, code=Code.PARTNER_NOT_FOUND):
    """Partner not found."""


class AccountNotFoundError(NotFoundError, code=Code.ACCOUNT_NOT_FOUND):
    """Account not found."""


class TransactionNotFoundError(NotFoundError, code=Code.TRANSACTION_NOT_FOUND):
    """Transaction not found."""


class AlertNotFoundError(NotFoundError, code=Code.ALERT_NOT_FOUND):
    """Alert not found."""


class RuleNotFoundError(NotFoundError, code=Code.RULE_NOT_FOUND):
    """Rule not found."""


class MethodNotAllowedError(BadRequestError, code=Code.METHOD_NOT_ALLOWED):
    """Method not allowed."""


class DuplicatePhoneError(ConflictError, code=Code.DUPLICATE_PHONE):
    """The phone number is already registered."""


class DuplicateIdNumberError(ConflictError, code=Code.DUPLICATE_ID_NUMBER):
    """The identity document is already registered."""


class DuplicateEmailError(ConflictError, code=Code.DUPLICATE_EMAIL):
    """The email address is already registered."""


class DuplicateRequestError(ConflictError, code=Code.DUPLICATE_REQUEST):
    """The idempotency key was already used for a different request."""


class DuplicateReferenceError(ConflictError, code=Code.DUPLICATE_REFERENCE):
    """The reference was already used for a different payment."""


class CardAlreadyLinkedError(ConflictError, code=Code.CARD_ALREADY_LINKED):
    """The card is already linked."""


class CardNotLinkedError(ConflictError, code=Code.CARD_NOT_LINKED):
    """The card is not linked."""


class AlreadyBlockedError(ConflictError, code=Code.ALREADY_BLOCKED):
    """Already blocked."""


class NotBlockedError(ConflictError, code=Code.NOT_BLOCKED):
    """Not blocked."""


class NotClosableError(ConflictError, code=Code.NOT_CLOSABLE):
    """The resource cannot be closed."""


class AlreadyRefundedError(ConflictError, code=Code.ALREADY_REFUNDED):
    """The transaction is already refunded."""


class NotRefundableError(ConflictError, code=Code.NOT_REFUNDABLE):
    """The transaction cannot be refunded."""


class AlreadyResolvedError(ConflictError, code=Code.ALREADY_RESOLVED):
    """The alert is already resolved."""


class AlreadySuspendedError(ConflictError, code=Code.ALREADY_SUSPENDED):
    """Already suspended."""


class NotSuspendedError(ConflictError, code=Code.NOT_SUSPENDED):
    """Not suspended."""


class PayloadTooLargeError(BadRequestError, code=Code.PAYLOAD_TOO_LARGE):
    """The request body is too large."""


class ValidationFailedError(BadRequestError, code=Code.VALIDATION_FAILED):
    """Validation failed."""


class CurrencyNotSupportedError(BadRequestError, code=Code.CURRENCY_NOT_SUPPORTED):
    """The currency is not supported."""


class SelfTransferError(BadRequestError, code=Code.SELF_TRANSFER):
    """The sender and the receiver are the same."""


class RefundExceedsRemainingError(BadRequestError, code=Code.REFUND_EXCEEDS_REMAINING):
    """The amount exceeds the refundable amount."""

    @property
    def refundable_amount(self) -> str | None:
        """Return the amount that can still be refunded."""
        return self._get_text("refundable_amount")


class RateLimitedError(RetryableError, code=Code.RATE_LIMITED):
    """Too many requests."""


class InternalError(ServerError, code=Code.INTERNAL_ERROR):
    """Internal error."""


class ServiceUnavailableError(RetryableError, code=Code.SERVICE_UNAVAILABLE):
    """Service unavailable."""
