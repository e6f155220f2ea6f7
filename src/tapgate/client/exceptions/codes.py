"""One class for every code of the gateway. What a code's details hold, its class has by name."""

from decimal import Decimal

from tapgate.client.exceptions.base import (
    Conflict,
    Declined,
    Forbidden,
    Invalid,
    NotFound,
    ServerFailed,
    TryLater,
)
from tapgate.errors import Code


class TooLittle(Declined):
    """There is not enough to pay from."""

    @property
    def available(self) -> Decimal | None:
        return self._amount("available")

    @property
    def required(self) -> Decimal | None:
        return self._amount("required")

    def _amount(self, name: str) -> Decimal | None:
        # A JSON number, written as short as it is exact: so is its text.
        value = self.details.get(name)
        return Decimal(str(value)) if isinstance(value, int | float) else None


class LimitExceeded(Declined):
    """More than is allowed; amounts are decimal strings."""

    @property
    def limit(self) -> str | None:
        return self._text("limit")

    @property
    def used(self) -> str | None:
        return self._text("used")

    @property
    def attempted(self) -> str | None:
        return self._text("attempted")


class InvalidRequest(Invalid, code=Code.INVALID_REQUEST):
    """Invalid request."""


class InvalidPin(Invalid, code=Code.INVALID_PIN):
    """Invalid PIN."""

    @property
    def attempts_remaining(self) -> int | None:
        """Wrong tries that are left before the PIN is locked."""
        return self._number("attempts_remaining")


class SamePin(Invalid, code=Code.SAME_PIN):
    """The new PIN is the same as the old one."""


class InvalidOtp(Invalid, code=Code.INVALID_OTP):
    """Invalid one-time code."""

    @property
    def attempts_remaining(self) -> int | None:
        """0 when no further try is allowed: ask for another code."""
        return self._number("attempts_remaining")


class PermanentBlock(Invalid, code=Code.PERMANENT_BLOCK):
    """This card is blocked for good."""


class MaxChildCards(Invalid, code=Code.MAX_CHILD_CARDS):
    """No further child card is allowed."""


class MissingParent(Invalid, code=Code.MISSING_PARENT):
    """A sub-agent needs a parent agent."""


class InsufficientFunds(TooLittle, code=Code.INSUFFICIENT_FUNDS):
    """Insufficient funds."""


class InsufficientFloat(TooLittle, code=Code.INSUFFICIENT_FLOAT):
    """Insufficient float."""


class AccountLocked(Forbidden, code=Code.ACCOUNT_LOCKED):
    """PIN locked after too many wrong tries."""

    @property
    def locked_until(self) -> str | None:
        """When the PIN can be tried again."""
        return self._text("locked_until")


class OtpRequired(Forbidden, code=Code.OTP_REQUIRED):
    """A one-time code is required."""


class PinRequired(Forbidden, code=Code.PIN_REQUIRED):
    """A PIN is required."""


class SubscriberBlocked(Declined, code=Code.SUBSCRIBER_BLOCKED):
    """Subscriber is not active."""


class CardNotActive(Declined, code=Code.CARD_NOT_ACTIVE):
    """Card is not active."""


class AgentNotActive(Declined, code=Code.AGENT_NOT_ACTIVE):
    """Agent is not active."""


class ProcessorSuspended(Forbidden, code=Code.PROCESSOR_SUSPENDED):
    """Processor is suspended."""


class PartnerSuspended(Forbidden, code=Code.PARTNER_SUSPENDED):
    """Partner is suspended."""


class TerminalBlocked(Forbidden, code=Code.TERMINAL_BLOCKED):
    """Terminal is blocked."""


class ComplianceRejected(Declined, code=Code.COMPLIANCE_REJECTED):
    """Refused by a compliance rule."""


class TransactionLimitExceeded(LimitExceeded, code=Code.TRANSACTION_LIMIT_EXCEEDED):
    """Over the limit of one transaction."""


class CardLimitExceeded(LimitExceeded, code=Code.CARD_LIMIT_EXCEEDED):
    """Over the card's daily limit."""


class DailyLimitExceeded(LimitExceeded, code=Code.DAILY_LIMIT_EXCEEDED):
    """Over the daily limit."""


class MonthlyLimitExceeded(LimitExceeded, code=Code.MONTHLY_LIMIT_EXCEEDED):
    """Over the monthly limit."""


class MaxBalanceExceeded(LimitExceeded, code=Code.MAX_BALANCE_EXCEEDED):
    """Over the receiver's maximum balance."""


class SubscriberNotFound(NotFound, code=Code.SUBSCRIBER_NOT_FOUND):
    """Subscriber not found."""


class CardNotFound(NotFound, code=Code.CARD_NOT_FOUND):
    """Card not found."""


class AgentNotFound(NotFound, code=Code.AGENT_NOT_FOUND):
    """Agent not found."""


class ProcessorNotFound(NotFound, code=Code.PROCESSOR_NOT_FOUND):
    """Processor not found."""


class TerminalNotFound(NotFound, code=Code.TERMINAL_NOT_FOUND):
    """Terminal not found."""


class PartnerNotFound(NotFound, code=Code.PARTNER_NOT_FOUND):
    """Partner not found."""


class AccountNotFound(NotFound, code=Code.ACCOUNT_NOT_FOUND):
    """Account not found."""


class TransactionNotFound(NotFound, code=Code.TRANSACTION_NOT_FOUND):
    """Transaction not found."""


class AlertNotFound(NotFound, code=Code.ALERT_NOT_FOUND):
    """Alert not found."""


class RuleNotFound(NotFound, code=Code.RULE_NOT_FOUND):
    """Rule not found."""


class MethodNotAllowed(Invalid, code=Code.METHOD_NOT_ALLOWED):
    """Method not allowed."""


class DuplicatePhone(Conflict, code=Code.DUPLICATE_PHONE):
    """This phone number is already registered."""


class DuplicateIdNumber(Conflict, code=Code.DUPLICATE_ID_NUMBER):
    """This identity document is already registered."""


class DuplicateEmail(Conflict, code=Code.DUPLICATE_EMAIL):
    """This e-mail address is already registered."""


class DuplicateRequest(Conflict, code=Code.DUPLICATE_REQUEST):
    """This request id was used for another request."""


class DuplicateReference(Conflict, code=Code.DUPLICATE_REFERENCE):
    """This reference was used for another payment."""


class CardAlreadyLinked(Conflict, code=Code.CARD_ALREADY_LINKED):
    """Card is already linked."""


class CardNotLinked(Conflict, code=Code.CARD_NOT_LINKED):
    """Card is not linked."""


class AlreadyBlocked(Conflict, code=Code.ALREADY_BLOCKED):
    """Already blocked."""


class NotBlocked(Conflict, code=Code.NOT_BLOCKED):
    """Not blocked."""


class NotClosable(Conflict, code=Code.NOT_CLOSABLE):
    """Cannot be closed."""


class AlreadyRefunded(Conflict, code=Code.ALREADY_REFUNDED):
    """Already refunded."""


class NotRefundable(Conflict, code=Code.NOT_REFUNDABLE):
    """Cannot be refunded."""


class AlreadyResolved(Conflict, code=Code.ALREADY_RESOLVED):
    """Already resolved."""


class AlreadySuspended(Conflict, code=Code.ALREADY_SUSPENDED):
    """Already suspended."""


class NotSuspended(Conflict, code=Code.NOT_SUSPENDED):
    """Not suspended."""


class PayloadTooLarge(Invalid, code=Code.PAYLOAD_TOO_LARGE):
    """Request body too large."""


class ValidationFailed(Invalid, code=Code.VALIDATION_FAILED):
    """Validation failed."""


class CurrencyNotSupported(Invalid, code=Code.CURRENCY_NOT_SUPPORTED):
    """Currency not supported."""


class SelfTransfer(Invalid, code=Code.SELF_TRANSFER):
    """Sender and receiver are the same."""


class RefundExceedsRemaining(Invalid, code=Code.REFUND_EXCEEDS_REMAINING):
    """More than what remains to be refunded."""

    @property
    def refundable_amount(self) -> str | None:
        """What remains."""
        return self._text("refundable_amount")


class RateLimited(TryLater, code=Code.RATE_LIMITED):
    """Too many requests."""


class InternalError(ServerFailed, code=Code.INTERNAL_ERROR):
    """Internal error."""


class ServiceUnavailable(TryLater, code=Code.SERVICE_UNAVAILABLE):
    """Service unavailable."""
