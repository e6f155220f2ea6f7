"""Page texts in the messenger's languages."""

from collections.abc import Mapping
from typing import Final

DEFAULT_LANGUAGE: Final = "en"

TEXTS: Final[Mapping[str, Mapping[str, str]]] = {
    "en": {
        "title": "{operator} card",
        "genuine.title": "Genuine card",
        "genuine": "This card is operated by {operator}. Its chip signed this link just now.",
        "used.title": "Link already used",
        "used": "This card is operated by {operator}, but this link was used before. Tap the card "
        "again to get a new one.",
        "not_genuine.title": "Card not verified",
        "not_genuine": "We couldn't verify that this is a genuine {operator} card. Don't accept it "
        "for a payment. If it is your own card, tap it again or contact support.",
        "not_confirmed.title": "Card not ready yet",
        "not_confirmed": "This card is operated by {operator}, but it was not handed out yet.",
        "missing.title": "Tap a card",
        "missing": "Hold a {operator} card to the back of your phone to open its link.",
        "chat": "Continue in chat",
        "chat.hint": "Link the card to your wallet: send the message that opens in the chat.",
        "chat.paste": "To link the card to your wallet, paste this page's address into your chat "
        "with {operator}.",
        "chat.message": "Link my card: {url}",
        "safety": "This page never asks for your PIN, and shows no name and no balance.",
        "contact": "Found this card? Contact {contact}.",
        "error.title": "Page not available",
        "error": "Try again in a moment.",
    },
    "fr": {
        "title": "Carte {operator}",
        "genuine.title": "Carte authentique",
        "genuine": "Cette carte est gérée par {operator}. Sa puce vient de signer ce lien.",
        "used.title": "Lien déjà utilisé",
        "used": "Cette carte est gérée par {operator}, mais ce lien a déjà servi. Approchez à "
        "nouveau la carte pour obtenir un nouveau lien.",
        "not_genuine.title": "Carte non vérifiée",
        "not_genuine": "Nous n'avons pas pu vérifier que c'est une carte {operator} authentique. "
        "Ne l'acceptez pas comme paiement. Si c'est votre carte, approchez-la à nouveau ou "
        "contactez l'assistance.",
        "not_confirmed.title": "Carte pas encore prête",
        "not_confirmed": "Cette carte est gérée par {operator}, mais n'a pas encore été remise.",
        "missing.title": "Approchez une carte",
        "missing": "Placez une carte {operator} contre le dos de votre téléphone pour ouvrir son "
        "lien.",
        "chat": "Continuer dans la messagerie",
        "chat.hint": "Associez la carte à votre compte : envoyez le message qui s'ouvre dans la "
        "messagerie.",
        "chat.paste": "Pour associer la carte à votre compte, collez l'adresse de cette page dans "
        "votre discussion avec {operator}.",
        "chat.message": "Associer ma carte : {url}",
        "safety": "Cette page ne demande jamais votre code PIN et n'affiche ni nom ni solde.",
        "contact": "Vous avez trouvé cette carte ? Contactez {contact}.",
        "error.title": "Page indisponible",
        "error": "Réessayez dans un instant.",
    },
}


def choose_language(accepted: str | None) -> str:
    """Return the first language in an Accept-Language header that has texts."""
    for choice in (accepted or "").split(","):
        language = choice.strip()[:2].lower()
        if language in TEXTS:
            return language
    return DEFAULT_LANGUAGE
