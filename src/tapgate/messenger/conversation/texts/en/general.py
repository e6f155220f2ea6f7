"""English texts: commands, navigation, answers that were not understood, and confirmations."""

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
        "That doesn't look like a card number or the link of a card. You'll find the number"
        " printed on the card."
    ),
    "not_understood.card": "That's not one of these cards.",
    "not_understood.names": "Please send your first and last name, for example: Aminata Kamara",
    "not_understood.period": "I didn't understand that period.",
    "not_understood.support": "Please describe it in words.",
    "not_understood.picture": "I'm waiting for a photo. To stop, send *cancel*.",
    # Confirmation
    "confirm.yes": "Yes",
    "confirm.no": "No",
}
