// What a cashier is told when a request is refused.

const DECLINED = {
  INSUFFICIENT_FUNDS: "There is not enough money in the wallet.",
  INVALID_PIN: "The PIN is wrong.",
  ACCOUNT_LOCKED: "The PIN is locked after too many wrong tries.",
  PIN_REQUIRED: "This payment needs the PIN.",
  CARD_NOT_FOUND: "This card is not known here.",
  CARD_NOT_ACTIVE: "This card is not active: blocked, lost, expired or not linked to anybody.",
  SUBSCRIBER_BLOCKED: "The holder's account is blocked.",
  TRANSACTION_LIMIT_EXCEEDED: "This is more than one payment may be.",
  CARD_LIMIT_EXCEEDED: "This is more than the card may spend today.",
  DAILY_LIMIT_EXCEEDED: "This is more than the holder may spend today.",
  MONTHLY_LIMIT_EXCEEDED: "This is more than the holder may spend this month.",
  COMPLIANCE_REJECTED: "A compliance rule does not allow this payment.",
  TERMINAL_NOT_FOUND: "This terminal is not known here.",
  TERMINAL_BLOCKED: "This terminal is blocked.",
  PROCESSOR_SUSPENDED: "This merchant is suspended.",
  TRANSACTION_NOT_FOUND: "This payment was not taken by this merchant.",
  ALREADY_REFUNDED: "This payment was already given back.",
  NOT_REFUNDABLE: "This payment cannot be given back.",
  REFUND_EXCEEDS_REMAINING: "This is more than is left to give back.",
  DUPLICATE_REQUEST: "This request id was used for something else.",
  UNAUTHORIZED: "The key is refused. It may be deleted, or this computer's clock is wrong.",
  RATE_LIMITED: "Too many requests. Wait a moment.",
};

export function declined(answer) {
  const code = answer?.code;
  const words = DECLINED[code] ?? [answer?.error, answer?.message].filter(Boolean).join(": ");
  const details = answer?.details ?? {};
  if (code === "INVALID_PIN" && details.attempts_remaining !== undefined) {
    const left = details.attempts_remaining;
    return `${words} ${left === 0 ? "It is locked now." : left === 1 ? "One try is left." : `${left} tries are left.`}`;
  }
  return words || "The answer could not be understood.";
}
