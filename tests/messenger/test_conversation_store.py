"""Stored conversations and people, and the form in which message content is stored."""

import asyncio
from datetime import timedelta

import msgspec
import pytest

from builders.auth import FakeClock
from cases import each
from tapgate.messenger import conversation_store, people
from tapgate.messenger.conversation.state import Conversation
from tapgate.messenger.conversation_store import LeasedConversation, LeaseLostError
from tapgate.messenger.model import (
    Content,
    FormClosed,
    ImageFile,
    InlineImage,
    NumberChanged,
    OptionChosen,
    Person,
    Recipient,
    TextContent,
    UnsupportedMessage,
)
from tapgate.runtime.store.database import Database

PHONE = "+23276000001"


async def save_conversation(
    database: Database, held: LeasedConversation, conversation: Conversation, clock: FakeClock
) -> None:
    async with database.transaction() as tx:
        await conversation_store.save(tx, held, conversation, now=clock())


async def test_saved_conversation_is_restored_until_it_expires(database: Database) -> None:
    clock = FakeClock()
    paying = Conversation(stage="await_pin", command="send", operation="op-1", question=7)
    async with conversation_store.acquire(database, PHONE, clock()) as held:
        assert held.conversation == Conversation()
        await save_conversation(database, held, paying, clock)
    assert await conversation_store.count_active(database, clock()) == 1
    clock.advance(minutes=4, seconds=59)
    async with conversation_store.acquire(database, PHONE, clock()) as held:
        assert held.conversation == paying
    clock.advance(seconds=1)
    assert await conversation_store.count_active(database, clock()) == 0
    async with conversation_store.acquire(database, PHONE, clock()) as held:
        # The question number is kept, so that options of earlier questions stay expired.
        # `lapsed` is set because a payment was in progress.
        assert held.conversation == Conversation(question=7, lapsed=True)


async def test_conversation_without_a_pending_payment_expires_silently(database: Database) -> None:
    clock = FakeClock()
    async with conversation_store.acquire(database, PHONE, clock()) as held:
        await save_conversation(
            database, held, Conversation(stage="collecting", command="send"), clock
        )
    clock.advance(minutes=6)
    async with conversation_store.acquire(database, PHONE, clock()) as held:
        assert held.conversation.lapsed is False


async def test_unreadable_state_starts_a_new_conversation(database: Database) -> None:
    clock = FakeClock()
    async with conversation_store.acquire(database, PHONE, clock()) as held:
        await save_conversation(database, held, Conversation(), clock)
    await database.execute("UPDATE messenger.conversations SET state = $1", {"stage": "dancing"})
    async with conversation_store.acquire(database, PHONE, clock()) as held:
        assert held.conversation == Conversation(lapsed=True)


async def test_lease_is_exclusive(database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    # Long enough that no lease expires on a slow machine.
    monkeypatch.setattr(conversation_store, "LEASE_DURATION", timedelta(minutes=5))
    clock, active, max_active = FakeClock(), 0, 0

    async def increment() -> None:
        nonlocal active, max_active
        async with conversation_store.acquire(database, PHONE, clock(), timeout_seconds=60) as held:
            active += 1
            max_active = max(max_active, active)
            count = held.conversation.question
            await asyncio.sleep(0.002)
            await save_conversation(database, held, Conversation(question=count + 1), clock)
            active -= 1

    await asyncio.gather(*(increment() for _ in range(25)))
    assert max_active == 1
    async with conversation_store.acquire(database, PHONE, clock()) as held:
        assert held.conversation.question == 25


async def test_expired_lease_is_taken_over_and_its_former_holder_cannot_save(
    database: Database,
) -> None:
    clock = FakeClock()
    with pytest.raises(LeaseLostError):
        async with conversation_store.acquire(database, PHONE, clock()) as former:
            await database.execute(
                "UPDATE messenger.conversations SET leased_until = now() - interval '1 second'"
            )
            async with conversation_store.acquire(database, PHONE, clock()) as successor:
                await save_conversation(database, successor, Conversation(question=1), clock)
            await save_conversation(database, former, Conversation(question=2), clock)
    async with conversation_store.acquire(database, PHONE, clock()) as held:
        assert held.conversation.question == 1


async def test_exception_releases_the_lease(database: Database) -> None:
    clock = FakeClock()
    with pytest.raises(ZeroDivisionError):
        async with conversation_store.acquire(database, PHONE, clock()):
            raise ZeroDivisionError
    assert await database.fetchval("SELECT lease FROM messenger.conversations") is None


async def test_conversation_that_was_never_saved_leaves_no_row(database: Database) -> None:
    now = FakeClock()()
    count = "SELECT count(*) FROM messenger.conversations"
    async with conversation_store.acquire(database, "+23276000009", now):
        assert await database.fetchval(count) == 1
    assert await database.fetchval(count) == 0
    async with conversation_store.acquire(database, "+23276000009", now) as held:
        await conversation_store.save(database, held, held.conversation, now=now)
    assert await database.fetchval(count) == 1


MARY = Recipient(name="Mary K.", payee="CARD-1")
JOHN = Recipient(name="John S.", payee="CARD-2")


async def reload_person(database: Database, address: str, **fields: object) -> Person:
    """Save a person's changed fields and load the person again."""
    before = await people.load_person(database, address)
    async with database.transaction() as tx:
        after = msgspec.structs.replace(before, **fields)
        await people.save_person(tx, before, after, FakeClock()())
    return await people.load_person(database, address)


async def test_unknown_person_is_derived_from_the_address_and_not_stored(
    database: Database,
) -> None:
    assert await people.load_person(database, PHONE) == Person(address=PHONE, phone=PHONE)
    assert await people.load_person(database, "user:ada") == Person(address="user:ada", phone=None)
    assert await database.fetchval("SELECT count(*) FROM messenger.people") == 0


async def test_language_and_trust_are_stored(database: Database) -> None:
    person = await reload_person(database, PHONE, language="fr", trusted=False)
    assert (person.language, person.trusted) == ("fr", False)
    person = await reload_person(database, PHONE, trusted=True)
    assert (person.language, person.trusted) == ("fr", True)


async def test_verified_phone_belongs_only_to_the_person_who_verified_it(
    database: Database,
) -> None:
    person = await reload_person(database, "user:ada", phone=PHONE)
    assert person.phone == PHONE
    assert (await people.load_person(database, "user:eve")).phone is None


async def test_recipients_are_saved_renamed_and_removed(database: Database) -> None:
    renamed = Recipient(name="Mary L.", payee=MARY.payee)
    await reload_person(database, PHONE, recipients=(MARY, JOHN))
    person = await reload_person(database, PHONE, recipients=(JOHN, renamed))
    assert person.recipients == (JOHN, renamed)
    person = await reload_person(database, PHONE, recipients=(renamed,))
    assert person.recipients == (renamed,)
    assert (await people.load_person(database, "+23276000002")).recipients == ()


@each(
    "stored, content",
    [
        ('{"type":"Words","body":"hi"}', TextContent(body="hi")),
        ('{"type":"Tap","id":"cmd:menu"}', OptionChosen(id="cmd:menu")),
        ('{"type":"FlowReply"}', FormClosed()),
        (
            '{"type":"ImageFile","media_id":"m1","mime_type":null,"sha256":null}',
            ImageFile(media_id="m1", mime_type=None, sha256=None),
        ),
        (
            '{"type":"PictureInside","data":"data:","mimetype":null}',
            InlineImage(data="data:", mimetype=None),
        ),
        ('{"type":"ChangedNumber"}', NumberChanged()),
        ('{"type":"Other","kind":"sticker"}', UnsupportedMessage(kind="sticker")),
    ],
)
def test_content_is_stored_under_a_stable_tag(stored: str, content: Content) -> None:
    assert msgspec.json.encode(content).decode() == stored
    assert msgspec.json.decode(stored, type=Content) == content


def test_closed_form_of_an_earlier_version_decodes() -> None:
    stored = '{"type":"FlowReply","flow_token":"t1"}'
    assert msgspec.json.decode(stored, type=Content) == FormClosed()
