"""Messages are stored sealed and once per idempotency key, and can be listed."""

import asyncio

import msgspec
import pytest

from builders.messenger import OTHER_PHONE, PHONE, OutboxDriver
from cases import each
from tapgate.core.vault import Vault
from tapgate.messenger.model import (
    Option,
    OptionList,
    OutgoingMessage,
    PinForm,
    Template,
    TextReply,
)
from tapgate.messenger.outbox.outbox_messages import (
    UnreadableError,
    list_recent,
    open_message,
    seal_message,
)
from tapgate_client import ids
from tapgate_client.clock import format_rfc3339

#: Longer than a real code, so that row ids and ciphertext cannot contain it by chance.
CODE = "402917402917402917"
TEMPLATE = Template(name="one_time_code", language="en", parameters=(CODE,))
MORE_OPTION = Option(id="m", title="More")


async def test_message_is_enqueued_in_the_callers_transaction(outbox: OutboxDriver) -> None:
    with pytest.raises(ZeroDivisionError):
        async with outbox.database.transaction() as tx:
            await outbox.enqueue_in(tx, "Hello")
            raise ZeroDivisionError
    assert await outbox.list_rows() == []
    message_id, new = await outbox.enqueue("Hello")
    (row,) = await outbox.list_rows()
    assert (row["id"], new) == (message_id, True)
    assert (row["address"], row["status"], row["created_at"]) == (PHONE, "waiting", outbox.clock())


async def test_reused_key_returns_the_first_message(outbox: OutboxDriver) -> None:
    first, _ = await outbox.enqueue(TEMPLATE, key="k1")
    assert await outbox.enqueue("another", OTHER_PHONE, key="k1") == (first, False)
    second, new = await outbox.enqueue(TEMPLATE, key="k2")
    assert (second != first, new) == (True, True)
    assert len(await outbox.list_rows()) == 2


@pytest.mark.parametrize("key", ["", "x" * 100_000, "a\x00b", "é", "\ud800", " "])
async def test_any_key_is_accepted(outbox: OutboxDriver, key: str) -> None:
    first, new = await outbox.enqueue("Hello", key=key)
    assert new
    assert await outbox.enqueue("Hello", key=key) == (first, False)
    assert (await outbox.enqueue("Hello", key=key + "!"))[1]


async def test_concurrent_use_of_a_key_enqueues_one_message(outbox: OutboxDriver) -> None:
    results = await asyncio.gather(*(outbox.enqueue("Hello", key="k") for _ in range(8)))
    assert len({row_id for row_id, _ in results}) == 1
    assert sum(new for _, new in results) == 1


async def test_code_is_not_stored_in_plain_text(outbox: OutboxDriver) -> None:
    await outbox.enqueue(TEMPLATE)
    raw = await outbox.database.fetch("SELECT outbox::text, content FROM messenger.outbox")
    for encoded in (CODE, CODE.encode().hex()):
        assert encoded not in raw[0]["outbox"]
    assert CODE.encode() not in raw[0]["content"]
    assert b"one_time_code" not in raw[0]["content"]


@each(
    "message",
    [
        TextReply(text="Hello"),
        TEMPLATE,
        OptionList(text="?", options=(MORE_OPTION,), button="b", more=MORE_OPTION, start=9),
        PinForm(text="PIN", button="b", form="change_pin", token="t"),
    ],
)
def test_sealed_message_opens_only_with_its_id_and_secret_key(message: OutgoingMessage) -> None:
    vault = Vault("a secret key")
    content = seal_message(vault, 7, message)
    assert open_message(vault, 7, content) == message
    with pytest.raises(UnreadableError):
        open_message(vault, 8, content)
    with pytest.raises(UnreadableError):
        open_message(Vault("another key"), 7, content)


async def test_recent_messages_are_listed_newest_first(outbox: OutboxDriver) -> None:
    await outbox.enqueue("Hello")
    outbox.clock.advance(seconds=1)
    options = (Option(id="a", title="Balance"),)
    await outbox.enqueue(
        OptionList(text="What next?", options=options, button="b", more=MORE_OPTION)
    )
    await outbox.enqueue(TEMPLATE)
    await outbox.enqueue("not theirs", OTHER_PHONE)
    rows = await outbox.list_rows()
    messages = msgspec.to_builtins(await list_recent(outbox.database, outbox.vault, PHONE))
    created = [format_rfc3339(row["created_at"]) for row in rows]
    buttons = [{"type": "reply", "reply": {"id": "a", "title": "Balance"}}]
    assert [message.pop("payloads")[-1]["type"] for message in messages[::2]] == [
        "template",
        "text",
    ]
    (payload,) = messages[1].pop("payloads")
    assert payload["to"] == PHONE.removeprefix("+")
    assert payload["interactive"]["action"] == {"buttons": buttons}
    assert messages == [
        {
            "message_id": ids.encode("msg_", rows[2]["id"]),
            "to": PHONE,
            "template": "one_time_code",
            "language": "en",
            "parameters": (CODE,),
            "status": "queued",
            "channel": "chat",
            "created_at": created[2],
        },
        {
            "message_id": ids.encode("msg_", rows[1]["id"]),
            "to": PHONE,
            "text": "What next?\n\n1. Balance",
            "status": "queued",
            "channel": "chat",
            "created_at": created[1],
        },
        {
            "message_id": ids.encode("msg_", rows[0]["id"]),
            "to": PHONE,
            "text": "Hello",
            "status": "queued",
            "channel": "chat",
            "created_at": created[0],
        },
    ]
    assert len(await list_recent(outbox.database, outbox.vault, PHONE, limit=1)) == 1


async def test_message_that_cannot_be_rendered_is_still_listed(outbox: OutboxDriver) -> None:
    duplicates = (Option(id="a", title="Balance"), Option(id="a", title="History"))
    await outbox.enqueue(
        OptionList(text="What next?", options=duplicates, button="b", more=MORE_OPTION)
    )
    (message,) = await list_recent(outbox.database, outbox.vault, PHONE)
    assert message.payloads is None
    assert message.text == "What next?\n\n1. Balance\n2. History"


async def test_message_that_cannot_be_opened_is_still_listed(outbox: OutboxDriver) -> None:
    await outbox.enqueue("Hello")
    (message,) = await list_recent(outbox.database, Vault("another key"), PHONE)
    assert message.text is None
