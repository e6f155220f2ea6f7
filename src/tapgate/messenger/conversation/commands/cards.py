"""Card commands: list, link, block and unblock."""

from typing import Final

from tapgate.messenger import texts
from tapgate.messenger.card_requests import BlockCard, ListCards, UnblockCard
from tapgate.messenger.conversation import option_matching
from tapgate.messenger.conversation.commands.common_steps import (
    SUBSCRIBER_STEPS,
    build_lookup_script,
)
from tapgate.messenger.conversation.steps import (
    AskStep,
    ConfirmStep,
    Next,
    ParsedAnswer,
    PinInput,
    PinStep,
    RequestStep,
    Script,
    Step,
    looks_like_pin_not_serial,
)
from tapgate.messenger.conversation.turn import Choice, Turn
from tapgate.messenger.gateway_requests import ClientRequest, client_request
from tapgate.messenger.model import Card, RequestRejected
from tapgate.messenger.understanding.secret_detection import find_tap_url
from tapgate.messenger.understanding.transfers import parse_card_serial
from tapgate_client.errors import Code
from tapgate_client.schemas.cards import CardBlockReason, CardStatus, CardType

_MAX_LISTED_CARDS: Final = 12
#: Placeholder serial for a card whose link the person pasted.
_TAPPED_CARD: Final = "tapped"
_PROOF_ERROR_CODES: Final = (
    Code.CARD_NOT_GENUINE,
    Code.CARD_PROOF_REQUIRED,
    Code.CARD_PROOF_USED,
)
_MAX_NAME_LENGTH: Final = 24
_PERMANENT_REASONS: Final = (CardBlockReason.LOST, CardBlockReason.STOLEN, CardBlockReason.DAMAGED)


def _reply_with_cards(turn: Turn, cards: list[Card]) -> Next:
    if not cards:
        return turn.finish("cards.none", "link", "menu")
    lines = [
        f"• {card.serial} · {_describe_card(turn, card)}" for card in cards[:_MAX_LISTED_CARDS]
    ]
    return turn.suggest_commands(
        "\n".join([turn.translate("cards"), *lines]), "link", "block", "menu"
    )


def _describe_card(turn: Turn, card: Card) -> str:
    key = f"card.{card.status}"
    parts = [turn.translate(key) if texts.has_text(key) else card.status.lower()]
    if card.type == CardType.CHILD:
        parts.append(turn.translate("card.child"))
        parts.extend(
            [texts.truncate(card.holder_name, _MAX_NAME_LENGTH)] if card.holder_name else []
        )
    return ", ".join(parts)


def _build_list_request(turn: Turn) -> ListCards:
    return ListCards(subscriber_id=turn.subscriber.id)


def _build_choice_steps(
    prompt: str, statuses: tuple[CardStatus, ...], none_key: str
) -> tuple[Step, ...]:
    """Build the steps that choose one of the cards with these statuses."""

    def store_matching_cards(turn: Turn, cards: list[Card]) -> Next:
        matching = tuple(card for card in cards if card.status in statuses)
        turn.update(cards=matching)
        return "on" if matching else turn.finish(none_key, "cards", "menu")

    cards = RequestStep(
        name="cards", build_request=_build_list_request, on_success=store_matching_cards
    )
    question = AskStep(
        name="card",
        prompt=lambda turn: turn.translate(prompt),
        choices=_list_card_choices,
        infer_answer=_get_only_card,
        parse_text=_parse_card,
        looks_like_pin=looks_like_pin_not_serial,
        not_understood_key="not_understood.card",
    )
    return (cards, question)


def _list_card_choices(turn: Turn) -> list[Choice]:
    return [
        Choice(card.serial, card.serial, _describe_card(turn, card))
        for card in turn.conversation.cards
    ]


def _get_only_card(turn: Turn) -> str | None:
    cards = turn.conversation.cards
    return cards[0].serial if len(cards) == 1 else None


def _parse_card(turn: Turn, text: str) -> ParsedAnswer:
    serial = parse_card_serial(text)
    known = {card.serial.upper(): card.serial for card in turn.conversation.cards}
    return {"card": known[serial.upper()]} if serial and serial.upper() in known else None


def _parse_serial(turn: Turn, text: str) -> ParsedAnswer:
    tap_url = find_tap_url(text)
    if tap_url is not None:
        return {"serial": _TAPPED_CARD, "tap_url": tap_url}
    serial = parse_card_serial(text)
    return None if serial is None else {"serial": serial}


def _begin_link(turn: Turn, text: str) -> None:
    """Take the card from the opening text, for example "Link card AB-1234" or a tap's link."""
    answer = _parse_serial(turn, text) if find_tap_url(text) else None
    if answer is None and text.split():
        answer = _parse_serial(turn, text.rsplit(maxsplit=1)[-1])
    if isinstance(answer, dict):
        turn.set_facts(**answer)


def _prompt_for_link_pin(turn: Turn) -> str:
    if "tap_url" in turn.facts:
        return turn.translate("link.pin_tapped")
    return turn.translate("link.pin", card=turn.facts["serial"])


def _build_link_request(turn: Turn, pins: PinInput) -> ClientRequest:
    """Link the card with a serial, or the card whose link the person pasted."""
    tap_url = turn.facts.get("tap_url")
    return client_request(
        "cards.link",
        subscriber_id=turn.subscriber.id,
        card_serial=None if tap_url is not None else turn.facts["serial"],
        card_proof=tap_url,
        pin=pins.pin,
    )


def _handle_link_rejected(turn: Turn, error: RequestRejected) -> Next | None:
    """Ask for another tap if the proof was rejected."""
    if error.code not in _PROOF_ERROR_CODES:
        return None
    turn.add_reply(f"error.{error.code}")
    turn.clear_facts("serial", "tap_url")
    return "back"


def _begin_block(turn: Turn, text: str) -> None:
    """Take the reason from the opening text, for example "My card was stolen"."""
    reason = option_matching.find_mentioned_value(text, _PERMANENT_REASONS)
    if reason is not None:
        turn.set_facts(reason=reason)


def _is_permanent(turn: Turn) -> bool:
    return turn.facts["reason"] in _PERMANENT_REASONS


def _list_reasons(turn: Turn) -> list[Choice]:
    permanent, temporary = turn.translate("block.permanent"), turn.translate("block.temporary")
    return [
        Choice(
            reason,
            turn.translate(f"reason.{reason}"),
            permanent if reason in _PERMANENT_REASONS else temporary,
        )
        for reason in (*_PERMANENT_REASONS, CardBlockReason.CUSTOMER_REQUEST)
    ]


def _handle_blocked(turn: Turn, card: Card) -> Next:
    if _is_permanent(turn):
        return turn.finish("block.done_permanent", "link", "menu", card=card.serial)
    return turn.finish("block.done", "unblock", "menu", card=card.serial)


SCRIPTS: Final = (
    build_lookup_script("cards", _build_list_request, _reply_with_cards),
    Script(
        command="link",
        on_begin=_begin_link,
        steps=(
            *SUBSCRIBER_STEPS,
            AskStep(
                name="serial",
                prompt=lambda turn: turn.translate("link.serial"),
                parse_text=_parse_serial,
                looks_like_pin=looks_like_pin_not_serial,
                not_understood_key="not_understood.serial",
            ),
            PinStep(
                name="linked",
                prompt=_prompt_for_link_pin,
                build_request=_build_link_request,
                on_rejection=_handle_link_rejected,
                on_success=lambda turn, linked: turn.finish(
                    "link.done", "cards", "menu", card=linked.card.serial
                ),
            ),
        ),
    ),
    Script(
        command="block",
        on_begin=_begin_block,
        steps=(
            *SUBSCRIBER_STEPS,
            # Includes blocked cards: a temporary block can still become permanent.
            *_build_choice_steps(
                "block.card", (CardStatus.ACTIVE, CardStatus.BLOCKED), "block.none"
            ),
            AskStep(
                name="reason",
                prompt=lambda turn: turn.translate("block.reason", card=turn.facts["card"]),
                choices=_list_reasons,
            ),
            ConfirmStep(
                name="confirmed",
                prompt=lambda turn: turn.translate(
                    "block.confirm_permanent" if _is_permanent(turn) else "block.confirm",
                    card=turn.facts["card"],
                ),
            ),
            RequestStep(
                name="blocked",
                build_request=lambda turn: BlockCard(
                    subscriber_id=turn.subscriber.id,
                    card_serial=turn.facts["card"],
                    reason=turn.facts["reason"],
                ),
                on_success=_handle_blocked,
            ),
        ),
    ),
    Script(
        command="unblock",
        steps=(
            *SUBSCRIBER_STEPS,
            *_build_choice_steps("unblock.card", (CardStatus.BLOCKED,), "unblock.none"),
            PinStep(
                name="unblocked",
                prompt=lambda turn: turn.translate("unblock.pin", card=turn.facts["card"]),
                build_request=lambda turn, pins: UnblockCard(
                    subscriber_id=turn.subscriber.id, card_serial=turn.facts["card"], pin=pins.pin
                ),
                on_success=lambda turn, card: turn.finish(
                    "unblock.done", "cards", "menu", card=card.serial
                ),
            ),
        ),
    ),
)
