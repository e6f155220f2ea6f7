"""English message catalog. Texts are short and friendly, with *bold* for emphasis."""

from typing import Final

from tapgate.messenger.conversation.texts.en import account, errors, general, money

TEXTS: Final = {**general.TEXTS, **money.TEXTS, **account.TEXTS, **errors.TEXTS}
