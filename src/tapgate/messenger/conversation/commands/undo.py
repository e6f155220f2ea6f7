"""Money back: recalls of transfers, answers to them, and disputes of card payments."""

from datetime import timedelta
from typing import Final

from tapgate.messenger import texts
from tapgate.messenger.conversation.commands.common_steps import (
    PHONE_STEPS,
    SUBSCRIBER_STEPS,
    TRUST_STEP,
)
from tapgate.messenger.conversation.steps import (
    SUBJECT,
    AskStep,
    Next,
    ParsedAnswer,
    PinStep,
    RequestStep,
    Script,
)
from tapgate.messenger.conversation.turn import Choice, Turn
from tapgate.messenger.gateway_requests import (
    FindSubscriber,
    ListUndoable,
    TransactionSummary,
    client_request,
)
from tapgate.messenger.model import (
    MAX_ROW_DESCRIPTION_LENGTH,
    Command,
    RequestRejected,
    Subscriber,
)
from tapgate.messenger.understanding.secret_detection import may_contain_pin
from tapgate_client.errors import Code
from tapgate_client.schemas.disputes import DisputeReason
from tapgate_client.schemas.recalls import PendingRecalls, RecallRecord, RecallStatus
from tapgate_client.schemas.subscribers import SubscriberStatus
from tapgate_client.schemas.transactions import TransactionType

MAX_LISTED: Final = 5
DISPUTABLE_TYPES: Final = (TransactionType.POS_PAYMENT, TransactionType.ONLINE_PAYMENT)
#: The longest period that an operator may set. The gateway decides about younger transfers.
_RECALL_PERIOD: Final = timedelta(days=30)
_DISPUTE_PERIOD: Final = timedelta(days=60)
_SKIP: Final = "skip"


def _get_first_day(turn: Turn, period: timedelta) -> str:
    return (turn.context.now - period).date().isoformat()


# Recalls by the sender


def _handle_sender(turn: Turn, found: Subscriber | None) -> Next:
    """Answer in general without an active wallet, and otherwise look for transfers to recall."""
    turn.update(subscriber=found)
    is_active = found is not None and found.status.upper() == SubscriberStatus.ACTIVE
    return "on" if is_active else _explain(turn)


def _explain(turn: Turn) -> Next:
    return turn.finish("wrong_recipient", "person", "history", "menu", yes="person")


def _offer_transfers(turn: Turn, transfers: list[TransactionSummary]) -> Next:
    if not transfers:
        return _explain(turn)
    set_choices(turn, transfers)
    return "on"


def set_choices(turn: Turn, transactions: list[TransactionSummary]) -> None:
    """Set what the next question offers: a title and a description for each transaction ID."""
    facts = {"offered": " ".join(item.id for item in transactions)}
    for item in transactions:
        facts[f"{item.id}.amount"] = turn.format_money(item.amount, item.currency)
        facts[f"{item.id}.name"] = item.counterparty_name or ""
        facts[f"{item.id}.at"] = turn.format_datetime(item.at)
    turn.set_facts(**facts)


def _choose_subject(turn: Turn) -> bool:
    """Choose the record that the tapped button names. Return False if it is not offered."""
    subject_id = turn.facts.get(SUBJECT)
    if subject_id in turn.facts["offered"].split():
        turn.set_facts(chosen=subject_id)
    return subject_id is None or "chosen" in turn.facts


def list_choices(turn: Turn) -> list[Choice]:
    return [
        Choice(
            name,
            turn.facts[f"{name}.amount"],
            texts.truncate(
                " · ".join(filter(None, (turn.facts[f"{name}.name"], turn.facts[f"{name}.at"]))),
                MAX_ROW_DESCRIPTION_LENGTH,
            ),
        )
        for name in turn.facts["offered"].split()
    ]


def get_chosen(turn: Turn, fact: str) -> str:
    return turn.facts[f"{turn.facts['chosen']}.{fact}"]


def _handle_recalled(turn: Turn, recall: RecallRecord) -> Next:
    held = turn.format_money(recall.held_amount, recall.currency)
    key = "recall.opened" if recall.held_amount.strip("0.") else "recall.nothing_held"
    return turn.finish(key, "history", "menu", held=held, name=get_chosen(turn, "name"))


def _handle_recall_rejected(turn: Turn, error: RequestRejected) -> Next | None:
    if error.code != Code.NOT_RECALLABLE:
        return None
    key = "recall.too_many" if "open" in error.details else "recall.not_possible"
    return turn.finish(key, "person", "menu", yes="person")


# Answers of the receiver


def _offer_recalls(turn: Turn, pending: PendingRecalls) -> Next:
    if not pending.data and SUBJECT not in turn.facts:
        return turn.finish("recall.none", "person", "menu")
    subject_id = turn.facts.get(SUBJECT)
    offered = [item for item in pending.data if item.id == subject_id] or pending.data[:MAX_LISTED]
    facts = {"offered": " ".join(item.id for item in offered)}
    for item in offered:
        facts[f"{item.id}.amount"] = turn.format_money(item.held_amount, item.currency)
        facts[f"{item.id}.name"] = item.sender_name
        facts[f"{item.id}.at"] = ""
    turn.set_facts(**facts)
    return "on" if _choose_subject(turn) else turn.finish("recall.ended", "history", "menu")


def _get_only_choice(turn: Turn) -> str | None:
    return turn.facts["offered"] if " " not in turn.facts["offered"] else None


def _handle_answered(turn: Turn, recall: RecallRecord) -> Next:
    key = "recall.returned" if recall.status == RecallStatus.RETURNED else "recall.kept"
    amount = turn.format_money(recall.held_amount, recall.currency)
    return turn.finish(key, "balance", "menu", amount=amount, name=get_chosen(turn, "name"))


def _handle_answer_rejected(turn: Turn, error: RequestRejected) -> Next | None:
    match error.code:
        case Code.RECALL_NOT_OPEN:
            return turn.finish("recall.ended", "history", "menu")
        case Code.INSUFFICIENT_FUNDS:
            return turn.finish("recall.nothing_to_return", "person", "menu")
        case _:
            return None


def _build_answer_steps(command: Command) -> tuple[RequestStep | AskStep, ...]:
    return (
        RequestStep(
            name="pending",
            build_request=lambda turn: client_request(
                "recalls.list_pending_recalls", turn.subscriber.id
            ),
            on_success=_offer_recalls,
        ),
        AskStep(
            name="chosen",
            prompt=lambda turn: turn.translate(f"recall.choose.{command}"),
            choices=list_choices,
            infer_answer=_get_only_choice,
        ),
    )


# Disputes


def _offer_payments(turn: Turn, payments: list[TransactionSummary]) -> Next:
    if not payments and SUBJECT not in turn.facts:
        return turn.finish("dispute.none", "wrong_recipient", "person", "menu")
    set_choices(turn, payments)
    if not _choose_subject(turn):
        return turn.finish("dispute.not_possible", "person", "menu")
    return "on"


def _parse_description(turn: Turn, text: str) -> ParsedAnswer:
    """Send the dispute with the description, which is never stored in the conversation."""
    transaction_id = turn.facts["chosen"]
    return client_request(
        "disputes.create",
        transaction_id=transaction_id,
        reason=turn.facts["reason"],
        description=None if text == _SKIP else text,
        # A payment can be disputed once, so a repeated request is never another dispute.
        request_id=f"chat-{transaction_id}",
    )


def _handle_disputed(turn: Turn, result: object) -> Next:
    amount, name = get_chosen(turn, "amount"), get_chosen(turn, "name")
    return turn.finish("dispute.opened", "history", "menu", amount=amount, name=name)


def _handle_dispute_rejected(turn: Turn, error: RequestRejected) -> Next | None:
    match error.code:
        case Code.ALREADY_DISPUTED | Code.DUPLICATE_REQUEST:
            return turn.finish("dispute.already", "person", "menu")
        case Code.NOT_DISPUTABLE:
            return turn.finish("dispute.not_possible", "person", "menu")
        case _:
            return None


SCRIPTS: Final = (
    Script(
        command="wrong_recipient",
        steps=(
            *PHONE_STEPS,
            RequestStep(
                name="sender",
                build_request=lambda turn: FindSubscriber(phone=turn.phone),
                on_success=_handle_sender,
                on_unreachable=_explain,
            ),
            TRUST_STEP,
            RequestStep(
                name="transfers",
                build_request=lambda turn: ListUndoable(
                    subscriber_id=turn.subscriber.id,
                    types=(TransactionType.TRANSFER_P2P,),
                    since=_get_first_day(turn, _RECALL_PERIOD),
                    limit=MAX_LISTED,
                ),
                on_success=_offer_transfers,
            ),
            AskStep(
                name="chosen",
                prompt=lambda turn: turn.translate("recall.choose"),
                choices=list_choices,
            ),
            PinStep(
                name="recall",
                prompt=lambda turn: turn.translate(
                    "recall.pin",
                    amount=get_chosen(turn, "amount"),
                    name=get_chosen(turn, "name"),
                ),
                build_request=lambda turn, pins: client_request(
                    "recalls.recall_transfer",
                    turn.facts["chosen"],
                    pin=pins.pin,
                    request_id=turn.conversation.operation,
                ),
                on_success=_handle_recalled,
                on_rejection=_handle_recall_rejected,
            ),
        ),
    ),
    Script(
        command="return_money",
        steps=(
            *SUBSCRIBER_STEPS,
            *_build_answer_steps("return_money"),
            PinStep(
                name="return",
                prompt=lambda turn: turn.translate(
                    "recall.return_pin",
                    amount=get_chosen(turn, "amount"),
                    name=get_chosen(turn, "name"),
                ),
                build_request=lambda turn, pins: client_request(
                    "recalls.return_recalled_transfer", turn.facts["chosen"], pin=pins.pin
                ),
                on_success=_handle_answered,
                on_rejection=_handle_answer_rejected,
            ),
        ),
    ),
    Script(
        command="keep_money",
        steps=(
            *SUBSCRIBER_STEPS,
            *_build_answer_steps("keep_money"),
            RequestStep(
                name="keep",
                build_request=lambda turn: client_request(
                    "recalls.keep_recalled_transfer", turn.facts["chosen"]
                ),
                on_success=_handle_answered,
                on_rejection=_handle_answer_rejected,
            ),
        ),
    ),
    Script(
        command="dispute",
        steps=(
            *SUBSCRIBER_STEPS,
            RequestStep(
                name="payments",
                build_request=lambda turn: ListUndoable(
                    subscriber_id=turn.subscriber.id,
                    types=DISPUTABLE_TYPES,
                    since=_get_first_day(turn, _DISPUTE_PERIOD),
                    limit=MAX_LISTED,
                    including=turn.facts.get(SUBJECT),
                ),
                on_success=_offer_payments,
            ),
            AskStep(
                name="chosen",
                prompt=lambda turn: turn.translate("dispute.choose"),
                choices=list_choices,
            ),
            AskStep(
                name="reason",
                prompt=lambda turn: turn.translate(
                    "dispute.reason",
                    amount=get_chosen(turn, "amount"),
                    name=get_chosen(turn, "name"),
                ),
                choices=lambda turn: [
                    Choice(reason, turn.translate(f"dispute.reason.{reason}"))
                    for reason in DisputeReason
                ],
            ),
            AskStep(
                name="description",
                prompt=lambda turn: turn.translate("dispute.description"),
                choices=lambda turn: [Choice(_SKIP, turn.translate("dispute.skip"))],
                parse_text=_parse_description,
                parse_option=_parse_description,
                takes_any_text=True,
                looks_like_pin=may_contain_pin,
                on_success=_handle_disputed,
                on_rejection=_handle_dispute_rejected,
            ),
        ),
    ),
)
