"""English message catalog. Texts are short and friendly, with *bold* for emphasis."""

from typing import Final

TEXTS: Final = {
    # Commands: the title fits a button, the description fits below it
    "title.menu": "Menu",
    "description.menu": "Everything you can do here",
    "title.help": "Help",
    "description.help": "How this chat works",
    "title.balance": "Balance",
    "description.balance": "How much is in your wallet",
    "title.send": "Send money",
    "description.send": "To a card or phone number",
    "title.history": "History",
    "description.history": "Your latest transactions",
    "title.statement": "Statement",
    "description.statement": "A PDF for the period you choose",
    "title.cards": "My cards",
    "description.cards": "Your cards and their status",
    "title.link": "Link a card",
    "description.link": "Add a card to your wallet",
    "title.block": "Block a card",
    "description.block": "Lost, stolen, damaged or just for now",
    "title.unblock": "Unblock a card",
    "description.unblock": "Use a blocked card again",
    "title.change_pin": "Change PIN",
    "description.change_pin": "Choose a new PIN",
    "title.reset_pin": "Forgot PIN",
    "description.reset_pin": "Set a new PIN with a code we send you",
    "title.kyc": "Verify identity",
    "description.kyc": "Send photos of your documents",
    "title.limits": "My limits",
    "description.limits": "How much you can send and hold",
    "title.add_money": "Add money",
    "description.add_money": "Put cash into your wallet",
    "title.withdraw": "Withdraw cash",
    "description.withdraw": "Take cash out of your wallet",
    "title.nearest_agent": "Find an agent",
    "description.nearest_agent": "Agents in your district or town",
    "title.fees": "Fees",
    "description.fees": "What it costs to send an amount",
    "title.declined": "Declined payment",
    "description.declined": "Why your last payment was declined",
    "title.wrong_recipient": "Wrong recipient",
    "description.wrong_recipient": "You sent money to the wrong person",
    "title.contact": "Hours and contact",
    "description.contact": "When and how to reach support",
    "title.language": "Language",
    "description.language": "English or French",
    "title.person": "Talk to a person",
    "description.person": "Our support team replies here",
    "title.register": "Register",
    "description.register": "Open a wallet with this number",
    # Navigation
    "rate_limited": (
        "You're sending messages too fast. Please wait {seconds} seconds and try again."
    ),
    "choose": "Choose",
    "more": "More",
    "retry": "Try again",
    "menu": "Hello! 👋 What would you like to do?",
    "menu.named": "Hello {name}! 👋 What would you like to do?",
    "what_next": "Send *menu* to see what you can do here, or *help*.",
    "did_you_mean": "Did you mean one of these?",
    "did_you_mean.one": "Did you mean this?",
    "help": (
        "I can show your balance and history, send money, manage your cards and more.\n\n"
        "Choose from the *menu*, or just write, for example:\n"
        "• balance\n• send 500 to 076123456\n• block my card\n\n"
        "Send *cancel* to stop at any time. Never share your PIN. Enter it only when I ask for it."
    ),
    "not_understood": "Sorry, I didn't understand that. Try one of these:",
    "unsupported_message": "I can only read text and photos of documents here.",
    "option_not_listed": "That number isn't on the list.",
    "greeting_in_progress": "Hello! 👋 Let's continue where we left off:",
    "thanks": "You're welcome! 😊",
    "goodbye": "All right! I'm here whenever you need me. 👋",
    "fees": (
        "The fee depends on the amount, and you always see it before you confirm. Which amount "
        "would you like to know the fee for? For example: *500 SLE*"
    ),
    "fees.short": (
        "The fee depends on the amount. You'll see the fee and the total before you confirm."
    ),
    "fees.quote": "Sending *{amount}* costs a fee of *{fee}*. The total is *{total}*.",
    "fees.pin": "You'll need your PIN to send it.",
    "fees.no_pin": "You won't need your PIN to send it.",
    "fees.left": "You can still send *{day}* today and *{month}* this month.",
    "expired": "That button has expired.",
    "late": "Your answer arrived late, so I'm asking again to be safe.",
    "nothing_pending": "I'm not waiting for a yes or no right now.",
    "nothing_to_cancel": "There's nothing to cancel right now.",
    "canceled": "OK, canceled: *{command}*.",
    "lapsed": (
        "You didn't reply in time, so I canceled your request. If you already entered your PIN, "
        "check your *history*."
    ),
    "lapsed.pin": (
        "Your request timed out, so I canceled it and didn't use your PIN. Please delete your "
        "last message and start again."
    ),
    "withheld": (
        "I didn't keep your last message because it may have contained a PIN. Please send it again."
    ),
    "unreachable": (
        "I can't reach the payment service right now. Please try again in a few minutes."
    ),
    "number_changed": (
        "This phone number has changed. To protect your wallet, I'll ask for your PIN before I "
        "show anything."
    ),
    # Answers that were not understood
    "not_understood.choice": "Please choose one of these options.",
    "not_understood.confirm": "Please reply *yes* or *no*.",
    "not_understood.pin": "Your PIN has exactly 4 digits. To stop, send *cancel*.",
    "not_understood.both_pins": (
        "I need both PINs in one message: your current PIN first, then the new one."
    ),
    "not_understood.reset_pin": (
        "I need the 6-digit code and the new 4-digit PIN. To stop, send *cancel*."
    ),
    "not_understood.phone": "That doesn't look like a phone number.",
    "not_understood.code": "The code has 6 digits.",
    "not_understood.recipient": "I need a card number or phone number.",
    "not_understood.amount": (
        "Please send the amount in {currency} as a number, for example 500 or 250.50."
    ),
    "not_understood.place": ("Please send only the name of your district or town, for example: Bo"),
    "not_understood.serial": (
        "That doesn't look like a card number. You'll find it printed on the card."
    ),
    "not_understood.card": "That's not one of these cards.",
    "not_understood.names": "Please send your first and last name, for example: Aminata Kamara",
    "not_understood.period": "I didn't understand that period.",
    "not_understood.support": "Please describe it in words.",
    "not_understood.picture": "I'm waiting for a photo. To stop, send *cancel*.",
    # Confirmation
    "confirm.yes": "Yes",
    "confirm.no": "No",
    # PINs
    "pin.button.pin": "Enter PIN",
    "pin.button.new_pin": "Choose PIN",
    "pin.button.change_pin": "Change PIN",
    "pin.button.reset_pin": "Set new PIN",
    "pin.text.pin": "Please send your 4-digit PIN, or *cancel*.",
    "pin.text.new_pin": "Please send the 4-digit PIN you want, or *cancel*.",
    "pin.text.change_pin": (
        "Please send your current PIN and your new PIN in one message, separated by a space, "
        "or *cancel*."
    ),
    "pin.text.reset_pin": (
        "Please send the 6-digit code and the 4-digit PIN you want in one message, separated by a "
        "space, or *cancel*."
    ),
    "pin.unavailable": (
        "This requires your PIN, which isn't safe to share in this chat. Please use the app or "
        "contact our support team."
    ),
    "pin.not_as_text": (
        "Please don't send your PIN in the chat. I didn't use it. Delete that message and use "
        "the form instead."
    ),
    "pin.unsolicited": (
        "That looks like a PIN, but I didn't ask for one. Never send your PIN unless I ask for it. "
        "I didn't keep it, but please delete that message."
    ),
    "pin.wrong": "Wrong PIN. You have {left} tries left.",
    "pin.wrong.last_try": "Wrong PIN. You have 1 try left.",
    "pin.weak": "That PIN is too easy to guess. Please choose another one.",
    "pin.locked_now": (
        "Wrong PIN. That was your last try, so your PIN is locked for 30 minutes to keep your "
        "money safe."
    ),
    "pin.locked_until": "Your PIN is locked until *{until}* after too many wrong tries.",
    "form.expired": "That form has expired, so I didn't use your PIN.",
    "form.closed": "I haven't received your PIN yet.",
    # Identification
    "not_registered": "There's no wallet with this number yet. Would you like to open one?",
    "not_active": (
        "Your wallet isn't active right now, so I can't do that. Please contact our support team."
    ),
    "trust.ask": "To confirm it's you, I need your PIN once.",
    "phone.ask": (
        "I can't see your phone number. Please send the number you use for your wallet, with the "
        "country code, for example +23276123456."
    ),
    "code.ask": "I sent a 6-digit code to that phone number. Please enter it here.",
    "code.resend": "Send a new code",
    "code.other_phone": "Use another number",
    "code.wrong": "Wrong code.",
    "code.correct": "Thank you, your number is confirmed. ✅",
    "code.expired": "That code is no longer valid. Let's start again.",
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
    # Cards
    "cards": "Your cards:",
    "cards.none": "You have no cards yet.",
    "card.ACTIVE": "active",
    "card.BLOCKED": "blocked",
    "card.LOST": "permanently blocked",
    "card.EXPIRED": "expired",
    "card.UNASSIGNED": "not linked",
    "card.child": "child card",
    "link.serial": "What's the card number? It's printed on the card.",
    "link.pin": "Enter your PIN to link card {card} to your wallet.",
    "link.done": "Done! ✅ Card {card} is linked to your wallet.",
    "block.card": "Which card would you like to block?",
    "block.none": "You have no cards to block.",
    "block.reason": "Why would you like to block card {card}?",
    "reason.lost": "Lost",
    "reason.stolen": "Stolen",
    "reason.damaged": "Damaged",
    "reason.customer_request": "Just block it for now",
    "block.permanent": "Permanent, can't be undone",
    "block.temporary": "You can unblock it later",
    "block.confirm": "Block card {card}? You can unblock it later.",
    "block.confirm_permanent": (
        "Block card {card} *permanently*? This can't be undone, and you'll need a new card."
    ),
    "block.done": "Card {card} is blocked. You can unblock it at any time.",
    "block.done_permanent": (
        "Card {card} is blocked permanently. Your money is safe in your wallet."
    ),
    "unblock.card": "Which card would you like to unblock?",
    "unblock.none": "You have no cards to unblock.",
    "unblock.pin": "Enter your PIN to unblock card {card}.",
    "unblock.done": "Done! ✅ Card {card} is active again.",
    # Account
    "register.names": "Welcome! What's your first and last name?",
    "register.confirm": (
        "Shall I open a wallet with these details?\n\nName: *{name}*\nPhone: {phone}"
    ),
    "register.pin": (
        "Choose a 4-digit PIN. You'll use it to approve payments. Avoid 1234 or a birthday."
    ),
    "register.done": "Welcome, {name}! 🎉 Your wallet is ready.",
    "register.already": "This number already has a wallet.",
    "change_pin.ask": "Let's change your PIN. If you don't remember it, send *forgot PIN*.",
    "change_pin.uncertain": (
        "I didn't get a response. Your PIN may already be changed: if the old one doesn't work, "
        "the new one is active. You can send *cancel*."
    ),
    "change_pin.done": "Done! ✅ Your PIN has been changed.",
    "reset_pin.confirm": "Did you forget your PIN? I can send you a code to set a new one.",
    "reset_pin.untrusted": (
        "This phone number has changed, so I can't reset a PIN here. Our support team can help. "
        "Would you like to contact them?"
    ),
    "reset_pin.which": "Which PIN would you like to reset?",
    "reset_pin.own": "My wallet",
    "reset_pin.agent": "My agent account",
    "reset_pin.for.subscriber": "your wallet",
    "reset_pin.for.agent": "your agent account",
    "reset_pin.for.card": "{name}'s card",
    "reset_pin.ask": (
        "We sent a 6-digit code to your phone. Enter it with the new PIN for *{holder}*. The code "
        "is valid for 5 minutes. Never share it, not even with our staff."
    ),
    "reset_pin.ask_again": (
        "Enter the 6-digit code we sent you with the new PIN for *{holder}*. Never share the code, "
        "not even with our staff. If you need another code, send *new code*."
    ),
    "reset_pin.use_form": (
        "Please enter the code in the form, together with your new PIN. You can delete your "
        "message."
    ),
    "reset_pin.wrong_code": "Wrong code. Tries left: {left}.",
    "reset_pin.code_invalid": (
        "That code is wrong or no longer valid. Would you like me to send a new one?"
    ),
    "reset_pin.too_many_codes": (
        "We've sent several codes to your phone. You can get a new one in {minutes} minutes. If "
        "you have a code that is less than 5 minutes old, send it here."
    ),
    "reset_pin.too_many_wrong": (
        "There were too many wrong codes. You can get a new one within {hours} hours, or contact "
        "our support team."
    ),
    "reset_pin.uncertain": (
        "I didn't get a response. Try your new PIN: if it doesn't work, send *new code*. You can "
        "send *cancel*."
    ),
    "reset_pin.done": "Done! ✅ The new PIN is active.",
    "language.ask": "Which language do you prefer?",
    "language.en": "English",
    "language.fr": "Français",
    "language.set": "OK, let's continue in English.",
    "support.confirm": "Would you like our support team to contact you?",
    "support.ask": (
        "What can our support team help you with? Write it in one message. Never send your PIN or "
        "a code."
    ),
    "support.requested": "I've passed this to our support team. They'll reply here in this chat.",
    "support.reply": "*Support:* {text}",
    "support.passed_on": (
        "I've passed that on to our support team. Keep writing here if there is more to add."
    ),
    "support.full": (
        "Our support team already has many messages from you, so I didn't pass this one on. "
        "They'll reply here in this chat."
    ),
    # Documents
    "kyc.type": "Which document would you like to send first?",
    "kyc.next": "Thank you, I got it. Which document is next?",
    "kyc.image": "Thanks, I have your photo. What does it show?",
    "kyc.image.several": "I have {count} photos from you. What does the first one show?",
    "kyc.next_image": "Thank you, I got it. What does your other photo show?",
    "kyc.next_image.several": (
        "Thank you, I got it. There are {count} more photos. What does the next one show?"
    ),
    "kyc.discard": "Don't use this photo",
    "kyc.finish": "That's all",
    "kyc.picture": ("Please send a clear photo: *{document}*. Make sure all the text is readable."),
    "kyc.too_many": (
        "We already have several photos of this document and are checking them: *{document}*. "
        "You can send another document, or wait until we've checked."
    ),
    "kyc.too_many_today": (
        "You've reached the limit of documents you can send in one day. Please try again tomorrow."
    ),
    "kyc.done": (
        "Thank you! We'll check your documents and tell you the result here. Until then, your "
        "limits stay the same."
    ),
    "document.id_front": "ID card, front",
    "document.description.id_front": "The side with your photo, or your passport",
    "document.id_back": "ID card, back",
    "document.description.id_back": "The other side",
    "document.selfie": "Selfie",
    "document.description.selfie": "Your face, with the document next to it",
    "document.proof_of_address": "Proof of address",
    "document.description.proof_of_address": "A bill or letter from the last 3 months",
    "picture.kept": "Thanks, I'll keep your photo for an hour. Let's finish this first:",
    "picture.reminder": "I still have your photo. Choose *Verify identity* to say what it shows.",
    "picture.too_many": (
        "I already have 4 photos from you, so I didn't keep this one. First tell me what they show."
    ),
    "picture.discarded": "OK, I've deleted that photo.",
    "picture.all_discarded": "OK, I've deleted those photos.",
    "picture.expired": "I no longer have that photo. Please send it again.",
    "picture.rejected": (
        "I can't use that photo. Please send another one, as JPEG or PNG, up to 5 MB."
    ),
    "picture.unusable": "I can't use that photo. Please send it again as JPEG or PNG.",
    # Gateway error codes
    "error.general": (
        "Sorry, that didn't work. Please try again later or contact our support team."
    ),
    "error.receiver": "The recipient can't receive this payment right now.",
    "error.INVALID_PIN": "Wrong PIN.",
    "error.SAME_PIN": "The new PIN must be different from the current one.",
    "error.INVALID_OTP": "Wrong code.",
    "error.PERMANENT_BLOCK": "This card is blocked permanently and can't be unblocked.",
    "error.INSUFFICIENT_FUNDS": "You don't have enough money in your wallet for this.",
    "error.ACCOUNT_LOCKED": "Your PIN is temporarily locked after too many wrong tries.",
    "error.OTP_REQUIRED": "This wallet has extra protection. Please contact our support team.",
    "error.PIN_REQUIRED": "This requires your PIN.",
    "error.SUBSCRIBER_BLOCKED": "Your wallet isn't active right now.",
    "error.CARD_NOT_ACTIVE": "This card isn't active.",
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
