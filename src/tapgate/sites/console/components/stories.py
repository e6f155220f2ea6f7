"""Stories: what happened, in one sentence."""

from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from tapgate.ledger import chart
from tapgate.ledger.card_proofs.rejected_taps import CLONE_ALERT_TYPE
from tapgate.sites.console.labels import humanize
from tapgate.sites.console.translation.translator import Translator, source_text
from tapgate_client.errors import Code
from tapgate_client.schemas.transactions import TransactionStatus

Record = Mapping[str, Any]


class _Tale(NamedTuple):
    """Sentences about a completed transaction and about one that was declined or is held."""

    done: str
    tried: str


_TALES: Final[Mapping[str, _Tale]] = {
    chart.POS_PAYMENT: _Tale(
        source_text("{payer} paid {amount} by card at {payee}."),
        source_text("{payer} tried to pay {amount} by card at {payee}."),
    ),
    chart.ONLINE_PAYMENT: _Tale(
        source_text("{payer} paid {amount} to {payee} in an app."),
        source_text("{payer} tried to pay {amount} to {payee} in an app."),
    ),
    chart.TRANSFER_P2P: _Tale(
        source_text("{payer} sent {amount} to {payee}."),
        source_text("{payer} tried to send {amount} to {payee}."),
    ),
    chart.TRANSFER: _Tale(
        source_text("{amount} was moved from {payer} to {payee}."),
        source_text("{amount} was to be moved from {payer} to {payee}."),
    ),
    chart.AGENT_CASHIN: _Tale(
        source_text("{payee} handed {amount} in cash to {payer}, into the wallet."),
        source_text("{payee} tried to pay in {amount} at {payer}."),
    ),
    chart.AGENT_CASHOUT: _Tale(
        source_text("{payer} withdrew {amount} in cash at {payee}."),
        source_text("{payer} tried to withdraw {amount} in cash at {payee}."),
    ),
    chart.AGENT_FUND: _Tale(
        source_text("The float of {payee} was topped up by {amount}."),
        source_text("The float of {payee} was to be topped up by {amount}."),
    ),
    chart.AGENT_TRANSFER: _Tale(
        source_text("{payer} passed {amount} of float on to {payee}."),
        source_text("{payer} tried to pass {amount} of float on to {payee}."),
    ),
    chart.COMMISSION_PAYOUT: _Tale(
        source_text("{payee} took {amount} of commission into the float."),
        source_text("{payee} tried to take {amount} of commission into the float."),
    ),
    chart.PARTNER_FUND: _Tale(
        source_text("{payer} topped up the wallet of {payee} by {amount}."),
        source_text("{payer} tried to top up the wallet of {payee} by {amount}."),
    ),
    chart.BATCH_CREDIT: _Tale(
        source_text("{payer} paid {amount} to {payee} in a batch."),
        source_text("{payer} tried to pay {amount} to {payee} in a batch."),
    ),
    chart.PARTNER_DEPOSIT: _Tale(
        source_text("{payee} deposited {amount}."),
        source_text("{payee} tried to deposit {amount}."),
    ),
    chart.PROCESSOR_TRANSFER: _Tale(
        source_text("{payer} paid out {amount} to {payee}."),
        source_text("{payer} tried to pay out {amount} to {payee}."),
    ),
    chart.REFUND: _Tale(
        source_text("{payer} refunded {amount} to {payee}."),
        source_text("{payer} tried to refund {amount} to {payee}."),
    ),
    chart.REVERSAL: _Tale(
        source_text("{amount} went back from {payer} to {payee}."),
        source_text("{amount} was to go back from {payer} to {payee}."),
    ),
}
_OTHER_TALE: Final = _Tale(
    source_text("{amount} moved from {payer} to {payee}."),
    source_text("{amount} did not move from {payer} to {payee}."),
)
_UNSETTLED: Final = (TransactionStatus.FAILED, TransactionStatus.UNDER_REVIEW)
_THE_PLATFORM: Final = source_text("the platform")
_UNKNOWN_PARTY: Final = source_text("an unknown party")
_HIDDEN_PARTY: Final = source_text("a restricted customer")


def tell_transaction(translator: Translator, record: Record) -> str:
    """Return what a transaction did, or was meant to do, in one sentence."""
    tale = _TALES.get(record["type"], _OTHER_TALE)
    sentence = translator.translate(
        tale.tried if record["status"] in _UNSETTLED else tale.done,
        amount=translator.numbers.format_amount(record["amount"], record["currency"]),
        payer=name_party(translator, record["from"]),
        payee=name_party(translator, record["to"]),
    )
    return sentence[:1].upper() + sentence[1:]


_COPIED_CARD: Final = source_text(
    "Someone tapped a copy of {card} at {place}. Its counter was used before, so no money moved."
)
_FORGED_CARD: Final = source_text(
    "Someone tapped a card that claims to be {card} at {place}. Its signature is wrong, so no "
    "money moved."
)
_A_TERMINAL: Final = source_text("a terminal")


def tell_alert(
    translator: Translator, alert: Record, transaction: Record | None, merchant: Record | None
) -> str | None:
    """Return what an alert is about, or None if only its details tell."""
    details = alert["details"]
    if alert["alert_type"] == CLONE_ALERT_TYPE and isinstance(details.get("card_serial"), str):
        names = (merchant and merchant["name"], details.get("terminal_name"))
        place = ", ".join(name for name in names if name and isinstance(name, str))
        is_copy = details.get("reason") == Code.CARD_PROOF_USED
        return translator.translate(
            _COPIED_CARD if is_copy else _FORGED_CARD,
            card=details["card_serial"],
            place=place or translator.translate(_A_TERMINAL),
        )
    return None if transaction is None else tell_transaction(translator, transaction)


def name_party(translator: Translator, party: Record | None) -> str:
    if party is None:
        return translator.translate(_UNKNOWN_PARTY)
    if party["type"] == "platform":
        return translator.translate(_THE_PLATFORM)
    name: str | None = party.get("name")
    if name is None and party["type"] == "subscriber":
        return translator.translate(_HIDDEN_PARTY)
    return name or translator.translate_label(humanize(party["type"]))
