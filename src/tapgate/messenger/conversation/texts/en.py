"""English message catalog. Texts are short and friendly, with *bold* for emphasis."""

from typing import Final

TEXTS: Final = {
    # Commands: the title fits a button, the description fits below it
    "title.menu": "Menu",
    "about.menu": "Everything you can do here",
    "title.help": "Help",
    "about.help": "How this chat works",
    "title.balance": "Balance",
    "about.balance": "How much is in your wallet",
    "title.send": "Send money",
    "about.send": "To a card or a phone number",
    "title.history": "History",
    "about.history": "Your latest transactions",
    "title.statement": "Statement",
    "about.statement": "A PDF for a month or longer",
    "title.cards": "My cards",
    "about.cards": "Your cards and their status",
    "title.link": "Link a card",
    "about.link": "Add a card to your wallet",
    "title.block": "Block a card",
    "about.block": "Lost, stolen, damaged or just for now",
    "title.unblock": "Unblock a card",
    "about.unblock": "Make a blocked card work again",
    "title.change_pin": "Change PIN",
    "about.change_pin": "Choose a new PIN",
    "title.kyc": "Verify identity",
    "about.kyc": "Send pictures of your documents",
    "title.limits": "My limits",
    "about.limits": "How much you may send and hold",
    "title.language": "Language",
    "about.language": "English or French",
    "title.person": "Talk to a person",
    "about.person": "Our support team will contact you",
    "title.register": "Register",
    "about.register": "Open a wallet with this number",
    # Navigation
    "slow_down": "That was a lot at once. Please wait {seconds} seconds and write again.",
    "choose": "Choose",
    "more": "More",
    "again": "Try again",
    "menu": "Hello! 👋 What would you like to do?",
    "menu.named": "Hello {name}! 👋 What would you like to do?",
    "what_next": "Send *menu* to see what you can do here, or *help*.",
    "did_you_mean": "Did you mean one of these?",
    "help": (
        "I can show your balance and history, send money, look after your cards and more.\n\n"
        "Choose from the *menu*, or just write, for example:\n"
        "• balance\n• send 500 to 076123456\n• block my card\n\n"
        "*cancel* stops whatever is going on. Never tell anybody your PIN: give it only when I "
        "ask for it."
    ),
    "not_understood": "Sorry, I did not understand that. Here is what may help:",
    "not_understood.kind": "I can only read text and pictures of documents here.",
    "not_on_the_list": "That number is not on the list.",
    "hello_again": "Hello! 👋 We were in the middle of something:",
    "thanks": "You are welcome! 😊",
    "farewell": "All right! I am here whenever you need me. 👋",
    "fees": (
        "The fee depends on the amount. I show it with the total before you confirm, and nothing "
        "is sent without your yes."
    ),
    "expired": "That button has expired.",
    "late": "That reached me late, so I would rather ask again.",
    "nothing_pending": "Nothing is waiting for your answer. Nothing was done.",
    "cancelled": "OK, I have cancelled: *{what}*.",
    "lapsed": (
        "I did not hear from you for a while, so I cancelled what was in progress. If you had "
        "given your PIN already, please look at your *history*."
    ),
    "lapsed.pin": (
        "It took too long, so I cancelled what was in progress. Please do not send your PIN now, "
        "and delete that message. You can simply start again."
    ),
    "withheld": (
        "I did not keep your last message, because there may have been a PIN in it. Please send "
        "it again."
    ),
    "unreachable": (
        "I cannot reach the payment service right now. Nothing is lost: please try again in a "
        "moment."
    ),
    "number_changed": (
        "This phone number has changed. To keep the wallet safe I will ask for the PIN before "
        "I show anything."
    ),
    # Answers that were not understood
    "unread.choice": "Please choose one of these.",
    "unread.confirm": "Please answer *yes* or *no*.",
    "unread.pin": "Your PIN has exactly 4 digits. You can also send *cancel*.",
    "unread.both_pins": ("I need both PINs in one message: the old one first, then the new one."),
    "unread.phone": "That does not look like a phone number.",
    "unread.code": "The code has 6 digits.",
    "unread.recipient": "I need a card number or a phone number.",
    "unread.amount": (
        "Please send the amount in figures, in {currency}, for example 500 or 250.50."
    ),
    "unread.serial": "That does not look like a card number. It is printed on the card.",
    "unread.card": "That is not one of these cards.",
    "unread.names": "Please send your first name and your last name, for example: Aminata Kamara",
    "unread.period": "I could not read that period.",
    "unread.picture": "I am waiting for a picture. Send *cancel* to stop.",
    # Confirmation
    "confirm.yes": "Yes",
    "confirm.no": "No",
    # PINs
    "pin.button": "Enter PIN",
    "pin.text.pin": "Please send your 4-digit PIN, or *cancel*.",
    "pin.text.new_pin": "Please send the 4-digit PIN you want, or *cancel*.",
    "pin.text.change_pin": (
        "Please send your old PIN and your new PIN in one message, with a space between them, "
        "or *cancel*."
    ),
    "pin.nowhere": (
        "This needs your PIN, and a PIN cannot be given safely in this chat. Please use the app, "
        "or ask our support team."
    ),
    "pin.not_as_text": (
        "Please do not write your PIN in the chat. I have not used it; it is best to delete that "
        "message. Use the form instead."
    ),
    "pin.unasked": (
        "That looks like a PIN, and I did not ask for one. Please never send your PIN unasked. "
        "I have not kept it; it is best to delete that message."
    ),
    "pin.wrong": "That PIN is not right. Tries left: {left}.",
    "pin.weak": "That PIN is too easy to guess. Please choose another one.",
    "pin.locked_now": (
        "That PIN is not right, and it was the last try. Your PIN is locked for 30 minutes, to "
        "keep your money safe."
    ),
    "pin.locked_until": ("Your PIN is locked until *{until}* after too many wrong tries."),
    "pin.forgotten": (
        "I cannot show or reset a PIN here: for your safety only our team can do that, after "
        "checking that it is you. Shall I ask them to contact you?"
    ),
    "form.expired": "That form is no longer valid. Nothing was done with it.",
    "form.closed": "I have not received your PIN yet.",
    # Identification
    "not_registered": "There is no wallet with this number yet. Would you like to open one?",
    "not_active": (
        "Your wallet is not active at the moment, so I cannot do that. Our support team can tell "
        "you more."
    ),
    "trust.ask": "To make sure that it is you, I need your PIN once.",
    "phone.ask": (
        "I cannot see your phone number. Which number is your wallet registered with? Please "
        "send it with the country code, for example +23276123456."
    ),
    "code.ask": "I have sent a 6-digit code to that phone. Please send it to me.",
    "code.again": "Send a new code",
    "code.other_phone": "Other number",
    "code.wrong": "That code is not right.",
    "code.right": "Thank you, your number is confirmed. ✅",
    "code.used_up": "That code is no longer valid. Let us start again.",
    # Wallet
    "balance": "You have *{available}*.",
    "balance.held": "You can use *{available}*.\n\nIn all: {balance}\nOn hold: {held}",
    "history": "Your latest transactions:",
    "history.none": "There are no transactions yet.",
    "kind.other": "Transaction",
    "kind.transfer_p2p": "Transfer",
    "kind.transfer": "Transfer",
    "kind.pos_payment": "Payment",
    "kind.online_payment": "Payment",
    "kind.refund": "Refund",
    "kind.agent_cashin": "Cash in",
    "kind.agent_cashout": "Cash out",
    "kind.partner_fund": "Top-up",
    "status.partially_refunded": "partly refunded",
    "status.under_review": "under review",
    "status.failed": "failed",
    "status.refunded": "refunded",
    "limits": (
        "Your limits (level {level}):\n"
        "• One transaction: *{max_transaction}*\n"
        "• A day: *{daily_limit}*\n"
        "• A month: *{monthly_limit}*\n"
        "• In your wallet: *{max_balance}*"
    ),
    "limits.raise": "Verify your identity to raise them.",
    "statement.period": (
        "Which period should the statement cover? You can also write one, for example: March 2026"
    ),
    "period.this_month": "This month",
    "period.last_month": "Last month",
    "period.last_90": "Last 90 days",
    "statement.file": "Your statement, {first} to {last}.",
    "statement.link": (
        "Your statement, {first} to {last}:\n{link}\n\nThe link works until {until}. Anybody who "
        "has it can open the statement, so please keep it to yourself."
    ),
    # Sending money
    "send.to": "Who should get the money? Choose, or send a card number or a phone number.",
    "send.to_new": "Who should get the money? Send me a card number or a phone number.",
    "send.to_unknown": (
        "I do not know “{name}” yet. Please send me their card number or phone number."
    ),
    "send.to_self": "That is your own wallet. You can only send money to somebody else.",
    "send.no_card": (
        "{name} has no active card, and money is sent to a card. Please ask them to link one."
    ),
    "send.nobody.card": "I do not know a card with that number.",
    "send.nobody.phone": "Nobody is registered with that phone number.",
    "send.recipient_gone": (
        "That card is no longer in use, so I took it off your list. Please ask for the new one."
    ),
    "send.amount": "How much should {name} get?",
    "send.other_amount": "Which amount would you like to send instead?",
    "send.would_cost": "{amount} and a fee of {fee} make *{total}*.",
    "send.take_back": (
        "A payment that was made cannot be taken back in this chat. Shall I ask our support team "
        "to contact you?"
    ),
    "send.confirm": (
        "Please check:\n\nTo: *{name}*\nCard: {card}\nAmount: *{amount}*\nFee: {fee}\n"
        "Total: *{total}*\n\nShall I send it?"
    ),
    "send.pin": "Your PIN, to send *{amount}* to *{name}* (total {total}).",
    "send.completed": (
        "Done! ✅ {name} got *{amount}*.\n\nFee: {fee}\nYour new balance: *{balance}*\n"
        "Transaction: {transaction}"
    ),
    "send.under_review": (
        "Your payment of *{amount}* to {name} is *under review*. The money is set aside until we "
        "have checked it, and you will hear from us.\n\nFee: {fee}\nYour balance: *{balance}*\n"
        "Transaction: {transaction}"
    ),
    "send.refused": "{why}\n\nNo money was sent.",
    "send.uncertain": (
        "I did not get an answer, so I do not know yet whether the money was sent. Please give "
        "your PIN again: it *cannot be paid twice*."
    ),
    "send.left_uncertain": (
        "I stopped asking, but *the payment may have gone through*. Please look at your history "
        "before you send it again."
    ),
    "send.keep": "Keep recipient",
    "send.kept": "{name} is now among your recipients.",
    # Cards
    "cards": "Your cards:",
    "cards.none": "No card is linked to your wallet yet.",
    "card.ACTIVE": "active",
    "card.BLOCKED": "blocked",
    "card.LOST": "blocked for good",
    "card.EXPIRED": "expired",
    "card.UNASSIGNED": "not linked",
    "card.child": "child card",
    "link.serial": "What is the number of the card? It is printed on it.",
    "link.pin": "Your PIN, to link card {card} to your wallet.",
    "link.done": "Done! ✅ Card {card} is linked to your wallet.",
    "block.card": "Which card should I block?",
    "block.none": "You have no card that could be blocked.",
    "block.reason": "What happened to card {card}?",
    "reason.lost": "Lost",
    "reason.stolen": "Stolen",
    "reason.damaged": "Damaged",
    "reason.customer_request": "Just block it for now",
    "final": "Blocked for good, cannot be undone",
    "not_final": "You can unblock it later",
    "block.confirm": "Block card {card}? You can unblock it later.",
    "block.confirm_final": (
        "Block card {card} *for good*? This cannot be undone: you will need a new card."
    ),
    "block.done": "Card {card} is blocked. You can unblock it at any time.",
    "block.done_final": "Card {card} is blocked for good. Your money is safe in your wallet.",
    "unblock.card": "Which card should work again?",
    "unblock.none": "You have no card that could be unblocked.",
    "unblock.pin": "Your PIN, to unblock card {card}.",
    "unblock.done": "Done! ✅ Card {card} works again.",
    # Account
    "register.names": "Welcome! What are your first name and your last name?",
    "register.confirm": "Shall I open a wallet?\n\nName: *{name}*\nPhone: {phone}",
    "register.pin": (
        "Choose a PIN of 4 digits. You will need it for every payment. Avoid 1234 or a birthday."
    ),
    "register.done": "Welcome, {name}! 🎉 Your wallet is open.",
    "register.already": "There is already a wallet with this number.",
    "change_pin.ask": "Your old PIN, and the new one that you want.",
    "change_pin.uncertain": (
        "I did not get an answer. Your PIN may be changed already: if the old one is refused, the "
        "new one is valid. You can send *cancel*."
    ),
    "change_pin.done": "Done! ✅ Your PIN is changed.",
    "language.ask": "Which language do you prefer?",
    "language.en": "English",
    "language.fr": "Français",
    "language.set": "OK, let us speak English.",
    "person.confirm": "Shall I ask our support team to contact you?",
    "person.asked": "I have told our support team. Somebody will write to you or call you soon.",
    # Documents
    "kyc.type": "Which document would you like to send first?",
    "kyc.next": "Thank you, I got it. Which one is next?",
    "kyc.enough": "That is all",
    "kyc.picture": "Please send a clear picture: *{document}*. The whole of it must be readable.",
    "kyc.too_many": (
        "We already have several pictures of this document and are checking them: *{document}*. "
        "You can send another document, or wait until we have checked."
    ),
    "kyc.too_many_today": (
        "You have sent as many documents as we accept in one day. Please try again tomorrow."
    ),
    "kyc.done": "Thank you! We will check your documents, and you will hear from us.",
    "document.id_front": "ID card, front",
    "document.about.id_front": "The side with your picture, or your passport",
    "document.id_back": "ID card, back",
    "document.about.id_back": "The other side",
    "document.selfie": "Selfie",
    "document.about.selfie": "Your face, with the document beside it",
    "document.proof_of_address": "Proof of address",
    "document.about.proof_of_address": "A bill or letter of the last 3 months",
    "picture.what": (
        "Thank you for the picture. So that I know what it shows, please choose first and then "
        "send it again."
    ),
    "picture.not_now": "I cannot use a picture for this. To send a document, choose *kyc*.",
    "picture.refused": (
        "I cannot use that picture. Please send another one, as JPEG or PNG, up to 5 MB."
    ),
    "picture.unusable": "I cannot use that picture. Please send it again as JPEG or PNG.",
    # Gateway error codes
    "error.general": "Sorry, that did not work. Please try again later, or ask our support team.",
    "error.receiver": "The recipient cannot receive this payment at the moment.",
    "error.INVALID_PIN": "That PIN is not right.",
    "error.SAME_PIN": "The new PIN must be different from the old one.",
    "error.INVALID_OTP": "That code is not right.",
    "error.PERMANENT_BLOCK": "This card is blocked for good and cannot be unblocked.",
    "error.INSUFFICIENT_FUNDS": "There is not enough money in your wallet for this.",
    "error.ACCOUNT_LOCKED": "Your PIN is locked for a while after too many wrong tries.",
    "error.OTP_REQUIRED": "This wallet is specially protected. Please ask our support team.",
    "error.PIN_REQUIRED": "This needs your PIN.",
    "error.SUBSCRIBER_BLOCKED": "Your wallet is not active at the moment.",
    "error.CARD_NOT_ACTIVE": "This card is not active.",
    "error.COMPLIANCE_REJECTED": (
        "I may not send this payment because of a safety rule. A smaller amount may work."
    ),
    "error.TRANSACTION_LIMIT_EXCEEDED": "That is more than you may send at once.",
    "error.CARD_LIMIT_EXCEEDED": "That is more than this card may spend in a day.",
    "error.DAILY_LIMIT_EXCEEDED": "That would be more than you may send in a day.",
    "error.MONTHLY_LIMIT_EXCEEDED": "That would be more than you may send in a month.",
    "error.MAX_BALANCE_EXCEEDED": "The recipient's wallet cannot hold that much.",
    "error.SUBSCRIBER_NOT_FOUND": "I cannot find that wallet.",
    "error.CARD_NOT_FOUND": "I cannot find that card. Please check its number.",
    "error.DUPLICATE_PHONE": "There is already a wallet with this number.",
    "error.DUPLICATE_REQUEST": ("Something went wrong with this payment."),
    "error.CARD_ALREADY_LINKED": "This card is already linked to a wallet.",
    "error.CARD_NOT_LINKED": "This card is not linked to a wallet.",
    "error.ALREADY_BLOCKED": "This card is already blocked.",
    "error.NOT_BLOCKED": "This card is not blocked.",
    "error.SELF_TRANSFER": "That is your own wallet. You can only send money to somebody else.",
    "error.RATE_LIMITED": "That was a bit much at once. Please try again in a moment.",
    "error.VALIDATION_FAILED": "The payment service did not accept that.",
    "error.SERVICE_UNAVAILABLE": "The payment service is busy. Please try again in a moment.",
}
