"""Limits and business rules."""

from enum import StrEnum
from zoneinfo import ZoneInfo

from tapgate.core.settings.declaration import Match, Setting, SettingGroup, Values
from tapgate.core.settings.nodes import Demo
from tapgate.core.settings.value_types import (
    Choice,
    Country,
    Currency,
    Flag,
    Integer,
    Text,
    TimeZone,
)
from tapgate_client.schemas.nodes import NodeRole


class Receipts(StrEnum):
    """Receipts sent to subscribers' phones."""

    OFF = "off"
    RECEIVED = "received"
    ALL = "all"
    #: Also disables the messages that are otherwise always sent. Only for building demo data.
    NO_MESSAGES = "none"


class DayClose(StrEnum):
    """When days of the ledger are closed."""

    AUTO = "auto"
    MANUAL = "manual"


def _derive_country(values: Values) -> str | None:
    return "SL" if values["currency"] == "SLE" else None


def _derive_receipts(values: Values) -> Receipts:
    return Receipts.RECEIVED if values["demo"] is Demo.OFF else Receipts.ALL


class BusinessSettings(SettingGroup):
    title = "Limits and business rules"

    operator_name = Setting(
        Text(),
        "Tapgate",
        "Default operator name",
        "Operator name, if the branding has none, shown to people who read a card with their"
        " phone. See [Cards](cards.md#read-a-card-with-a-phone).",
        french="Nom de l'opérateur par défaut",
        production="The name that people know.",
        example="City Transit",
    )
    currency = Setting(
        Currency(),
        "SLE",
        "Currency",
        "A database is bound to the currency that it was created with.",
        french="Devise",
        production="Decide before the first start.",
        example="USD",
        template="SLE",
    )
    country = Setting[str | None](
        Country(),
        _derive_country,
        "Default phone country",
        "Country of phone numbers that staff type without a country code, such as 076 123456. If"
        " `TAPGATE_CURRENCY` is not `SLE`, there is no default, and the country code is required.",
        french="Pays par défaut des numéros de téléphone",
        example="GH",
    )
    timezone = Setting(
        TimeZone(),
        ZoneInfo("UTC"),
        "Time zone",
        "Time zone in which limits and statements count days and months.",
        french="Fuseau horaire",
        example="Africa/Freetown",
        match=Match.REFUSE,
        template="UTC",
    )
    day_close = Setting(
        Choice((DayClose.AUTO, DayClose.MANUAL)),
        DayClose.AUTO,
        "Day close",
        "`auto` closes each day 15 minutes after it ends, `manual` only on request. See [Closed"
        " days](ledger.md#closed-days).",
        french="Clôture journalière",
        example="manual",
        match=Match.WARN,
        used_by=NodeRole.GATEWAY,
    )
    bank_account_cooldown = Setting(
        Integer(0, 30 * 86_400),
        86_400,
        "Bank account cooldown (s)",
        "Seconds after its verification before payouts can use a bank account. Protects against a"
        " stolen admin session. See [Payouts](payouts.md).",
        french="Délai d'attente d'un compte bancaire (s)",
        production="Leave it at a day or more.",
        example="172800",
        match=Match.WARN,
        used_by=NodeRole.GATEWAY,
    )
    rate_limit = Setting(
        Integer(1, 1_000_000),
        100,
        "Rate limit (requests/s)",
        "Requests per second per credential, or per address on public routes and on the messenger.",
        french="Limite de débit (requêtes/s)",
        example="500",
        match=Match.WARN,
    )
    rate_burst = Setting(
        Integer(1, 1_000_000),
        200,
        "Burst size",
        "Rate limit burst size.",
        french="Taille de rafale",
        example="1000",
        match=Match.WARN,
    )
    refuse_weak_pins = Setting(
        Flag(),
        True,
        "Weak PIN check",
        "Reject PINs such as 1234 and 0000 when a PIN is set.",
        french="Contrôle des codes PIN faibles",
        production="Leave it on.",
        example="off",
        match=Match.WARN,
        used_by=NodeRole.GATEWAY,
    )
    wrong_pin_limit = Setting(
        Integer(1, 1_000_000),
        20,
        "Wrong PIN limit",
        "Wrong PINs per credential in ten minutes after which its requests with a PIN get 429. See"
        " [Wrong PINs](payment.md#wrong-pins).",
        french="Limite de codes PIN erronés",
        example="50",
        match=Match.WARN,
        used_by=NodeRole.GATEWAY,
    )
    wrong_pin_percent = Setting(
        Integer(0, 99),
        20,
        "Wrong PIN threshold (%)",
        "The wrong PIN limit applies only if more than this percentage of the credential's PINs are"
        " wrong; `0`: any percentage.",
        french="Seuil de codes PIN erronés (%)",
        example="10",
        match=Match.WARN,
        used_by=NodeRole.GATEWAY,
    )
    float_low = Setting(
        Integer(0, 999_999_999),
        1000,
        "Low-float threshold",
        "Threshold in whole major units. When an agent's float falls below it, the event"
        " `agent.float_low` is sent, and the agent and its super-agent get a message.",
        french="Seuil de float faible",
        production="Depends on your agents' volume.",
        example="5000",
        match=Match.WARN,
        used_by=NodeRole.GATEWAY,
    )
    cashier_refund_limit = Setting(
        Integer(0, 999_999_999),
        1000,
        "Cashier refund limit",
        "Amount in whole major units that a merchant's cashier can refund per payment, earlier"
        " refunds included. A manager can refund everything. See [Owners](owners.md).",
        french="Plafond de remboursement des caissiers",
        production="Depends on your merchants' sales.",
        example="500",
        match=Match.WARN,
        used_by=NodeRole.GATEWAY,
    )
    recall_hours = Setting(
        Integer(1, 720),
        24,
        "Recall period (hours)",
        "Time after a transfer in which its sender can recall it. See"
        " [Undo a payment](guides/undo.md).",
        french="Délai de demande de retour (heures)",
        example="12",
        match=Match.WARN,
        used_by=NodeRole.GATEWAY,
    )
    receipts = Setting(
        Choice((Receipts.OFF, Receipts.RECEIVED, Receipts.ALL)),
        _derive_receipts,
        "Phone receipts",
        "Receipts sent to subscribers' phones: `off`, `received` (money received) or `all` (also"
        " payments made). See [Messages to phones](running.md#messages-to-phones). Default: `all`"
        " with demo data, otherwise `received`.",
        french="Reçus envoyés aux téléphones",
        example="all",
        match=Match.WARN,
        used_by=NodeRole.GATEWAY,
    )
