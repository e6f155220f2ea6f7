"""Message templates: one declaration for each kind of message that the gateway sends to phones.

The gateway reads from it which messages an opted-out customer still gets, and the messenger which
messages go out as SMS and with what text. The provider has the same texts for chat messages.
"""

from collections.abc import Mapping, Sequence
from datetime import timedelta
from enum import StrEnum
from typing import Final

import msgspec

TEMPLATE_LANGUAGES: Final = ("en", "fr")

_CODE_LIFETIME: Final = timedelta(minutes=5)
_DAY: Final = timedelta(days=1)
_WEEK: Final = timedelta(days=7)


class TemplatePurpose(StrEnum):
    """Why a message is sent, which decides who gets it and on which channel."""

    NOTICE = "Someone acted on the recipient's account"
    CODE = "The recipient needs the code to confirm an operation"
    REQUEST = "A request waits for the recipient's answer"
    REPLY = "Answers what the recipient has asked for"
    OUTCOME = "Reports the decision that the recipient waits for"
    WORK = "Reports to an agent what the agent's work requires"
    RECEIPT = "Reports a completed transaction"


class Notice(StrEnum):
    """Template of a notice: a message that is always sent because someone acted on an account."""

    PHONE_CHANGED = "phone_changed"
    PIN_CHANGED = "pin_changed"
    CARD_CHANGED = "card_changed"
    WALLET_CHANGED = "wallet_changed"
    MONEY_CORRECTED = "money_corrected"
    RECORD_OPENED = "record_opened"


#: Purposes of messages that also go out as SMS.
_SMS_PURPOSES: Final = frozenset(
    {TemplatePurpose.NOTICE, TemplatePurpose.CODE, TemplatePurpose.REQUEST}
)


class TemplateButton(msgspec.Struct, frozen=True):
    """Button below a template. The channel sends `payload` back when it is tapped."""

    payload: str
    titles: Mapping[str, str]

    def get_title(self, language: str) -> str:
        return self.titles.get(language.partition("_")[0], self.titles["en"])


#: Buttons by the name that a message gives: what its recipient can do about it.
BUTTONS: Final[Mapping[str, Sequence[TemplateButton]]] = {
    "veto": (TemplateButton("cmd:not_me", {"en": "This wasn't me", "fr": "Ce n'est pas moi"}),),
    "recall": (
        TemplateButton("cmd:return_money", {"en": "Return it", "fr": "Rendre l'argent"}),
        TemplateButton("cmd:keep_money", {"en": "Keep it", "fr": "Garder l'argent"}),
    ),
    "dispute": (TemplateButton("cmd:dispute", {"en": "Something wrong?", "fr": "Un problème ?"}),),
}


#: What a message gives as its buttons: their name, and the record that they are about.
BUTTON_PATTERN: Final = r"^(veto|recall(:rcl_[0-9a-z]{13})?|dispute(:txn_[0-9a-z]{13})?)$"


def get_buttons(given: str | None) -> list[TemplateButton]:
    """Return a message's buttons. The payloads name the record that the message gives."""
    name, _, subject_id = (given or "").partition(":")
    buttons = BUTTONS.get(name, ())
    if not subject_id:
        return list(buttons)
    return [
        msgspec.structs.replace(button, payload=f"{button.payload}:{subject_id}")
        for button in buttons
    ]


class MessageTemplate(msgspec.Struct, frozen=True, kw_only=True):
    """Template with its purpose, lifetime and text per language; `{}` is a parameter."""

    name: str
    purpose: TemplatePurpose
    lifetime: timedelta
    texts: Mapping[str, str]
    #: Buttons with which the template is registered with the provider.
    buttons: str | None = None

    def name_buttons(self, subject_id: str) -> str | None:
        """Return what a message gives for its buttons, which are about one record."""
        return None if self.buttons is None else f"{self.buttons}:{subject_id}"

    @property
    def is_essential(self) -> bool:
        """Whether a subscriber who has opted out still gets the message."""
        return self.purpose is not TemplatePurpose.RECEIPT

    @property
    def can_be_sms(self) -> bool:
        return self.purpose in _SMS_PURPOSES

    @property
    def parameter_count(self) -> int:
        return self.texts["en"].count("{}")

    def render(self, language: str, parameters: Sequence[str]) -> str:
        return self.get_text(language).format(*parameters)

    def get_text(self, language: str) -> str:
        """Return the text in a language such as `fr` or `fr_SN`; English for other languages."""
        return self.texts.get(language.partition("_")[0], self.texts["en"])


def _declare(
    name: str,
    purpose: TemplatePurpose,
    lifetime: timedelta,
    en: str,
    fr: str,
    *,
    buttons: str | None = None,
) -> MessageTemplate:
    return MessageTemplate(
        name=name,
        purpose=purpose,
        lifetime=lifetime,
        texts={"en": en, "fr": fr},
        buttons=buttons,
    )


_TEMPLATES: Final = (
    _declare(
        "one_time_code",
        TemplatePurpose.CODE,
        _CODE_LIFETIME,
        "*{}* is your code. Don't share it with anyone.",
        "Votre code est *{}*. Ne le communiquez à personne.",
    ),
    _declare(
        Notice.PHONE_CHANGED,
        TemplatePurpose.NOTICE,
        _WEEK,
        "{}: your phone number was changed from {} to {}. If this was not you: {}",
        "{} : votre numéro de téléphone a été changé de {} à {}. Si ce n'est pas vous : {}",
        buttons="veto",
    ),
    _declare(
        Notice.PIN_CHANGED,
        TemplatePurpose.NOTICE,
        _WEEK,
        "{}: {} was changed. If this was not you, call support at once.",
        "{} : {} a été changé. Si ce n'est pas vous, appelez aussitôt l'assistance.",
    ),
    _declare(
        Notice.CARD_CHANGED,
        TemplatePurpose.NOTICE,
        _WEEK,
        "{}: your card {} {}. If this was not you, call support at once.",
        "{} : votre carte {} {}. Si ce n'est pas vous, appelez aussitôt l'assistance.",
    ),
    _declare(
        Notice.WALLET_CHANGED,
        TemplatePurpose.NOTICE,
        _WEEK,
        "{}: {}. If you did not expect this, call support.",
        "{} : {}. Si vous ne vous y attendiez pas, appelez l'assistance.",
    ),
    _declare(
        Notice.MONEY_CORRECTED,
        TemplatePurpose.NOTICE,
        _WEEK,
        "{}: our team {} (transaction {}). If you did not expect this, call support.",
        "{} : notre équipe {} (transaction {}). Si vous ne vous y attendiez pas, appelez"
        " l'assistance.",
    ),
    _declare(
        Notice.RECORD_OPENED,
        TemplatePurpose.NOTICE,
        _WEEK,
        "{}: a staff member opened your protected record with a code from your phone. If you gave"
        " nobody the code, call support at once.",
        "{} : un employé a ouvert votre dossier protégé avec un code reçu sur votre téléphone. Si"
        " vous n'avez donné ce code à personne, appelez aussitôt l'assistance.",
    ),
    _declare(
        "money_received",
        TemplatePurpose.RECEIPT,
        _DAY,
        "You received *{}* from {} (transaction {}).",
        "Vous avez reçu *{}* (expéditeur : {}, transaction {}).",
    ),
    _declare(
        "payment_made",
        TemplatePurpose.RECEIPT,
        _DAY,
        "You paid *{}* to {} (transaction {}).",
        "Vous avez payé *{}* à {} (transaction {}).",
        buttons="dispute",
    ),
    _declare(
        "payment_released",
        TemplatePurpose.OUTCOME,
        _WEEK,
        "The payment of *{}* {} is complete (transaction {}).",
        "Le paiement de *{}* {} est effectué (transaction {}).",
    ),
    _declare(
        "payment_rejected",
        TemplatePurpose.OUTCOME,
        _WEEK,
        "The payment of *{}* {} was not completed. The money was returned to the sender, and no"
        " fee was charged (transaction {}).",
        "Le paiement de *{}* {} n'a pas été effectué. L'argent a été rendu à l'expéditeur, et aucun"
        " frais n'a été prélevé (transaction {}).",
    ),
    _declare(
        "float_low",
        TemplatePurpose.WORK,
        _DAY,
        "The float of {} is low: *{}*. Top it up to keep serving customers.",
        "Le solde de l'agent {} est bas : *{}*. Rechargez-le pour continuer à servir.",
    ),
    _declare(
        "cash_out_request",
        TemplatePurpose.REQUEST,
        timedelta(minutes=5),
        "{}: agent {} asks you to confirm a cash-out of *{}*. Send confirm cash-out in the chat"
        " within 5 minutes. If you are not at this agent, ignore this message.",
        "{} : l'agent {} vous demande de confirmer un retrait de *{}*. Envoyez confirmer le retrait"
        " dans le chat sous 5 minutes. Si vous n'êtes pas chez cet agent, ignorez ce message.",
    ),
    _declare(
        "cash_out_update",
        TemplatePurpose.WORK,
        _DAY,
        "Cash-out of *{}* for {}: {} Thank you.",
        "Retrait de *{}* pour {} : {} Merci.",
    ),
    _declare(
        "float_request",
        TemplatePurpose.REQUEST,
        timedelta(minutes=30),
        "Float request for *{}* from your sub-agent {}{}. Send float requests in the chat within 30"
        " minutes to send it or to pass it on.",
        "Demande de *{}* de votre sous-agent {}{}. Envoyez demandes de fonds dans le chat sous 30"
        " minutes pour l'accorder ou la transmettre.",
    ),
    _declare(
        "float_request_funded",
        TemplatePurpose.WORK,
        _DAY,
        "Your float request for *{}* was granted (transaction {}).",
        "Votre demande de *{}* a été accordée (transaction {}).",
    ),
    _declare(
        "float_request_declined",
        TemplatePurpose.WORK,
        _DAY,
        "Your float request for *{}* was declined: {} You can ask again in the chat.",
        "Votre demande de *{}* a été refusée : {} Vous pouvez en faire une autre dans le chat.",
    ),
    _declare(
        "support_reply",
        TemplatePurpose.REPLY,
        _DAY,
        "Reply from support: {} You can answer here.",
        "Réponse de l'assistance : {} Vous pouvez répondre ici.",
    ),
    _declare(
        "support_closed",
        TemplatePurpose.REPLY,
        _DAY,
        "Our support team has closed your request. If you still need help, send talk to a person.",
        "Notre service client a clos votre demande. Si vous avez encore besoin d'aide, envoyez"
        " parler à quelqu'un.",
    ),
    _declare(
        "dispute_updated",
        TemplatePurpose.REPLY,
        _WEEK,
        "Your dispute of *{}* at {}: {}",
        "Votre contestation de *{}* chez {} : {}",
    ),
    _declare(
        "recall_request",
        TemplatePurpose.REQUEST,
        _DAY,
        "{}: {} sent you {} by mistake and asks for it back. {} is on hold for 24 hours. To return"
        " it, write RETURN in the chat or call support. To keep it, write KEEP. If you do nothing,"
        " you keep it.",
        "{} : {} vous a envoyé {} par erreur et le redemande. {} est retenu pendant 24 heures. Pour"
        " le rendre, écrivez RENDRE dans le chat ou appelez l'assistance. Pour le garder, écrivez"
        " GARDER. Sinon, vous le gardez.",
        buttons="recall",
    ),
    _declare(
        "recall_update",
        TemplatePurpose.OUTCOME,
        _WEEK,
        "{}: the request about {} {} (transaction {}).",
        "{} : la demande concernant {} {} (transaction {}).",
    ),
    _declare(
        "kyc_decided",
        TemplatePurpose.OUTCOME,
        _WEEK,
        "Your identity check: *{}*. {} Thank you.",
        "Votre vérification d'identité : *{}*. {} Merci.",
    ),
)
TEMPLATES: Final[Mapping[str, MessageTemplate]] = {item.name: item for item in _TEMPLATES}


def is_essential(template: str) -> bool:
    """Return whether a subscriber who has opted out still gets a template, known or unknown."""
    declared = TEMPLATES.get(template)
    return declared is None or declared.is_essential
