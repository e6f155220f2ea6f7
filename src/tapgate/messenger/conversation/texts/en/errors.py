"""English texts: gateway error codes."""

from typing import Final

TEXTS: Final = {
    "error.general": (
        "Sorry, that didn't work. Please try again later or contact our support team."
    ),
    "error.receiver": "The recipient can't receive this payment right now.",
    "error.INVALID_PIN": "Wrong PIN.",
    "error.SAME_PIN": "The new PIN must be different from the current one.",
    "error.INVALID_OTP": "Wrong code.",
    "error.PERMANENT_BLOCK": "This card is blocked permanently and can't be unblocked.",
    "error.INSUFFICIENT_FUNDS": "You don't have enough money in your wallet for this.",
    "error.FORBIDDEN": (
        "This phone number was changed recently, so the PIN can't be reset yet. Please try again "
        "tomorrow or contact our support team."
    ),
    "error.ACCOUNT_LOCKED": "Your PIN is temporarily locked after too many wrong tries.",
    "error.OTP_REQUIRED": "This wallet has extra protection. Please contact our support team.",
    "error.PIN_REQUIRED": "This requires your PIN.",
    "error.SUBSCRIBER_BLOCKED": "Your wallet isn't active right now.",
    "error.CARD_NOT_ACTIVE": "This card isn't active.",
    "error.CARD_NOT_GENUINE": (
        "I couldn't verify this card. Tap it again and paste the new link. If it still doesn't"
        " work, please contact our support team."
    ),
    "error.CARD_PROOF_USED": (
        "This link was already used. Tap the card again and paste the new link."
    ),
    "error.CARD_PROOF_REQUIRED": "Tap the card on your phone and paste the link here.",
    "error.COMPLIANCE_REJECTED": (
        "We can't make this payment. If you have questions, please contact our support team."
    ),
    "error.TRANSACTION_LIMIT_EXCEEDED": "This amount is over your limit per transaction.",
    "error.CARD_LIMIT_EXCEEDED": "This amount is over the card's daily limit.",
    "error.DAILY_LIMIT_EXCEEDED": "This payment would put you over your daily limit.",
    "error.MONTHLY_LIMIT_EXCEEDED": "This payment would put you over your monthly limit.",
    "error.MAX_BALANCE_EXCEEDED": "The recipient's wallet can't hold that much.",
    "error.SUBSCRIBER_NOT_FOUND": "I can't find that wallet.",
    "error.CARD_NOT_FOUND": "I can't find that card. Please check its number.",
    "error.DUPLICATE_PHONE": "This number already has a wallet.",
    "error.DUPLICATE_REQUEST": "Something went wrong with this payment.",
    "error.CARD_ALREADY_LINKED": "This card is already linked to a wallet.",
    "error.CARD_NOT_LINKED": "This card isn't linked to a wallet.",
    "error.ALREADY_BLOCKED": "This card is already blocked.",
    "error.NOT_BLOCKED": "This card isn't blocked.",
    "error.SELF_TRANSFER": "That's your own wallet. You can only send money to someone else.",
    "error.RATE_LIMITED": "Too many requests. Please try again in a moment.",
    "error.VALIDATION_FAILED": "The payment service didn't accept that.",
    "error.SERVICE_UNAVAILABLE": "The payment service is busy. Please try again in a moment.",
}
