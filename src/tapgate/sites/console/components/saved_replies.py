"""Saved replies of support. The catalog of the customer's language has their texts."""

from typing import Final

from tapgate.sites.console.translation.translator import Language, get_translator, source_text

#: Label that staff see -> text for the customer.
_REPLIES: Final = {
    source_text("Checking"): source_text(
        "Thank you for your message. We are checking this and will write to you here."
    ),
    source_text("Lost card"): source_text(
        "Your lost card is blocked. Come to one of our agents with your phone: you get a code here,"
        " and the agent links a new card with it. Your money and your PIN stay the same."
    ),
    source_text("Wrong recipient"): source_text(
        "Please send us the number of the transfer and the number you wanted to reach. We ask the"
        " recipient to return the money."
    ),
    source_text("Never share your PIN"): source_text(
        "Nobody from our team asks for your PIN or for a code. If someone did, change your PIN now:"
        " write CHANGE PIN."
    ),
    source_text("Solved"): source_text(
        "This is solved now. Thank you for your patience. Write to us again at any time."
    ),
}


def list_saved_replies(language: str) -> list[tuple[str, str]]:
    """Return the labels, and the texts in the customer's language."""
    translator = get_translator(Language(language))
    return [(label, translator.translate(text)) for label, text in _REPLIES.items()]
