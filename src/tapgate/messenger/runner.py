"""Execution of one conversation turn: engine passes, gateway requests, and saving the results.

A turn runs under the conversation's lease. Until it is saved, it changes the stored conversation
only to record that a transfer is about to be sent. An interrupted turn can therefore run again: the
transfer's idempotency key is the operation ID, which was stored before the PIN was requested, and
a text to support staff has its message's ID.
"""

import functools
import uuid
from typing import Final, Literal, NamedTuple

import asyncpg
import msgspec

from tapgate.messenger import (
    conversation_store,
    kept_images,
    one_time_codes,
    people,
    transcript,
    turn_reports,
)
from tapgate.messenger.conversation import engine
from tapgate.messenger.conversation.state import Conversation
from tapgate.messenger.conversation_store import LeasedConversation
from tapgate.messenger.flows import forms
from tapgate.messenger.flows.forms import Form
from tapgate.messenger.gateway_requests import (
    AddKeptDocument,
    ContactSupport,
    CountKeptImages,
    FindLanguage,
    GatewayRequest,
    SendOneTimeCode,
    VerifyOneTimeCode,
)
from tapgate.messenger.model import (
    Event,
    FormSubmitted,
    GatewayUnreachable,
    ImageReceived,
    NumberChanged,
    OutgoingMessage,
    Person,
    PinForm,
    PinRequest,
    Reply,
    RequestOutcome,
    RequestSucceeded,
    TextMessage,
    TextReply,
    TurnContext,
    UnsupportedMessage,
)
from tapgate.messenger.outbox import outbox_messages as outbox
from tapgate.messenger.services import Services
from tapgate.messenger.transcript import Transcript
from tapgate.messenger.turn_reports import TurnSummary
from tapgate.messenger.understanding.secret_detection import may_contain_pin, remove_tap_urls
from tapgate_client.schemas.chat import ChatChannel

Channel = Literal["webhook", "bridge"]
_CHANNELS: Final[dict[Channel, ChatChannel]] = {
    "webhook": ChatChannel.MESSAGING,
    "bridge": ChatChannel.BRIDGE,
}

_LETTERS: Final = str.maketrans("0123456789", "ghijklmnop")
#: A turn needs only a few gateway requests; more indicate a loop.
_MAX_REQUESTS_PER_TURN = 12
#: Short, because the provider's form client shows its own error after 10 seconds.
FORM_LEASE_TIMEOUT_SECONDS = 4.0


class TurnResult(NamedTuple):
    person_before: Person
    person: Person
    conversation: Conversation
    replies: tuple[Reply, ...]
    #: The gateway was unreachable at least once, and a reply says so.
    has_failed: bool
    transcript: Transcript
    #: For the gateway; None if the turn is not reported.
    summary: TurnSummary | None


class FormResult(NamedTuple):
    """Form submission outcome; an unfinished form is shown again with `text` as the error."""

    finished: bool
    text: str


async def handle_bridge_message(
    services: Services, phone: str, event: TextMessage | ImageReceived | UnsupportedMessage
) -> TurnResult:
    """Run a turn for the compatibility endpoint; the replies are returned, not enqueued."""
    now = services.clock()
    async with conversation_store.acquire(services.database, phone, now) as leased:
        turn = await run_turn(services, leased, event, "bridge")
        async with services.database.transaction() as tx:
            await _save_state(tx, services, leased, turn)
    return turn


async def submit_form(
    services: Services, form: Form, submission: FormSubmitted
) -> FormResult | None:
    """Run a turn for a submitted form; return None if the form can no longer be used."""
    now = services.clock()
    async with conversation_store.acquire(
        services.database, form.address, now, timeout_seconds=FORM_LEASE_TIMEOUT_SECONDS
    ) as leased:
        if (
            leased.conversation.operation != form.operation
            or await forms.find(services.database, form.token_hash, now) is None
        ):
            return None
        turn = await run_turn(services, leased, submission, "webhook")
        text = next((reply.text for reply in turn.replies if isinstance(reply, TextReply)), "")
        finished = turn.conversation.operation != form.operation
        async with services.database.transaction() as tx:
            await _save_state(tx, services, leased, turn)
            if finished:
                await forms.mark_used(tx, form.token_hash, now)
                await _enqueue_replies(tx, services, turn)
    services.wake_sender()
    return FormResult(finished, text)


async def run_turn(
    services: Services,
    leased: LeasedConversation,
    event: Event,
    channel: Channel,
    *,
    message_id: str | None = None,
) -> TurnResult:
    """Run the engine until its output contains no gateway request.

    The conversation is saved only to record that a transfer is about to be sent. The caller saves
    the result. `message_id` stays the same if an interrupted turn runs again.
    """
    before = await people.load_person(services.database, leased.address)
    person = before
    if not isinstance(event, NumberChanged):
        person = await _adopt_language(services, before)
    conversation, replies, has_failed = leased.conversation, list[Reply](), False
    outcome: RequestOutcome | None = None
    earlier = transcript.open_sealed(services.vault, leased.address, leased.transcript)
    event = incoming = await _prepare_event(services, person, conversation, event)
    for _ in range(_MAX_REQUESTS_PER_TURN):
        output = engine.process_event(
            person, conversation, event, _build_context(services, channel)
        )
        person, conversation = output.person, output.conversation
        replies += output.replies
        if output.kept_image is not None:
            await kept_images.keep(services, leased.address, output.kept_image)
        if output.deletes_kept_images:
            await kept_images.delete_all(services, leased.address)
        if output.request is None:
            lines = transcript.add_turn(earlier, leased.conversation, incoming, replies)
            summary = turn_reports.summarize(
                _CHANNELS[channel], incoming, output, outcome, len(replies)
            )
            return TurnResult(
                before, person, conversation, tuple(replies), has_failed, lines, summary
            )
        if output.request.moves_money:
            # If the response is lost, the conversation must not say that no money was sent.
            await conversation_store.save(
                services.database, leased, conversation, now=services.clock()
            )
        event = outcome = await _perform(services, person, output.request, earlier, message_id)
        has_failed = has_failed or isinstance(outcome, GatewayUnreachable)
    raise RuntimeError(f"the turn did not end after {_MAX_REQUESTS_PER_TURN} gateway requests")


async def _adopt_language(services: Services, person: Person) -> Person:
    """Return a person without a language with the language that the gateway stores, if any.

    A person who is not trusted may not own the subscriber's account.
    """
    if person.language is not None or person.phone is None or not person.trusted:
        return person
    match await services.perform_request(FindLanguage(phone=person.phone)):
        case RequestSucceeded(result=str(language)):
            return msgspec.structs.replace(person, language=language)
    return person


async def _perform(
    services: Services,
    person: Person,
    request: GatewayRequest,
    earlier: Transcript,
    message_id: str | None,
) -> RequestOutcome:
    """Perform the engine's request: one-time codes here, all others at the gateway."""
    match request:
        case SendOneTimeCode(phone=phone):
            await one_time_codes.send_code(services, person, phone)
            return RequestSucceeded(result=True)
        case CountKeptImages():
            return RequestSucceeded(result=await kept_images.count(services, person.address))
        case AddKeptDocument():
            return await kept_images.add_document(services, person.address, request)
        case VerifyOneTimeCode(phone=phone, code=code):
            return await one_time_codes.verify_code(services, person, phone, code)
        case ContactSupport(append_only=append_only):
            request = msgspec.structs.replace(
                request, transcript=() if append_only else earlier, message_id=message_id
            )
    return await services.perform_request(request)


async def save_turn(
    tx: asyncpg.Connection,
    services: Services,
    leased: LeasedConversation,
    turn: TurnResult,
    *,
    heard_until: int,
) -> None:
    """Save a webhook turn's results and enqueue its replies."""
    await _save_state(tx, services, leased, turn, heard_until=heard_until)
    await _enqueue_replies(tx, services, turn)


async def _enqueue_replies(tx: asyncpg.Connection, services: Services, turn: TurnResult) -> None:
    for reply in turn.replies:
        message: OutgoingMessage
        if isinstance(reply, PinRequest):
            message = await _issue_form(tx, services, turn.person, reply)
        else:
            message = reply
        await outbox.enqueue(tx, services, turn.person.address, message)


async def _save_state(
    tx: asyncpg.Connection,
    services: Services,
    leased: LeasedConversation,
    turn: TurnResult,
    *,
    heard_until: int = 0,
) -> None:
    now = services.clock()
    await conversation_store.save(
        tx,
        leased,
        turn.conversation,
        now=now,
        heard_until=heard_until,
        transcript=transcript.seal(services.vault, leased.address, turn.transcript),
    )
    await people.save_person(tx, turn.person_before, turn.person, now)
    if turn.summary is not None:
        await turn_reports.enqueue(tx, services, turn.person, turn.summary)


async def _issue_form(
    tx: asyncpg.Connection, services: Services, person: Person, request: PinRequest
) -> PinForm:
    token = await forms.issue(
        tx,
        address=person.address,
        pin_request=request,
        language=person.language or "en",
        now=services.clock(),
    )
    return PinForm(text=request.text, button=request.button, form=request.form, token=token)


async def _prepare_event(
    services: Services, person: Person, conversation: Conversation, event: Event
) -> Event:
    """Add what the engine needs to know about the event, and delete a former owner's images."""
    if isinstance(event, NumberChanged):
        await kept_images.delete_all(services, person.address)
    if isinstance(event, ImageReceived):
        count = await kept_images.count(services, person.address)
        return msgspec.structs.replace(event, kept_count=count)
    return await _add_intent(services, person, conversation, event)


async def _add_intent(
    services: Services, person: Person, conversation: Conversation, event: Event
) -> Event:
    """Add the resolved intent to a text message, unless the text may be the requested PIN."""
    if not isinstance(event, TextMessage) or event.text is None:
        return event
    if conversation.is_awaiting_pin and may_contain_pin(event.text):
        return event
    # The proof in a link must not reach a language model.
    intent = await services.resolve_intent(remove_tap_urls(event.text), person.language)
    return msgspec.structs.replace(event, intent=intent)


def _digest(services: Services, text: str) -> str:
    """Return a keyed digest without digits, so that it cannot be mistaken for a PIN."""
    return (
        services.vault.keyed_hash("messenger.repeated_pin", text.encode()).hex().translate(_LETTERS)
    )


def _build_context(services: Services, channel: Channel) -> TurnContext:
    settings = services.settings
    if channel == "bridge":
        pin_entry_mode: Literal["form", "text", "none"] = "text"
    elif services.flow_key is not None:
        pin_entry_mode = "form"
    else:
        pin_entry_mode = "text" if settings.messenger_text_pin else "none"
    return TurnContext(
        now=services.clock().astimezone(settings.timezone),
        new_operation_id=str(uuid.uuid4()),
        currency=settings.currency,
        pin_entry_mode=pin_entry_mode,
        digest=functools.partial(_digest, services),
        can_send_documents=channel == "webhook",
        verify_page_url=f"{settings.public_url}/verify",
        support_hours=settings.support_hours,
        support_contact=settings.support_contact,
    )
