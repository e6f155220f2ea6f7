"""French message catalog. It has the same modules, keys and placeholders as the English one."""

from typing import Final

from tapgate.messenger.conversation.texts.fr import account, errors, general, money

TEXTS: Final = {**general.TEXTS, **money.TEXTS, **account.TEXTS, **errors.TEXTS}
