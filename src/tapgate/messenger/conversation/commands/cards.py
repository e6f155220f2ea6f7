"""Card commands: list, link, block and unblock."""

from collections.abc import Callable
from typing import Final

from tapgate.messenger.conversation import option_matching, rendering, texts
from tapgate.messenger.conversation.commands.common_steps import SUBSCRIBER_STEPS
from tapgate.messenger.conversation.steps import (
    AskStep,
    ConfirmStep,
    Next,
    ParsedAnswer,
    PinInput,
    PinStep,
    RequestStep,
    Script,
    looks_like_pin_not_serial,
)
from tapgate.messenger.conversation.turn import Choice, Turn
from tapgate.messenger.gateway_requests import BlockCard, LinkCard, ListCards, UnblockCard
from tapgate.messenger.model.people import Card
from tapgate.messenger.understanding import reading
from tapgate.schemas.cards import CardBlockReason, CardStatus, CardType

_MAX_LISTED_CARDS: Final = 12
_MAX_NAME_LENGTH: Final = 24
_PERMANENT_REASONS: Final = (
    CardBlockReason.LOST,
    CardBlockReason.STOLEN,
    CardBlockReason.DAMAGED,
)
_BLOCK_REASONS: Final = (*_PERMANENT_REASONS, CardBlockReason.CUSTOMER_REQUEST)


def _build_list_cards_request(turn: Turn) -> ListCards:
    return ListCards(subscriber_id=turn.subscriber.id)


def _reply_with_cards(turn: Turn, cards: list[Card]) -> Next:
    if not cards:
        turn.suggest_commands(turn.translate("cards.none"), "link", "menu")
        return "end"
    lines = [
        f"• {card.serial} · {_describe_card(turn, card)}" for card in cards[:_MAX_LISTED_CARDS]
    ]
    turn.suggest_commands("\n".join([turn.translate("cards"), *lines]), "link", "block", "menu")
    return "end"


def _describe_card(turn: Turn, card: Card) -> str:
    key = f"card.{card.status}"
    parts = [turn.translate(key) if texts.has_text(key) else card.status.lower()]
    if card.type == CardType.CHILD:
        parts.append(turn.translate("card.child"))
        parts.extend(
            [rendering.truncate(card.holder_name, _MAX_NAME_LENGTH)] if card.holder_name else []
        )
    return ", ".join(parts)


def _build_card_filter(
    statuses: tuple[str, ...], none_key: str
) -> Callable[[Turn, list[Card]], Next]:
    """Build a handler that stores the cards with one of the statuses, or ends the command."""

    def store_matching_cards(turn: Turn, cards: list[Card]) -> Next:
        matching = tuple(card for card in cards if card.status in statuses)
        turn.update(cards=matching)
        if matching:
            return "on"
        turn.suggest_commands(turn.translate(none_key), "cards", "menu")
        return "end"

    return store_matching_cards


def _list_card_choices(turn: Turn) -> list[Choice]:
    return [
        Choice(card.serial, card.serial, _describe_card(turn, card))
        for card in turn.conversation.cards
    ]


def _get_only_card(turn: Turn) -> str | None:
    cards = turn.conversation.cards
    return cards[0].serial if len(cards) == 1 else None


def _parse_card(turn: Turn, text: str) -> ParsedAnswer:
    serial = reading.parse_card_serial(text)
    known = {card.serial.upper(): card.serial for card in turn.conversation.cards}
    return {"card": known[serial.upper()]} if serial and serial.upper() in known else None


def _build_card_question(prompt: str) -> AskStep:
    return AskStep(
        name="card",
        prompt=lambda turn: turn.translate(prompt),
        choices=_list_card_choices,
        infer_answer=_get_only_card,
        parse_text=_parse_card,
        looks_like_pin=looks_like_pin_not_serial,
        not_understood_key="not_understood.card",
    )


def _parse_serial(turn: Turn, text: str) -> ParsedAnswer:
    serial = reading.parse_card_serial(text)
    return None if serial is None else {"serial": serial}


def _begin_link(turn: Turn, text: str) -> None:
    """Take the serial from the opening text, for example "Link card AB-1234"."""
    serial = reading.parse_card_serial(text.rsplit(maxsplit=1)[-1]) if text.split() else None
    if serial is not None:
        turn.set_facts(serial=serial)


def _build_link_request(turn: Turn, pins: PinInput) -> LinkCard:
    return LinkCard(
        subscriber_id=turn.subscriber.id, card_serial=turn.facts["serial"], pin=pins.pin
    )


def _handle_linked(turn: Turn, card: Card) -> Next:
    turn.suggest_commands(turn.translate("link.done", card=card.serial), "cards", "menu")
    return "end"


def _begin_block(turn: Turn, text: str) -> None:
    """Take the reason from the opening text, for example "My card was stolen"."""
    reason = option_matching.find_mentioned_value(text, _PERMANENT_REASONS)
    if reason is not None:
        turn.set_facts(reason=reason)


def _render_block_confirmation(turn: Turn) -> str:
    key = (
        "block.confirm_permanent" if turn.facts["reason"] in _PERMANENT_REASONS else "block.confirm"
    )
    return turn.translate(key, card=turn.facts["card"])


def _build_block_request(turn: Turn) -> BlockCard:
    return BlockCard(
        subscriber_id=turn.subscriber.id,
        card_serial=turn.facts["card"],
        reason=turn.facts["reason"],
    )


def _handle_blocked(turn: Turn, card: Card) -> Next:
    if turn.facts["reason"] in _PERMANENT_REASONS:
        turn.suggest_commands(
            turn.translate("block.done_permanent", card=card.serial), "link", "menu"
        )
    else:
        turn.suggest_commands(turn.translate("block.done", card=card.serial), "unblock", "menu")
    return "end"


def _build_unblock_request(turn: Turn, pins: PinInput) -> UnblockCard:
    return UnblockCard(
        subscriber_id=turn.subscriber.id, card_serial=turn.facts["card"], pin=pins.pin
    )


def _handle_unblocked(turn: Turn, card: Card) -> Next:
    turn.suggest_commands(turn.translate("unblock.done", card=card.serial), "cards", "menu")
    return "end"


SCRIPTS: Final = (
    Script(
        command="cards",
        steps=(
            *SUBSCRIBER_STEPS,
            RequestStep(
                name="cards", build_request=_build_list_cards_request, on_success=_reply_with_cards
            ),
        ),
    ),
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
                prompt=lambda turn: turn.translate("link.pin", card=turn.facts["serial"]),
                build_request=_build_link_request,
                on_success=_handle_linked,
            ),
        ),
    ),
    Script(
        command="block",
        on_begin=_begin_block,
        steps=(
            *SUBSCRIBER_STEPS,
            # Includes blocked cards: a temporary block can still become permanent.
            RequestStep(
                name="cards",
                build_request=_build_list_cards_request,
                on_success=_build_card_filter(
                    (CardStatus.ACTIVE, CardStatus.BLOCKED), "block.none"
                ),
            ),
            _build_card_question("block.card"),
            AskStep(
                name="reason",
                prompt=lambda turn: turn.translate("block.reason", card=turn.facts["card"]),
                choices=lambda turn: [
                    Choice(
                        reason,
                        turn.translate(f"reason.{reason}"),
                        turn.translate(
                            "block.permanent" if reason in _PERMANENT_REASONS else "block.temporary"
                        ),
                    )
                    for reason in _BLOCK_REASONS
                ],
            ),
            ConfirmStep(name="confirmed", prompt=_render_block_confirmation),
            RequestStep(
                name="blocked", build_request=_build_block_request, on_success=_handle_blocked
            ),
        ),
    ),
    Script(
        command="unblock",
        steps=(
            *SUBSCRIBER_STEPS,
            RequestStep(
                name="cards",
                build_request=_build_list_cards_request,
                on_success=_build_card_filter((CardStatus.BLOCKED,), "unblock.none"),
            ),
            _build_card_question("unblock.card"),
            PinStep(
                name="unblocked",
                prompt=lambda turn: turn.translate("unblock.pin", card=turn.facts["card"]),
                build_request=_build_unblock_request,
                on_success=_handle_unblocked,
            ),
        ),
    ),
)
