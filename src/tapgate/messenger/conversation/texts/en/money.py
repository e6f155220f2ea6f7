"""English texts: wallet, transfers and everyday questions."""

from typing import Final

TEXTS: Final = {
    # Wallet
    "balance": "Your balance is *{available}*.",
    "balance.held": (
        "You have *{available}* available.\n\nTotal balance: {balance}\nOn hold: {held}"
    ),
    "history": "Your latest transactions:",
    "history.fee": "fee {fee}",
    "history.none": "You have no transactions yet.",
    "type.other": "Transaction",
    "type.transfer_p2p": "Transfer",
    "type.transfer": "Transfer",
    "type.pos_payment": "Payment",
    "type.online_payment": "Payment",
    "type.refund": "Refund",
    "type.agent_cashin": "Cash-in",
    "type.agent_cashout": "Cash-out",
    "type.partner_fund": "Top-up",
    "status.partially_refunded": "partially refunded",
    "status.under_review": "under review",
    "status.failed": "declined",
    "status.refunded": "refunded",
    "limits": (
        "Your limits (level {level}):\n"
        "• Per transaction: *{per_transaction}*\n"
        "• Today: {daily_used} of {daily} used, *{daily_left}* left\n"
        "• This month: {monthly_used} of {monthly} used, *{monthly_left}* left\n"
        "• Maximum balance: *{max_balance}*"
    ),
    "limits.raise": "Verify your identity to raise your limits.",
    "statement.period": (
        "Which period should the statement cover? Choose one, or write it, for example: March 2026"
    ),
    "period.this_month": "This month",
    "period.last_month": "Last month",
    "period.last_90": "Last 90 days",
    "statement.file": "Your statement, {first} to {last}.",
    "statement.link": (
        "Your statement, {first} to {last}:\n{link}\n\nThe link works until {until}. Anyone with "
        "the link can open your statement, so don't share it."
    ),
    # Sending money
    "send.recipient": (
        "Who would you like to send money to? Choose a contact, or send a card number or phone "
        "number."
    ),
    "send.recipient_new": (
        "Who would you like to send money to? Please send their card number or phone number."
    ),
    "send.recipient_unknown": (
        "I don't know “{name}” yet. Please send their card number or phone number."
    ),
    "send.recipient_self": "That's your own wallet. You can only send money to someone else.",
    "send.card_inactive": (
        "This card of {name} can't receive money right now. Please send their phone number or "
        "another card number."
    ),
    "send.payee.card": "Card: {payee}",
    "send.payee.phone": "Phone: {payee}",
    "send.not_found.card": "I can't find a card with that number.",
    "send.not_found.phone": "There's no wallet with that phone number.",
    "send.recipient_removed": (
        "That contact is no longer in use, so I removed it. Please ask for the new card number or "
        "phone number."
    ),
    "send.amount": "How much would you like to send to {name}?",
    "send.other_amount": "How much would you like to send instead?",
    "send.total_with_fee": "With the {fee} fee that's *{total}*.",
    "send.confirm": (
        "Please check the details:\n\nTo: *{name}*\n{recipient}\nAmount: *{amount}*\nFee: {fee}\n"
        "Total: *{total}*\n\nSend it now?"
    ),
    "send.pin": "Enter your PIN to send *{amount}* to *{name}* (total {total}).",
    "send.completed": (
        "Done! ✅ You sent {name} *{amount}*.\n\nFee: {fee}\nYour new balance: *{balance}*\n"
        "Transaction: {transaction}"
    ),
    "send.under_review": (
        "Your payment of *{amount}* to {name} is *under review*. The money is on hold until we've "
        "checked it. We'll tell you the result here.\n\nFee: {fee}\n"
        "Your balance: *{balance}*\nTransaction: {transaction}"
    ),
    "send.declined": "{reason}\n\nNo money was sent.",
    "send.uncertain": (
        "I didn't get a response, so I don't know yet if the money was sent. Please enter your PIN "
        "again. You *won't be charged twice*."
    ),
    "send.outcome_unknown": (
        "*The payment may have gone through.* Please check your history before you send it again."
    ),
    "send.save_contact": "Save contact",
    "send.contact_saved": "Saved. Next time just write *send 50 to {name}*.",
    # Everyday questions
    "add_money": (
        "To add money, go to an agent with cash. Give your phone number or card and the amount. "
        "The agent adds it to your wallet. Adding money never requires your PIN, so don't tell it "
        "to anyone."
    ),
    "withdraw": (
        "To withdraw cash, go to an agent. Give your phone number or card and the amount, and "
        "approve it yourself with your PIN on the agent's device. Count the cash before you "
        "leave. Never tell anyone your PIN."
    ),
    "agents.place": "Which district or town are you in?",
    "agents": "Agents in {place}:",
    "agents.none": "I found no agent with “{place}” in the address.",
    "wrong_recipient": (
        "Money that has arrived can't be taken back in this chat. Here's what to do:\n"
        "1. Check in your *history* who received it.\n"
        "2. Ask that person to send it back.\n"
        "3. Tell our support team right away. They may be able to help, but can't promise it.\n\n"
        "Would you like to talk to a person now?"
    ),
    "contact.hours": "Opening hours: {text}",
    "contact.address": "Contact: {text}",
    "contact.chat": (
        "You can use this chat at any time. To reach our support team, choose *Talk to a person*."
    ),
    "declined": "Your payment of *{amount}* on {at} was declined.",
    "declined.to": "Your payment of *{amount}* to {name} on {at} was declined.",
    "declined.none": (
        "None of your recent payments was declined. If something else went wrong, our support "
        "team can help."
    ),
    "declined.reason.other": (
        "No money was taken. Please try again later. If it happens again, contact our support team."
    ),
    "declined.reason.INSUFFICIENT_FUNDS": (
        "There wasn't enough money in your wallet for the amount and the fee. Add money, then try "
        "again."
    ),
    "declined.reason.TRANSACTION_LIMIT_EXCEEDED": (
        "The amount was over your limit per transaction. You can raise your limits by verifying "
        "your identity."
    ),
    "declined.reason.DAILY_LIMIT_EXCEEDED": (
        "It would have put you over your daily limit. Try again tomorrow, or raise your limits by "
        "verifying your identity."
    ),
    "declined.reason.MONTHLY_LIMIT_EXCEEDED": (
        "It would have put you over your monthly limit. Try again next month, or raise your "
        "limits by verifying your identity."
    ),
    "declined.reason.CARD_LIMIT_EXCEEDED": (
        "It was over the daily limit of this card. Try again tomorrow, or use another card."
    ),
    "declined.reason.MAX_BALANCE_EXCEEDED": (
        "The recipient's wallet can't hold that much. Please ask the recipient."
    ),
    "declined.reason.COMPLIANCE_REJECTED": (
        "This payment couldn't be completed, and no money was taken. If you have questions, please "
        "contact our support team."
    ),
    "declined.reason.CARD_NOT_ACTIVE": "The card wasn't active. Check your cards, then try again.",
    "declined.reason.SUBSCRIBER_BLOCKED": (
        "One of the two wallets wasn't active. Our support team can tell you more."
    ),
}
