"""PIN reset with a one-time code, which the chat or support staff has sent.

The code and the new PIN are entered together and passed to the gateway in one request. Neither is
stored.
"""

import math
import re
from typing import Final

from tapgate.messenger import texts
from tapgate.messenger.card_requests import FindPinHolders, PinHolders
from tapgate.messenger.conversation.commands.account import get_invalid_fields
from tapgate.messenger.conversation.commands.common_steps import PHONE_STEPS
from tapgate.messenger.conversation.steps import (
    AskStep,
    ConfirmStep,
    Next,
    PinInput,
    PinStep,
    RequestStep,
    Script,
)
from tapgate.messenger.conversation.turn import Choice, Turn
from tapgate.messenger.gateway_requests import ClientRequest, client_request
from tapgate.messenger.model import RequestRejected
from tapgate.messenger.understanding import resolver
from tapgate.messenger.understanding.normalization import normalize_text
from tapgate.messenger.understanding.secret_detection import has_code
from tapgate.messenger.understanding.word_patterns import classify_small_talk
from tapgate_client.errors import Code

_MAX_NAME_LENGTH: Final = 20
#: After a code was sent, the next one can be sent a minute later.
_RESEND_SECONDS: Final = 60
_CHILD_PATTERN: Final = re.compile(r"\b(?:child|kid|son|daughter|pikin|enfant|fils|fille)s?\b")
_AGENT_PATTERN: Final = re.compile(r"\bagents?\b")


def _begin(turn: Turn, text: str) -> None:
    """Take the holder from the opening text, and note whether the person already has a code.

    A guessed intent requires confirmation, so that no code is sent by mistake.
    """
    normalized = normalize_text(text)
    if has_code(text):
        turn.set_facts(has_code="yes")
    elif (
        text
        and resolver.match_command(text) != "reset_pin"
        and classify_small_talk(text) != "forgotten_pin"
    ):
        turn.set_facts(guessed="yes")
    if _CHILD_PATTERN.search(normalized):
        turn.set_facts(meant="card")
    elif _AGENT_PATTERN.search(normalized):
        turn.set_facts(meant="agent")


def _store_holders(turn: Turn, holders: PinHolders) -> Next:
    if not turn.person.trusted:
        # The number may have a new owner, who also receives the code.
        return turn.finish("reset_pin.untrusted", "person", "menu", yes="person")
    turn.update(subscriber=holders.subscriber, cards=tuple(holders.child_cards))
    if holders.agent is not None:
        name = texts.truncate(holders.agent.name, _MAX_NAME_LENGTH)
        turn.set_facts(agent_id=holders.agent.id, agent_name=name)
    if not _list_holders(turn):
        return turn.finish("not_registered", "register", "help", yes="register")
    return "on"


def _list_holders(turn: Turn) -> list[Choice]:
    """Return a choice for each PIN, or only for those that the person has mentioned."""
    choices = []
    if turn.conversation.subscriber is not None:
        choices.append(Choice("subscriber", turn.translate("reset_pin.own")))
    if "agent_id" in turn.facts:
        title = turn.translate("reset_pin.agent")
        choices.append(Choice("agent", title, turn.facts["agent_name"]))
    for card in turn.conversation.cards:
        name = texts.truncate(card.holder_name or "", _MAX_NAME_LENGTH)
        choices.append(Choice(f"card:{card.serial}", name or card.serial, card.serial))
    meant = turn.facts.get("meant", "")
    return [choice for choice in choices if choice.value.partition(":")[0] == meant] or choices


def _get_only_holder(turn: Turn) -> str | None:
    choices = _list_holders(turn)
    return choices[0].value if len(choices) == 1 else None


def _build_request(turn: Turn, operation: str, **fields: str) -> ClientRequest:
    """Build the request for an operation on the PIN holder. A card's ID is its serial."""
    kind, _, serial = turn.facts["holder"].partition(":")
    match kind:
        case "subscriber":
            return client_request(f"subscribers.{operation}", turn.subscriber.id, **fields)
        case "agent":
            return client_request(f"agents.{operation}", turn.facts["agent_id"], **fields)
        case _:
            return client_request(f"cards.{operation}", serial, **fields)


def _handle_code_rejected(turn: Turn, error: RequestRejected) -> Next | None:
    if error.code != Code.RATE_LIMITED:
        return None
    wait = error.details.get("retry_after")
    seconds = wait if isinstance(wait, int) else _RESEND_SECONDS + 1
    if error.details.get("limit") == "wrong_codes":
        hours = math.ceil(seconds / 3600)
        return turn.finish("reset_pin.too_many_wrong", "person", "menu", hours=hours)
    if seconds > _RESEND_SECONDS:
        minutes = math.ceil(seconds / 60)
        return turn.finish("reset_pin.too_many_codes", "person", "menu", minutes=minutes)
    turn.set_facts(has_code="yes")
    return "on"


def _render_prompt(turn: Turn) -> str:
    kind, _, serial = turn.facts["holder"].partition(":")
    name = next(
        (card.holder_name for card in turn.conversation.cards if card.serial == serial), None
    )
    holder = turn.translate(f"reset_pin.for.{kind}", name=name or serial)
    is_new = "has_code" not in turn.facts
    return turn.translate("reset_pin.ask" if is_new else "reset_pin.ask_again", holder=holder)


def _build_reset_request(turn: Turn, pins: PinInput) -> ClientRequest:
    assert pins.code is not None, "the form and the text require a code"
    return _build_request(turn, "reset_pin", otp=pins.code, new_pin=pins.new_pin)


def _handle_reset_rejected(turn: Turn, error: RequestRejected) -> Next | None:
    if "new_pin" in get_invalid_fields(error):
        turn.add_reply("pin.weak")
        return "back"
    if error.code != Code.INVALID_OTP:
        return None
    attempts_left = error.details.get("attempts_remaining")
    if not attempts_left:
        return turn.finish("reset_pin.code_invalid", "reset_pin", "person", "menu", yes="reset_pin")
    turn.add_reply("reset_pin.wrong_code", left=attempts_left)
    return "back"


SCRIPTS: Final = (
    Script(
        command="reset_pin",
        on_begin=_begin,
        steps=(
            ConfirmStep(
                name="confirmed",
                is_needed=lambda turn: "guessed" in turn.facts,
                prompt=lambda turn: turn.translate("reset_pin.confirm"),
            ),
            *PHONE_STEPS,
            RequestStep(
                name="holders",
                build_request=lambda turn: FindPinHolders(phone=turn.phone),
                on_success=_store_holders,
            ),
            AskStep(
                name="holder",
                prompt=lambda turn: turn.translate("reset_pin.which"),
                choices=_list_holders,
                infer_answer=_get_only_holder,
            ),
            RequestStep(
                name="reset_code",
                is_needed=lambda turn: "has_code" not in turn.facts,
                build_request=lambda turn: _build_request(turn, "request_pin_reset"),
                on_rejection=_handle_code_rejected,
            ),
            PinStep(
                name="reset",
                form="reset_pin",
                prompt=_render_prompt,
                build_request=_build_reset_request,
                on_success=lambda turn, result: turn.finish("reset_pin.done", "menu"),
                on_rejection=_handle_reset_rejected,
                uncertain_key="reset_pin.uncertain",
                not_understood_key="not_understood.reset_pin",
            ),
        ),
    ),
)
