"""What scripts share, above all the steps that identify the subscriber before anything is shown."""

import re
from collections.abc import Callable
from typing import Any, Final

from tapgate.messenger.conversation.steps import (
    CODE_PATTERN,
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
    GatewayRequest,
    SendOneTimeCode,
    VerifyOneTimeCode,
    client_request,
)
from tapgate.messenger.model import Command, RequestRejected, Subscriber
from tapgate.messenger.understanding.transfers import parse_phone
from tapgate_client.errors import Code
from tapgate_client.schemas.subscribers import SubscriberStatus

#: Error codes that a different amount may resolve.
AMOUNT_ERROR_CODES: Final = frozenset(
    {
        Code.INSUFFICIENT_FUNDS,
        Code.TRANSACTION_LIMIT_EXCEEDED,
        Code.CARD_LIMIT_EXCEEDED,
        Code.DAILY_LIMIT_EXCEEDED,
        Code.MONTHLY_LIMIT_EXCEEDED,
        Code.MAX_BALANCE_EXCEEDED,
        Code.VALIDATION_FAILED,
    }
)
_DIGIT_GAP_PATTERN: Final = re.compile(r"(?<=[0-9])[\s-]+(?=[0-9])")


def _parse_phone(turn: Turn, text: str) -> ParsedAnswer:
    phone = parse_phone(text, None)
    return None if phone is None else {"phone": phone}


def _parse_code(turn: Turn, text: str) -> ParsedAnswer:
    numbers = re.findall(r"[0-9]+", _DIGIT_GAP_PATTERN.sub("", text))
    if len(numbers) != 1 or not CODE_PATTERN.fullmatch(numbers[0]):
        return None
    return VerifyOneTimeCode(phone=turn.facts["phone"], code=numbers[0])


def _parse_code_option(turn: Turn, value: str) -> ParsedAnswer:
    """Go back to send a new code, or to ask for a different phone number."""
    turn.clear_facts("code_sent", *(["phone"] if value == "phone" else []))
    return {}


def _handle_code_checked(turn: Turn, is_correct: bool) -> Next:
    if not is_correct:
        turn.add_reply("code.wrong")
        return "back"
    turn.set_verified_phone(turn.facts["phone"])
    turn.add_reply("code.correct")
    return "on"


def _handle_code_rejected(turn: Turn, error: RequestRejected) -> Next | None:
    if error.code != Code.INVALID_OTP:
        return None
    turn.add_reply("code.expired")
    turn.clear_facts("phone", "code_sent")
    return "back"


#: For users whose phone number is unknown: they prove possession of one with a one-time code.
PHONE_STEPS: Final = (
    AskStep(
        name="phone",
        needs_unknown_phone=True,
        prompt=lambda turn: turn.translate("phone.ask"),
        parse_text=_parse_phone,
        not_understood_key="not_understood.phone",
    ),
    RequestStep(
        name="code_sent",
        needs_unknown_phone=True,
        build_request=lambda turn: SendOneTimeCode(phone=turn.facts["phone"]),
    ),
    AskStep(
        name="code",
        needs_unknown_phone=True,
        prompt=lambda turn: turn.translate("code.ask"),
        choices=lambda turn: [
            Choice("code", turn.translate("code.resend")),
            Choice("phone", turn.translate("code.other_phone")),
        ],
        parse_text=_parse_code,
        parse_option=_parse_code_option,
        looks_like_pin=lambda text: False,
        not_understood_key="not_understood.code",
        on_success=_handle_code_checked,
        on_rejection=_handle_code_rejected,
    ),
)


def _handle_subscriber(turn: Turn, found: Subscriber | None) -> Next:
    turn.update(subscriber=found)
    if found is None:
        turn.update(later=None)  # the reply would be the same
        return turn.finish("not_registered", "register", "help", yes="register")
    if found.status.upper() != SubscriberStatus.ACTIVE:
        return turn.finish("not_active", "person", "menu")
    return "on"


def _handle_pin_verified(turn: Turn, result: object) -> Next:
    turn.mark_trusted()
    return "on"


#: Asks for the PIN if the person is not trusted, which is the case after a number change.
TRUST_STEP: Final = PinStep(
    name="trust",
    is_needed=lambda turn: not turn.person.trusted,
    prompt=lambda turn: turn.translate("trust.ask"),
    build_request=lambda turn, pins: client_request(
        "subscribers.verify_pin", turn.subscriber.id, pin=pins.pin
    ),
    on_success=_handle_pin_verified,
)
#: For all wallet commands: identify the subscriber.
SUBSCRIBER_STEPS: Final = (
    *PHONE_STEPS,
    RequestStep(
        name="subscriber",
        build_request=lambda turn: FindSubscriber(phone=turn.phone),
        on_success=_handle_subscriber,
    ),
    TRUST_STEP,
)


def build_lookup_script(
    command: Command,
    build_request: Callable[[Turn], GatewayRequest],
    on_success: Callable[[Turn, Any], Next],
) -> Script:
    """Build the script for a command that only loads and shows subscriber data."""
    step = RequestStep(name=command, build_request=build_request, on_success=on_success)
    return Script(command=command, steps=(*SUBSCRIBER_STEPS, step))
