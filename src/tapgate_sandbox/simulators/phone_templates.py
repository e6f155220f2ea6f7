"""Message template texts, for the simulated phone.

For real phones, the texts are registered with the provider. The messenger sends only a template's
name and parameters.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Final

TEMPLATE_TEXTS: Final[Mapping[str, str]] = {
    "one_time_code": "*{}* is your code. Don't share it with anyone.",
    "card_blocked": "Your card {} was blocked: {}.",
    "money_received": "You received *{}* from {} (transaction {}).",
    "payment_made": "You paid *{}* to {} (transaction {}).",
    "payment_released": "The payment of *{}* {} is complete (transaction {}).",
    "payment_rejected": (
        "The payment of *{}* {} was not completed. The money was returned to the sender, and no"
        " fee was charged (transaction {})."
    ),
    "float_low": "The float of {} is low: *{}*. Top it up to keep serving customers.",
    "support_reply": "Reply from support: {} You can answer here.",
    "support_closed": (
        "Our support team has closed your request. If you still need help, send talk to a person."
    ),
    "kyc_decided": "Your identity check: *{}*. {} Thank you.",
}
_FRENCH_TEXTS: Final[Mapping[str, str]] = {
    "one_time_code": "Votre code est *{}*. Ne le communiquez à personne.",
    "card_blocked": "Votre carte {} a été bloquée : {}.",
    "money_received": "Vous avez reçu *{}* (expéditeur : {}, transaction {}).",
    "payment_made": "Vous avez payé *{}* à {} (transaction {}).",
    "payment_released": "Le paiement de *{}* {} est effectué (transaction {}).",
    "payment_rejected": (
        "Le paiement de *{}* {} n'a pas été effectué. L'argent a été rendu à l'expéditeur, et aucun"
        " frais n'a été prélevé (transaction {})."
    ),
    "float_low": "Le solde de l'agent {} est bas : *{}*. Rechargez-le pour continuer à servir.",
    "support_reply": "Réponse de l'assistance : {} Vous pouvez répondre ici.",
    "support_closed": (
        "Notre service client a clos votre demande. Si vous avez encore besoin d'aide, envoyez"
        " parler à quelqu'un."
    ),
    "kyc_decided": "Votre vérification d'identité : *{}*. {} Merci.",
}
#: Template with a button that copies its first parameter.
_OTP_TEMPLATE: Final = "one_time_code"


def render_template(template: Mapping[str, Any]) -> dict[str, Any]:
    """Return a template as a phone shows it: name, text and, for a one-time code, the code."""
    name, parameters = template["name"], _list_parameters(template)
    is_french = template.get("language", {}).get("code", "").startswith("fr")
    text = _render_text(_FRENCH_TEXTS if is_french else TEMPLATE_TEXTS, name, parameters)
    code = parameters[0] if name == _OTP_TEMPLATE and parameters else None
    return {"name": name, "text": text} | ({} if code is None else {"code": code})


def _render_text(texts: Mapping[str, str], name: str, parameters: Sequence[str]) -> str:
    text = texts.get(name)
    if text is None or text.count("{}") != len(parameters):
        return "\n".join([f"_Template {name}_", *parameters])
    return text.format(*parameters)


def _list_parameters(template: Mapping[str, Any]) -> list[str]:
    return [
        parameter["text"]
        for component in template.get("components", [])
        if component["type"] == "body"
        for parameter in component["parameters"]
    ]
