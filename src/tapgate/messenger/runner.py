"""One turn of a conversation: the engine steps, the gateway is asked, and all that follows is
written together.

Whoever runs a turn holds the conversation's lease. A turn that is cut off has written nothing but
that money is about to move, and may run again: money moves under the operation's id, which was
stored before a PIN was asked for.
"""

import uuid
from datetime import timedelta
from typing import Literal, NamedTuple

import asyncpg
import msgspec

from tapgate.messenger import codes, conversations, people, rates
from tapgate.messenger.conversation import engine
from tapgate.messenger.conversation.state import Conversation
from tapgate.messenger.conversations import Held
from tapgate.messenger.flows import forms
from tapgate.messenger.flows.forms import Form
from tapgate.messenger.model.calls import AskForPerson, Call, CheckCode, SendCode, SendMoney
from tapgate.messenger.model.events import (
    Answered,
    Entered,
    Event,
    NotUnderstood,
    Pictured,
    Refused,
    Said,
    Unreachable,
)
from tapgate.messenger.model.people import Person, Setting
from tapgate.messenger.model.replies import AskPin, Outgoing, PinForm, Reply, Say
from tapgate.messenger.services import Services
from tapgate.messenger.understanding.secrets_in_text import may_hold_a_pin

Place = Literal["webhook", "bridge"]

#: One message asks the gateway for a few things at most; more is a circle.
_MOST_STEPS = 12
#: The provider shows a failure of its own after ten seconds.
_FORM_PATIENCE_SECONDS = 4.0
#: Support requests of one person that reach the gateway, each with an audit entry.
_MAX_SUPPORT_REQUESTS = 3
_SUPPORT_WINDOW = timedelta(hours=1)


class Turn(NamedTuple):
    before: Person
    person: Person
    conversation: Conversation
    replies: tuple[Reply, ...]
    #: The gateway could not be reached, and the person was told so.
    failed: bool


class Talk(NamedTuple):
    replies: tuple[Reply, ...]
    failed: bool


class Entry(NamedTuple):
    """What became of a form. Not finished: it is shown again, with the text."""

    finished: bool
    text: str


async def converse(services: Services, phone: str, event: Said | Pictured | NotUnderstood) -> Talk:
    """Answered at once, on the compatibility endpoint."""
    now = services.clock()
    async with conversations.hold(services.database, phone, now) as held:
        turn = await take_turn(services, held, event, "bridge")
        async with services.database.transaction() as tx:
            await _write(tx, services, held, turn)
    return Talk(turn.replies, turn.failed)


async def enter(services: Services, form: Form, entered: Entered) -> Entry | None:
    """What was entered in a form; None when it is no longer wanted."""
    now = services.clock()
    async with conversations.hold(
        services.database, form.address, now, patience=_FORM_PATIENCE_SECONDS
    ) as held:
        if held.conversation.operation != form.operation or not await forms.is_open(
            services.database, form.token_hash, now
        ):
            return None
        turn = await take_turn(services, held, entered, "webhook")
        text = _shown(turn.replies)
        finished = turn.conversation.operation != form.operation
        async with services.database.transaction() as tx:
            await _write(tx, services, held, turn)
            if finished:
                await forms.use(tx, form.token_hash, now)
                await send(tx, services, turn)
    services.wake_sender()
    return Entry(finished, text)


async def take_turn(services: Services, held: Held, event: Event, place: Place) -> Turn:
    """Steps until the engine asks for nothing more. Writes only that money is about to move."""
    before = person = await people.meet(services.database, held.address)
    conversation, replies, failed = held.conversation, list[Reply](), False
    event = await _with_meaning(services, person, conversation, event)
    for _ in range(_MOST_STEPS):
        step = engine.step(person, conversation, event, _setting(services, place))
        conversation = step.conversation
        replies += step.replies
        for effect in step.effects:
            person = people.changed(person, effect)
        if step.call is None:
            return Turn(before, person, conversation, tuple(replies), failed)
        if isinstance(step.call, SendMoney):
            # Should the answer never be heard here, nobody is told that nothing was paid.
            await conversations.save(services.database, held, conversation, now=services.clock())
        event = await _perform(services, person, step.call)
        failed = failed or isinstance(event, Unreachable)
    raise RuntimeError("a conversation does not come to rest")


async def _perform(
    services: Services, person: Person, call: Call
) -> Answered | Refused | Unreachable:
    if isinstance(call, SendCode | CheckCode):
        return await codes.perform(services, person, call)
    if isinstance(call, AskForPerson) and not await _may_ask_for_person(services, person):
        return Answered(result=True)  # the open request already says it
    return await services.gateway.perform(call)


async def _may_ask_for_person(services: Services, person: Person) -> bool:
    wait = await rates.take(
        services.database,
        f"person:{person.address}",
        most=_MAX_SUPPORT_REQUESTS,
        now=services.clock(),
        within=_SUPPORT_WINDOW,
    )
    return wait is None


async def write(
    tx: asyncpg.Connection, services: Services, held: Held, turn: Turn, *, heard_until: int
) -> None:
    """Everything that a message on the webhook led to."""
    await _write(tx, services, held, turn, heard_until=heard_until)
    await send(tx, services, turn)


async def send(tx: asyncpg.Connection, services: Services, turn: Turn) -> None:
    for reply in turn.replies:
        message = await _outgoing(tx, services, turn.person, reply)
        await services.put(tx, turn.person.address, message)


async def _write(
    tx: asyncpg.Connection, services: Services, held: Held, turn: Turn, *, heard_until: int = 0
) -> None:
    now = services.clock()
    await conversations.save(tx, held, turn.conversation, now=now, heard_until=heard_until)
    await people.remember(tx, turn.before, turn.person, now)


async def _outgoing(
    tx: asyncpg.Connection, services: Services, person: Person, reply: Reply
) -> Outgoing:
    if not isinstance(reply, AskPin):
        return reply
    token = await forms.issue(
        tx,
        address=person.address,
        ask=reply,
        language=person.language or "en",
        now=services.clock(),
    )
    return PinForm(text=reply.text, button=reply.button, form=reply.form, token=token)


async def _with_meaning(
    services: Services, person: Person, conversation: Conversation, event: Event
) -> Event:
    """What may be a PIN is nobody's to interpret."""
    if not isinstance(event, Said) or event.text is None:
        return event
    if conversation.stage == "await_pin" and may_hold_a_pin(event.text):
        return event
    meaning = await services.understand(event.text, person.language)
    return msgspec.structs.replace(event, meaning=meaning)


def _setting(services: Services, place: Place) -> Setting:
    settings = services.settings
    if place == "bridge":
        pins: Literal["form", "text", "none"] = "text"
    elif services.flow_key is not None:
        pins = "form"
    else:
        pins = "text" if settings.messenger_text_pin else "none"
    return Setting(
        now=services.clock().astimezone(settings.timezone),
        fresh=str(uuid.uuid4()),
        currency=settings.currency,
        pins=pins,
        documents=place == "webhook",
    )


def _shown(replies: tuple[Reply, ...]) -> str:
    return next((reply.text for reply in replies if isinstance(reply, Say)), "")
