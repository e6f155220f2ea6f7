"""Messenger and support settings."""

from typing import Final

from tapgate.core.settings.declaration import (
    Match,
    OptionalSetting,
    Secrecy,
    Setting,
    SettingGroup,
    Values,
)
from tapgate.core.settings.nodes import Environment
from tapgate.core.settings.value_types import Flag, Integer, PhoneNumber, PrivateKey, Text, Url
from tapgate_client.schemas.nodes import NodeRole

DEV_VERIFY_TOKEN: Final = "dev-verify-token"  # noqa: S105 - not used in staging and production


def _derive_verify_token(values: Values) -> str:
    return DEV_VERIFY_TOKEN if values["environment"] is Environment.DEVELOPMENT else ""


class MessengerSettings(SettingGroup):
    title = "Messenger and support"

    messenger_phone_number = OptionalSetting(
        PhoneNumber(),
        "Chat phone number",
        "Chat phone number, with the country code. The tap page links to it. Used by the gateway.",
        french="Numéro de téléphone de la messagerie",
        example="+23225000000",
    )
    messenger_graph_url = OptionalSetting(
        Url(),
        "Provider API URL",
        "Provider API URL for sending replies. If unset, replies stay in the outbox. See [Connect"
        " to the provider](messenger.md#connect-to-the-provider).",
        french="URL de l'API du fournisseur",
        production="Set it with the next two settings.",
        example="https://graph.example.com/v20.0",
        suggested=True,
    )
    messenger_access_token = OptionalSetting(
        Text(),
        "Provider access token",
        "Provider access token for sending replies.",
        french="Jeton d'accès du fournisseur",
        example="the provider's token",
        secrecy=Secrecy.HIDDEN,
        used_by=NodeRole.MESSENGER,
        suggested=True,
    )
    messenger_phone_number_id = OptionalSetting(
        Text(),
        "Provider phone number ID",
        "Provider ID for the sending phone number.",
        french="Identifiant du numéro de téléphone chez le fournisseur",
        example="106540352242922",
        suggested=True,
    )
    messenger_app_secret = OptionalSetting(
        Text(),
        "Provider app secret",
        "Verifies the signature of incoming messages.",
        french="Secret d'application du fournisseur",
        production="Set it: without it, messages are rejected.",
        example="the app's secret",
        secrecy=Secrecy.UNIQUE,
        match=Match.WARN,
        used_by=NodeRole.MESSENGER,
        suggested=True,
    )
    messenger_verify_token = Setting(
        # An empty token matches no request.
        Text(accepts_empty=True),
        _derive_verify_token,
        "Webhook verify token",
        "Token that the provider sends to verify the webhook. In testing the default is empty, and"
        " an empty token never matches.",
        french="Jeton de vérification du webhook",
        example="a token of your own",
        required=True,
        secrecy=Secrecy.UNIQUE,
        match=Match.WARN,
        used_by=NodeRole.MESSENGER,
    )
    messenger_bridge_token = OptionalSetting(
        Text(),
        "Bridge token",
        "Bearer token for the compatibility endpoint.",
        french="Jeton du pont",
        production="Set it to use the bridge: without it, the bridge is disabled.",
        example="a long token",
        secrecy=Secrecy.STRONG,
        match=Match.WARN,
        used_by=NodeRole.MESSENGER,
    )
    messenger_flow_private_key = OptionalSetting(
        PrivateKey(),
        "Form private key",
        "Private key for encrypted forms. If unset, PINs follow the rules for text messages."
        " Outside production, without a provider and without text PINs, a key for simulated phones"
        " is generated as `forms.pem` in the data folder.",
        french="Clé privée des formulaires chiffrés",
        example="flow.pem",
        secrecy=Secrecy.HIDDEN,
        match=Match.WARN,
        used_by=NodeRole.MESSENGER,
    )
    messenger_text_pin = Setting(
        Flag(),
        False,
        "Plain-text PIN entry",
        "Allow PINs as plain text messages on the webhook.",
        french="Saisie du code PIN en clair",
        production="Leave it off.",
        example="on",
        match=Match.WARN,
        used_by=NodeRole.MESSENGER,
    )
    messenger_rate = Setting(
        Integer(1, 1_000_000),
        30,
        "Chat rate limit (messages/min)",
        "Messages per minute per phone number.",
        french="Limite de débit du chat (messages/min)",
        example="60",
        match=Match.WARN,
        used_by=NodeRole.MESSENGER,
    )
    messenger_model_url = OptionalSetting(
        Url(),
        "Language model URL",
        "Language model endpoint that maps a sentence to a command. If unset, only the built-in"
        " resolver is used.",
        french="URL du modèle de langage",
        example="http://127.0.0.1:9000/resolve",
    )
    sms_url = OptionalSetting(
        Url("http", "https", strict_schemes=("https",)),
        "SMS provider URL",
        "SMS provider URL, to which notices and one-time codes are posted that do not arrive in the"
        " chat. Must be set together with the token. See [SMS](messenger.md#sms).",
        french="URL du fournisseur de SMS",
        production="Must be `https://`.",
        example="https://sms.example.com/messages",
        match=Match.WARN,
        used_by=NodeRole.MESSENGER,
        suggested=True,
    )
    sms_token = OptionalSetting(
        Text(),
        "SMS provider token",
        "Bearer token for requests to the SMS provider and for its status reports.",
        french="Jeton du fournisseur de SMS",
        example="a token agreed with the provider",
        secrecy=Secrecy.UNIQUE,
        match=Match.WARN,
        used_by=NodeRole.MESSENGER,
        suggested=True,
    )
    sms_after = Setting(
        Integer(0, 86_400),
        60,
        "SMS delay (s)",
        "Seconds after which a message that is not delivered in the chat is sent as SMS.",
        french="Délai avant SMS (s)",
        example="120",
        match=Match.WARN,
        used_by=NodeRole.MESSENGER,
    )
    support_contact = OptionalSetting(
        Text(),
        "Default support contact",
        "How to reach support, if the branding has no support contact. Shown in the chat. If unset,"
        " the chat offers only *Talk to a person*.",
        french="Contact de l'assistance par défaut",
        example="+232 25 000 000",
    )
    support_hours = OptionalSetting(
        Text(),
        "Support hours",
        "Support opening hours, shown in the chat.",
        french="Horaires de l'assistance",
        example="Mon-Sat 8:00-18:00",
    )
