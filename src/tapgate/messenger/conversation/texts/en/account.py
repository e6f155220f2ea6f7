"""English texts: PINs, identification, cards, the account and documents."""

from typing import Final

TEXTS: Final = {
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
    # Cards
    "cards": "Your cards:",
    "cards.none": "You have no cards yet.",
    "card.ACTIVE": "active",
    "card.BLOCKED": "blocked",
    "card.LOST": "permanently blocked",
    "card.EXPIRED": "expired",
    "card.UNASSIGNED": "not linked",
    "card.child": "child card",
    "link.serial": (
        "What's the card number? It's printed on the card. Or tap the card on your phone and paste"
        " the link here."
    ),
    "link.pin_tapped": "Enter your PIN to link the card you tapped to your wallet.",
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
    "support.closed": (
        "Our support team has closed your request. If you still need help, send *talk to a person*."
    ),
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
}
