"""A subscriber's cards: which there are, a new one, one that must stop or may work again."""

from collections.abc import Callable
from typing import Final

from tapgate.messenger.conversation import labels, showing, texts
from tapgate.messenger.conversation.commands.who import SUBSCRIBER
from tapgate.messenger.conversation.pieces import (
    Ask,
    Confirm,
    Fetch,
    Go,
    Pin,
    Pins,
    Script,
    Taken,
    is_pin_no_serial,
)
from tapgate.messenger.conversation.scene import Choice, Scene
from tapgate.messenger.model.calls import BlockCard, Card, LinkCard, ReadCards, UnblockCard
from tapgate.messenger.understanding import reading

_SHOWN: Final = 12
_NAME_SHOWN: Final = 24
_FINAL_REASONS: Final = ("lost", "stolen", "damaged")
_REASONS: Final = (*_FINAL_REASONS, "customer_request")


def _read_cards(scene: Scene) -> ReadCards:
    return ReadCards(subscriber_id=scene.subscriber.id)


def _tell_cards(scene: Scene, cards: list[Card]) -> Go:
    if not cards:
        scene.suggest(scene.text("cards.none"), "link", "menu")
        return "end"
    lines = [f"• {card.serial} · {_about(scene, card)}" for card in cards[:_SHOWN]]
    scene.suggest("\n".join([scene.text("cards"), *lines]), "link", "block", "menu")
    return "end"


def _about(scene: Scene, card: Card) -> str:
    key = f"card.{card.status}"
    parts = [scene.text(key) if texts.has(key) else card.status.lower()]
    if card.type == "CHILD":
        parts.append(scene.text("card.child"))
        parts.extend([showing.cut(card.holder_name, _NAME_SHOWN)] if card.holder_name else [])
    return ", ".join(parts)


def _only(statuses: tuple[str, ...], none: str) -> Callable[[Scene, list[Card]], Go]:
    """Keeps the cards to choose from."""

    def told(scene: Scene, cards: list[Card]) -> Go:
        fitting = tuple(card for card in cards if card.status in statuses)
        scene.change(cards=fitting)
        if fitting:
            return "on"
        scene.suggest(scene.text(none), "cards", "menu")
        return "end"

    return told


def _choices(scene: Scene) -> list[Choice]:
    return [
        Choice(card.serial, card.serial, _about(scene, card)) for card in scene.conversation.cards
    ]


def _only_one(scene: Scene) -> str | None:
    cards = scene.conversation.cards
    return cards[0].serial if len(cards) == 1 else None


def _read_card(scene: Scene, text: str) -> Taken:
    serial = reading.card_serial(text)
    known = {card.serial.upper(): card.serial for card in scene.conversation.cards}
    return {"card": known[serial.upper()]} if serial and serial.upper() in known else None


def _which_card(prompt: str) -> Ask:
    return Ask(
        name="card",
        prompt=lambda scene: scene.text(prompt),
        choices=_choices,
        given=_only_one,
        read=_read_card,
        sounds_like_pin=is_pin_no_serial,
        unread="unread.card",
    )


def _read_serial(scene: Scene, text: str) -> Taken:
    serial = reading.card_serial(text)
    return None if serial is None else {"serial": serial}


def _begin_link(scene: Scene, said: str) -> None:
    """ "Link card AB-1234" has said it all."""
    serial = reading.card_serial(said.rsplit(maxsplit=1)[-1]) if said.split() else None
    if serial is not None:
        scene.know(serial=serial)


def _link(scene: Scene, pins: Pins) -> LinkCard:
    return LinkCard(
        subscriber_id=scene.subscriber.id, card_serial=scene.facts["serial"], pin=pins.pin
    )


def _linked(scene: Scene, card: Card) -> Go:
    scene.suggest(scene.text("link.done", card=card.serial), "cards", "menu")
    return "end"


def _begin_block(scene: Scene, said: str) -> None:
    """ "My card was stolen" has said what happened."""
    reason = labels.mentioned(said, _FINAL_REASONS)
    if reason is not None:
        scene.know(reason=reason)


def _confirm_block(scene: Scene) -> str:
    key = "block.confirm_final" if scene.facts["reason"] in _FINAL_REASONS else "block.confirm"
    return scene.text(key, card=scene.facts["card"])


def _block(scene: Scene) -> BlockCard:
    return BlockCard(
        subscriber_id=scene.subscriber.id,
        card_serial=scene.facts["card"],
        reason=scene.facts["reason"],
    )


def _blocked(scene: Scene, card: Card) -> Go:
    if scene.facts["reason"] in _FINAL_REASONS:
        scene.suggest(scene.text("block.done_final", card=card.serial), "link", "menu")
    else:
        scene.suggest(scene.text("block.done", card=card.serial), "unblock", "menu")
    return "end"


def _unblock(scene: Scene, pins: Pins) -> UnblockCard:
    return UnblockCard(
        subscriber_id=scene.subscriber.id, card_serial=scene.facts["card"], pin=pins.pin
    )


def _unblocked(scene: Scene, card: Card) -> Go:
    scene.suggest(scene.text("unblock.done", card=card.serial), "cards", "menu")
    return "end"


SCRIPTS: Final = (
    Script(
        command="cards",
        pieces=(*SUBSCRIBER, Fetch(name="cards", call=_read_cards, told=_tell_cards)),
    ),
    Script(
        command="link",
        begin=_begin_link,
        pieces=(
            *SUBSCRIBER,
            Ask(
                name="serial",
                prompt=lambda scene: scene.text("link.serial"),
                read=_read_serial,
                sounds_like_pin=is_pin_no_serial,
                unread="unread.serial",
            ),
            Pin(
                name="linked",
                prompt=lambda scene: scene.text("link.pin", card=scene.facts["serial"]),
                call=_link,
                told=_linked,
            ),
        ),
    ),
    Script(
        command="block",
        begin=_begin_block,
        pieces=(
            *SUBSCRIBER,
            # A blocked card may still turn out to be gone for good.
            Fetch(name="cards", call=_read_cards, told=_only(("ACTIVE", "BLOCKED"), "block.none")),
            _which_card("block.card"),
            Ask(
                name="reason",
                prompt=lambda scene: scene.text("block.reason", card=scene.facts["card"]),
                choices=lambda scene: [
                    Choice(
                        reason,
                        scene.text(f"reason.{reason}"),
                        scene.text("final" if reason in _FINAL_REASONS else "not_final"),
                    )
                    for reason in _REASONS
                ],
            ),
            Confirm(name="confirmed", prompt=_confirm_block),
            Fetch(name="blocked", call=_block, told=_blocked),
        ),
    ),
    Script(
        command="unblock",
        pieces=(
            *SUBSCRIBER,
            Fetch(name="cards", call=_read_cards, told=_only(("BLOCKED",), "unblock.none")),
            _which_card("unblock.card"),
            Pin(
                name="unblocked",
                prompt=lambda scene: scene.text("unblock.pin", card=scene.facts["card"]),
                call=_unblock,
                told=_unblocked,
            ),
        ),
    ),
)
