// Texts for the error codes of the POS endpoints, as the cashier sees them.

const TEXTS = {
  INSUFFICIENT_FUNDS: translate("Insufficient funds."),
  INVALID_PIN: translate("Wrong PIN."),
  ACCOUNT_LOCKED: translate("The PIN is locked after too many wrong attempts."),
  PIN_REQUIRED: translate("This payment requires a PIN."),
  CARD_NOT_FOUND: translate("Card not found."),
  CARD_IN_OTHER_BOOK: translate("This card belongs to another book and cannot pay here."),
  CARD_NOT_ACTIVE: translate("This card is not active. It may be blocked, lost, expired or unassigned."),
  CARD_PROOF_REQUIRED: translate("Tap the card. This payment requires a card that signs its taps."),
  CARD_NOT_GENUINE: translate("This card is not genuine."),
  CARD_PROOF_USED: translate("This tap was already used. Tap the card again."),
  SUBSCRIBER_BLOCKED: translate("The cardholder's account is blocked."),
  TRANSACTION_LIMIT_EXCEEDED: translate("The amount is over the transaction limit."),
  CARD_LIMIT_EXCEEDED: translate("The amount is over the card's daily limit."),
  DAILY_LIMIT_EXCEEDED: translate("The amount is over the cardholder's daily limit."),
  MONTHLY_LIMIT_EXCEEDED: translate("The amount is over the cardholder's monthly limit."),
  COMPLIANCE_REJECTED: translate("Blocked by a compliance rule."),
  TERMINAL_NOT_FOUND: translate("Terminal not found."),
  TERMINAL_BLOCKED: translate("This terminal is blocked."),
  PROCESSOR_SUSPENDED: translate("This merchant is suspended."),
  TRANSACTION_NOT_FOUND: translate("This merchant has no such payment."),
  ALREADY_REFUNDED: translate("This payment has already been refunded."),
  NOT_REFUNDABLE: translate("This payment can't be refunded."),
  REFUND_EXCEEDS_REMAINING: translate("The amount is over the refundable amount."),
  DUPLICATE_REQUEST: translate("This idempotency key was already used for another request."),
  UNAUTHORIZED: translate("The signing key was rejected. It may be deleted, or this computer's clock may be wrong."),
  RATE_LIMITED: translate("Too many requests. Try again in a moment."),
};

/** The text for an error response. A wrong PIN also says how many attempts are left. */
export function describeError(body) {
  const code = body?.code;
  const text = TEXTS[code] ?? [body?.error, body?.message].filter(Boolean).join(": ");
  const details = body?.details ?? {};
  if (code === "INVALID_PIN" && details.attempts_remaining !== undefined) {
    const left = details.attempts_remaining;
    return `${text} ${left === 0 ? translate("The PIN is now locked.") : left === 1 ? translate("1 attempt left.") : translate("{left} attempts left.", { left })}`;
  }
  return text || translate("The response could not be read.");
}
