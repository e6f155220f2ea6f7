"""Checks for commands where similarity alone is not enough to act.

A text similar to a transfer request may report a transfer, ask about one or forbid it. A text with
any such sign does not start a transfer.
"""

import re

from tapgate.messenger.model import Command
from tapgate.messenger.understanding.normalization import normalize_text, to_phonetic
from tapgate.messenger.understanding.word_lists import compile_rules

#: Phonetic keys for words that mean sending, including misspellings.
_SEND_SOUNDS = frozenset(
    to_phonetic(normalize_text(word))
    for word in """send sen sned sedn sending transfer tranfer trasnfer transfar trasfer transfert
        transferer envoyer envoie envoye envoi envoyez anvoyer remit""".split()
)
_SEND_PATTERN = compile_rules(["send", "give"])
_MONEY_PATTERN = compile_rules(["money", "cash", "currency", "number"])
#: Words that suggest a negation, a stop, a past transfer, a question, a third party's action,
#: or an object other than money.
_DOUBT_PATTERN = compile_rules(["doubt"])
#: Money requested for the user, or a transfer that already happened.
_NOT_TO_OTHERS_PATTERN = re.compile(
    r"\b(s[en]*d|send|sen|gi|pe|transfer|pay|give|envoi\w*|envoy\w*|donne\w*|verse\w*|paye\w*)"
    r" (am )?(me|mi|us|my account|moi|nous)\b(?! (broda|brother|sista|mama|papa|padi|pikin))"
    r"|\b[mt] (a |ont |as |avez )?(envoy|envoi|donne|verse|paye|transfer|vire)"
    r"|\b(a|ai|as|ont|avez|avons) (\w+ )?(envoye|envoie|transfere|verse|paye|donne)\b"
    # Without "wan" or "mek", a Krio verb after its subject is in the past: "a sɛn 50 to Fatu".
    r"|(?<!mek )(?<!make )(?<!le )(?<!let )\b(a|i|we|wi|yu|you|e|she|he)( (jos|just|jus|jis))? "
    r"(sen|send|pay|pe|gi|give|tran[sz]fa|transfer)\b"
    r"|\b(can|could|kin|may) (i|we|a|wi)\b|\b(puis je|peut on|on peut|est ce qu)"
)
_PROHIBITION_PATTERN = re.compile(
    r"^(\w+ )?((i |please |pls |abeg |a )*(dont|do not|nor|never|no wan|no need|no sen|no pe)\b"
    r"(?! (have|know|remember|find|understand|se))"
    r"|(je |j |il |elle |on |merci de )*(ne|n)\b.* (pas|plus|jamais)\b"
    r"|je \w+ (pas|plus)\b)"
)
_PROHIBITION_EXEMPT_COMMANDS = frozenset(
    {"cancel", "person", "help", "language", "register", "history"}
)


def is_transfer_request(normalized: str, *, is_question: bool) -> bool:
    """Return whether a text similar to "send money" really asks for a transfer.

    `normalized` is the result of `normalize_text`. `is_question` is True if the text has a question
    mark.
    """
    has_verb = _SEND_PATTERN.search(normalized) is not None or any(
        to_phonetic(word) in _SEND_SOUNDS for word in normalized.split()
    )
    return has_verb and not is_doubtful(normalized, is_question=is_question)


def is_doubtful(normalized: str, *, is_question: bool) -> bool:
    """Return whether anything suggests that the text does not ask for a transfer now."""
    return (
        is_question
        or _DOUBT_PATTERN.search(normalized) is not None
        or _NOT_TO_OTHERS_PATTERN.search(normalized) is not None
    )


def mentions_money(normalized: str) -> bool:
    return _MONEY_PATTERN.search(normalized) is not None


def is_prohibition(normalized: str, command: Command | None) -> bool:
    """Return whether the text asks not to run the command; always False for exempt commands."""
    return (
        command not in _PROHIBITION_EXEMPT_COMMANDS
        and _PROHIBITION_PATTERN.search(normalized) is not None
    )
