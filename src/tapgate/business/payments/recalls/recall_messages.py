"""Messages that tell both parties of a recall each step, without numbers and full names."""

from collections.abc import Mapping
from typing import Any, Final

from tapgate.business.payments.recalls.model import Recall
from tapgate.core.message_templates import TEMPLATES
from tapgate.core.public_names import clean_person_name
from tapgate.core.vault import Vault
from tapgate.events.notifications.notification_messages import enqueue_message
from tapgate.runtime.store.transaction import Transaction
from tapgate_client import ids, money
from tapgate_client.schemas.recalls import RecallStatus, RecallVerdict
from tapgate_client.schemas.subscribers import SubscriberLanguage

_REQUEST: Final = "recall_request"
_UPDATE: Final = "recall_update"

#: What happened, by language.
_OUTCOMES: Final[Mapping[str, Mapping[str, str]]] = {
    SubscriberLanguage.EN: {
        "open": "was sent to the recipient, and {} is on hold for 24 hours",
        "return": "is complete: {} is back with the sender",
        "kept": "was declined: the recipient keeps the money",
        "expired": "has expired: the recipient did not answer and keeps the money",
        "release": "was decided: the recipient keeps the money",
    },
    SubscriberLanguage.FR: {
        "open": "a été transmise au bénéficiaire, et {} est retenu pendant 24 heures",
        "return": "est terminée\u00a0: {} est revenu à l'expéditeur",
        "kept": "a été refusée\u00a0: le bénéficiaire garde l'argent",
        "expired": "a expiré\u00a0: le bénéficiaire n'a pas répondu et garde l'argent",
        "release": "a été tranchée\u00a0: le bénéficiaire garde l'argent",
    },
}


async def tell_parties(tx: Transaction, vault: Vault, recall: Recall) -> None:
    """Enqueue the messages about a recall's current status."""
    sender, receiver = [await _find_person(tx, account) for account in recall.account_ids]
    if recall.status == RecallStatus.OPEN and sender is not None and receiver is not None:
        language = receiver["language"]
        await _send(
            tx,
            vault,
            receiver,
            recall,
            _REQUEST,
            clean_person_name(sender["public_name"]),
            money.format_money(recall.amount, recall.currency, language),
            money.format_money(recall.held_amount, recall.currency, language),
        )
    told = [sender] if recall.status == RecallStatus.OPEN else [sender, receiver]
    for person in told:
        if person is not None:
            await _send_update(tx, vault, person, recall)


async def _find_person(tx: Transaction, account_id: int) -> Any:
    """Return a wallet's holder, or None if the holder no longer exists."""
    return await tx.fetchrow(
        """SELECT s.phone_number, s.language, a.public_name
           FROM accounts a JOIN subscribers s ON s.id = a.owner_id WHERE a.id = $1""",
        account_id,
    )


async def _send_update(tx: Transaction, vault: Vault, person: Any, recall: Recall) -> None:
    language = person["language"]
    is_return = recall.status == RecallStatus.RETURNED or recall.decision == RecallVerdict.RETURN
    outcome = "return" if is_return else recall.decision or recall.status
    held = money.format_money(recall.held_amount, recall.currency, language)
    await _send(
        tx,
        vault,
        person,
        recall,
        _UPDATE,
        money.format_money(recall.amount, recall.currency, language),
        _OUTCOMES[language][outcome].format(held),
        ids.encode(ids.TRANSACTION, recall.transaction_id),
    )


async def _send(
    tx: Transaction, vault: Vault, person: Any, recall: Recall, template: str, *parameters: str
) -> None:
    await enqueue_message(
        tx,
        vault,
        to=person["phone_number"],
        template=template,
        parameters=[clean_person_name(person["public_name"]), *parameters],
        language=person["language"],
        expires_at=tx.now() + TEMPLATES[template].lifetime,
        button=TEMPLATES[template].name_buttons(ids.encode(ids.RECALL, recall.id)),
    )
