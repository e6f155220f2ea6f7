"""What the channel delivers is acted on once: however often, however much at once, whoever dies."""

import asyncio
import json
from typing import Any

import httpx2
import pytest

from messenger.journeys.phone import WEBHOOK, text
from messenger.journeys.town import Messenger, Town
from tapgate.gateway import create_app
from tapgate.messenger import inbox_worker, people
from tapgate.messenger.channel.plain_text import render_plain_text
from tapgate.messenger.model.replies import OptionList, PinForm, TextReply
from world import PIN


async def waiting(town: Town) -> int:
    count: int = await town.world.services.database.fetchval(
        "SELECT count(*) FROM messenger.received WHERE status = 'waiting'"
    )
    return count


async def test_the_exact_body_of_the_interface(town: Town, messenger: Messenger) -> None:
    subscriber = await town.world.subscriber(balance="1234.50")
    digits = subscriber["phone_number"].removeprefix("+")
    body = {
        "object": "whatsapp_business_account",
        "entry": [
            {
                "id": "WHATSAPP_BUSINESS_ACCOUNT_ID",
                "changes": [
                    {
                        "value": {
                            "messaging_product": "whatsapp",
                            "metadata": {
                                "display_phone_number": "15550783881",
                                "phone_number_id": "106540352242922",
                            },
                            "contacts": [{"profile": {"name": "Aminata"}, "wa_id": digits}],
                            "messages": [
                                {
                                    "from": digits,
                                    "id": "wamid.the-only-one",
                                    "timestamp": "1749416383",
                                    "type": "text",
                                    "text": {"body": "balance"},
                                }
                            ],
                        }
                    }
                ],
            }
        ],
    }
    answer = await messenger.client.post(WEBHOOK, content=json.dumps(body))
    assert (answer.status_code, answer.json()) == (200, {"status": "success"})
    phone = messenger.phone(subscriber["phone_number"])
    await phone.handled()
    assert any("1,234.50 SLE" in getattr(reply, "text", "") for reply in await phone.replies())


async def test_two_messages_in_one_delivery(town: Town, messenger: Messenger) -> None:
    subscriber = await town.world.subscriber(balance="1234.50")
    phone = messenger.phone(subscriber["phone_number"])
    await phone.deliver(phone.message(text("balance")), phone.message(text("limits")))
    await phone.handled()
    said = " ".join(getattr(reply, "text", "") for reply in await phone.replies())
    assert "1,234.50 SLE" in said
    assert "100,000.00 SLE" in said


async def test_messages_of_several_people_in_one_delivery(town: Town, messenger: Messenger) -> None:
    phones = [
        messenger.phone((await town.world.subscriber(balance=amount))["phone_number"])
        for amount in ("11.00", "22.00")
    ]
    await phones[0].deliver(*(phone.message(text("balance")) for phone in phones))
    for phone, amount in zip(phones, ("11.00 SLE", "22.00 SLE"), strict=True):
        await phone.handled()
        (reply,) = [one for one in await phone.replies() if isinstance(one, TextReply | OptionList)]
        assert amount in reply.text


async def test_the_same_message_fifty_times_at_once_over_two_processes_acts_once(
    town: Town, messenger: Messenger
) -> None:
    world = town.world
    sender = await world.subscriber(balance="1000.00")
    recipient = await world.subscriber()
    serial = await world.card(recipient["id"])
    settings: dict[str, Any] = {"messenger_flow_private_key": None, "messenger_text_pin": True}
    async with town.messenger(**settings) as one, town.messenger(**settings) as two:
        phone, other = (each.phone(sender["phone_number"]) for each in (one, two))
        await phone.say(f"send 100 to {serial}")
        await phone.replies()
        for content in ("yes", PIN):
            message = phone.message(text(content))
            await asyncio.gather(
                *(way.deliver(message) for _ in range(25) for way in (phone, other))
            )
            await phone.handled()
        replies = await phone.replies()
    assert await town.balance(recipient["id"]) == "100.00"
    receipts = [one for one in replies if "txn_" in getattr(one, "text", "")]
    assert len(receipts) == 1
    assert (
        await messenger.services.database.fetchval("SELECT count(*) FROM messenger.received") == 3
    )


class Deaf(httpx2.AsyncBaseTransport):
    """A gateway that takes calls and never answers."""

    def __init__(self) -> None:
        self.called = asyncio.Event()

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        self.called.set()
        await asyncio.get_running_loop().create_future()
        raise AssertionError


async def test_what_was_acknowledged_is_acted_on_after_a_restart(town: Town) -> None:
    subscriber = await town.world.subscriber(balance="77.00")
    deaf = Deaf()
    async with town.messenger(http=deaf) as first:
        phone = first.phone(subscriber["phone_number"])
        await phone.deliver(phone.message(text("balance")))
        await deaf.called.wait()
        # Stopped here, in the middle of it.
    assert await waiting(town) == 1
    async with town.messenger() as second:
        phone = second.phone(subscriber["phone_number"])
        await phone.handled()
        assert any("77.00 SLE" in getattr(one, "text", "") for one in await phone.replies())


async def test_a_text_that_may_hold_a_pin_is_asked_for_again_when_its_process_died(
    town: Town,
) -> None:
    settings: dict[str, Any] = {"messenger_flow_private_key": None, "messenger_text_pin": True}
    world = town.world
    sender, recipient = await world.subscriber(balance="1000.00"), await world.subscriber()
    serial = await world.card(recipient["id"])
    async with town.messenger(**settings) as first:
        phone = first.phone(sender["phone_number"])
        await phone.say(f"send 100 to {serial}")
        await phone.say("yes")
    deaf = Deaf()
    async with town.messenger(http=deaf, **settings) as dying:
        phone.client = dying.client
        await phone.deliver(phone.message(text(PIN)))
        await deaf.called.wait()
        await phone.replies()
    async with town.messenger(**settings) as second:
        await second.services.database.execute(
            "UPDATE messenger.received SET reserved_until = now() - interval '1 second'"
        )
        phone.client = second.client
        await phone.handled()
        assert await phone.replies()
        assert await town.balance(recipient["id"]) == "0.00"
        await phone.say(PIN)
    assert await town.balance(recipient["id"]) == "100.00"


class PaysUnheard(httpx2.AsyncBaseTransport):
    """A gateway whose answer to a payment never arrives."""

    def __init__(self, town: Town) -> None:
        self._gateway = httpx2.ASGITransport(create_app(town.world.services))
        self.paid = asyncio.Event()

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        answer = await self._gateway.handle_async_request(request)
        if request.url.path.endswith("/transfer-p2p"):
            self.paid.set()
            await asyncio.get_running_loop().create_future()
        return answer


@pytest.mark.parametrize("way", ["text", "form"])
async def test_who_paid_while_the_process_died_is_not_told_that_it_was_cancelled(
    town: Town, way: str
) -> None:
    text_pins: dict[str, Any] = {"messenger_flow_private_key": None, "messenger_text_pin": True}
    settings = text_pins if way == "text" else {}
    world = town.world
    sender, recipient = await world.subscriber(balance="1000.00"), await world.subscriber()
    serial = await world.card(recipient["id"])
    unheard = PaysUnheard(town)
    async with town.messenger(http=unheard, **settings) as dying:
        phone = dying.phone(sender["phone_number"])
        await phone.say(f"send 100 to {serial}")
        await phone.say("yes")
        if way == "text":
            await phone.deliver(phone.message(text(PIN)))
            await unheard.paid.wait()
        else:
            entering = asyncio.create_task(phone.fill_in({"pin": PIN}))
            await unheard.paid.wait()
            entering.cancel()
            await asyncio.gather(entering, return_exceptions=True)
    async with town.messenger(**settings) as second:
        phone.client = second.client
        await second.services.database.execute(
            "UPDATE messenger.received SET reserved_until = now() - interval '1 second'"
        )
        await phone.handled()
        if way == "form":
            await phone.say("cancel")
        assert "cannot be paid twice" in render_plain_text(await phone.replies(everything=True))
        assert "may have gone through" in await phone.say("cancel")
    assert await town.balance(recipient["id"]) == "100.00"


async def test_a_gateway_that_is_down_gets_a_kind_answer(town: Town) -> None:
    class Down(httpx2.AsyncBaseTransport):
        async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
            raise httpx2.ConnectError("refused")

    subscriber = await town.world.subscriber()
    async with town.messenger(http=Down()) as messenger:
        phone = messenger.phone(subscriber["phone_number"])
        answer = await phone.ask_raw(message="balance")
        assert answer.status_code == 500
        assert answer.json()["status"] == "error"
        assert "Traceback" not in answer.text
        assert answer.json()["answer"]
        said = await phone.say("balance")
        assert said
        # Help needs no gateway.
        assert "status" not in await phone.ask("help")


async def test_who_used_the_rate_up_elsewhere_is_asked_to_slow_down_too(town: Town) -> None:
    subscriber = await town.world.subscriber()
    async with town.messenger(messenger_rate=2) as messenger:
        phone = messenger.phone(subscriber["phone_number"])
        await phone.ask("help")
        await phone.ask("help")
        assert (await phone.ask_raw(message="help")).status_code == 429
        for _ in range(3):
            await phone.deliver(phone.message(text("help")))
        await phone.handled()
        assert len(await phone.replies()) == 1


async def test_a_message_without_words_gets_an_answer(town: Town, messenger: Messenger) -> None:
    phone = messenger.phone((await town.world.subscriber())["phone_number"])
    for nothing in ({}, {"message": None}, {"message": " "}):
        answer = await phone.ask_raw(**nothing)
        assert (answer.status_code, answer.json()["status"]) == (200, "success")
        assert answer.json()["answer"]


@pytest.mark.parametrize("where", ["webhook", "bridge"])
async def test_over_the_rate_a_message_is_not_acted_on(town: Town, where: str) -> None:
    subscriber = await town.world.subscriber(balance="77.00")
    async with town.messenger(messenger_rate=3) as messenger:
        phone = messenger.phone(subscriber["phone_number"])
        for _ in range(3):
            assert "77.00" in await (phone.say if where == "webhook" else phone.ask)("balance")
        await phone.replies()
        if where == "bridge":
            answer = await phone.ask_raw(message="balance")
            assert answer.status_code == 429
            assert answer.json()["status"] == "error"
            assert 1 <= answer.json()["retryAfter"] <= 60
            return
        over = [phone.message(text("balance")) for _ in range(4)]
        for message in (*over, *over):
            await phone.deliver(message)
        await phone.handled()
        (slow_down,) = await phone.replies()
        assert isinstance(slow_down, TextReply)
        assert "77.00" not in slow_down.text


async def test_a_message_from_the_future_makes_no_later_one_late(town: Town) -> None:
    world = town.world
    sender, recipient = await world.subscriber(balance="1000.00"), await world.subscriber()
    serial = await world.card(recipient["id"])
    async with town.messenger() as messenger:
        phone = messenger.phone(sender["phone_number"])
        await phone.deliver(phone.message(text("balance"), timestamp="99999999999"))
        await phone.handled()
        await phone.say(f"send 100 to {serial}")
        await phone.say("yes")
        assert await phone.last(PinForm)


async def test_a_changed_number_is_heard_over_the_rate(town: Town) -> None:
    subscriber = await town.world.subscriber(balance="77.00")
    async with town.messenger(messenger_rate=1) as messenger:
        phone = messenger.phone(subscriber["phone_number"])
        await phone.say("balance")
        await phone.deliver(phone.message({"type": "system", "system": {"body": "changed"}}))
        await phone.handled()
        person = await people.load_person(messenger.services.database, phone.number)
        assert not person.trusted


async def test_what_cannot_be_read_any_more_does_not_stop_what_comes_after_it(town: Town) -> None:
    """Stored by another version of this program."""
    subscriber = await town.world.subscriber(balance="77.00")
    async with town.messenger(http=Deaf()) as first:
        phone = first.phone(subscriber["phone_number"])
        await phone.deliver(phone.message(text("balance")))
    await town.world.services.database.execute(
        """UPDATE messenger.received
           SET content = '{"type": "Hologram"}', attempts = 5, reserved_until = now()"""
    )
    async with town.messenger() as second:
        phone.client = second.client
        assert "77.00" in await phone.say("balance")


async def test_those_who_wait_long_do_not_keep_others_waiting(
    town: Town, monkeypatch: pytest.MonkeyPatch
) -> None:
    """More of them than are looked for at once, left behind by another process."""
    monkeypatch.setattr(inbox_worker, "_MAX_ADDRESSES_PER_SWEEP", 2)
    database = town.world.services.database
    subscriber = await town.world.subscriber(balance="77.00")
    stuck, last = ["+100000001", "+100000002"], subscriber["phone_number"]
    for row_id, address in enumerate([*stuck, last]):
        await database.execute(
            """INSERT INTO messenger.received (id, message_id, address, sent_at, content, status,
                   reserved_for, reserved_until, received_at)
               VALUES ($1, $2, $2, 0, '{"type": "Words", "body": "balance"}', 'waiting', 0,
                       now(), now())""",
            row_id,
            address,
        )
    await database.execute(
        """INSERT INTO messenger.conversations (address, lease, leased_until)
           SELECT unnest($1::text[]), 1, now() + interval '1 hour'""",
        stuck,
    )
    async with town.messenger() as messenger:
        phone = messenger.phone(last)
        await phone.handled()
        assert "77.00" in render_plain_text(await phone.replies())


async def test_deliveries_of_the_same_messages_in_any_order_do_not_wait_for_each_other(
    town: Town, messenger: Messenger
) -> None:
    phones = [messenger.phone(town.world.phone()) for _ in range(4)]
    messages = [phone.message(text("help")) for _ in range(5) for phone in phones]
    await asyncio.gather(
        *(phones[0].deliver(*order) for _ in range(5) for order in (messages, messages[::-1]))
    )
    for phone in phones:
        await phone.handled()
    stored = await messenger.services.database.fetchval("SELECT count(*) FROM messenger.received")
    assert stored == len(messages)


async def test_messages_of_one_second_are_handled_in_their_order(
    town: Town, messenger: Messenger
) -> None:
    phone = messenger.phone(town.world.phone())
    moment = {"timestamp": "1749416383"}
    await phone.deliver(
        phone.message(text("register"), id="wamid.z", **moment),
        phone.message(text("Mary Sesay"), id="wamid.a", **moment),
    )
    await phone.handled()
    assert "Mary Sesay" in render_plain_text(await phone.replies())


class Crowded(httpx2.AsyncBaseTransport):
    """A gateway that takes its time, and counts how much is asked of it meanwhile. The first who
    asks waits until somebody else does."""

    def __init__(self, town: Town) -> None:
        self._gateway = httpx2.ASGITransport(create_app(town.world.services))
        self._now = self.most = 0
        self._two_at_once = asyncio.Event()

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        self._now += 1
        self.most = max(self.most, self._now)
        if self._now == 2:
            self._two_at_once.set()
        async with asyncio.timeout(30):
            await self._two_at_once.wait()
        await asyncio.sleep(0.05)
        self._now -= 1
        return await self._gateway.handle_async_request(request)


async def test_a_crowd_is_answered_a_few_at_a_time(
    town: Town, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(inbox_worker, "_MAX_CONCURRENT_CONVERSATIONS", 2)
    crowded = Crowded(town)
    async with town.messenger(http=crowded) as messenger:
        phones = [messenger.phone(town.world.phone()) for _ in range(6)]
        await phones[0].deliver(*(phone.message(text("balance")) for phone in phones))
        for phone in phones:
            await phone.handled()
            assert await phone.replies()
    assert crowded.most == 2
