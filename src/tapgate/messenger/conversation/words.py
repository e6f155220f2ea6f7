"""The words that are commands in any state, whatever was asked."""

import unicodedata
from collections.abc import Mapping
from typing import Final

from tapgate.messenger.model.kinds import Command

_WORDS: Final[Mapping[Command, str]] = {
    "menu": "menu, start, demarrer, hi, hello, bonjour, salut",
    "help": "help, aide",
    "balance": "balance, solde",
    "send": "send money, send, envoyer de l argent, envoyer argent, envoyer",
    "history": "history, historique",
    "statement": "statement, releve",
    "cards": "cards, my cards, cartes, mes cartes",
    "kyc": "kyc",
    "limits": "limits, limites, plafonds",
    "language": "language, langue",
    "register": "register, inscription",
    "yes": "yes, y, ok, oui, confirm, confirmer, d accord",
    "no": "no, n, non",
    "cancel": "cancel, stop, annuler",
}
_COMMANDS: Final = {
    word: command for command, words in _WORDS.items() for word in words.split(", ")
}


def command(text: str) -> Command | None:
    """The command that a text is and nothing else."""
    return _COMMANDS.get(_plain(text))


def _plain(text: str) -> str:
    """Small letters without accents, single spaces, no punctuation."""
    letters = unicodedata.normalize("NFKD", text.casefold())
    kept = (c if c.isalnum() else " " for c in letters if not unicodedata.combining(c))
    return " ".join("".join(kept).split())
