"""Whose wallet it is: people who hide their number, and numbers that change hands."""

from datetime import timedelta
from typing import Any

from messenger.journeys.phone import Phone, text
from messenger.journeys.town import Messenger, Town
from messenger.set_clock import SetClock
from tapgate.messenger import one_time_codes
from tapgate.messenger.model.people import Person
from tapgate.messenger.model.replies import Template
from world import PIN, WRONG_PIN


def hidden(messenger: Messenger, user_id: str) -> Phone:
    """Somebody who does not show a number."""
    return messenger.phone(f"user:{user_id}")


async def write(phone: Phone, words: str) -> str:
    """As the channel delivers it when there is a user id only."""
    message = phone.message(text(words)) | {"from_user_id": phone.number.removeprefix("user:")}
    del message["from"]
    await phone.deliver(message)
    await phone.handled()
    return " ".join(getattr(reply, "text", "") for reply in await phone.replies())


async def code_for(messenger: Messenger, number: str) -> str:
    template: Template = await messenger.phone(number).last(Template)
    assert template.name == "one_time_code"
    return template.parameters[0]


async def test_who_hides_the_number_proves_one_by_a_code(town: Town, messenger: Messenger) -> None:
    subscriber = await town.world.subscriber(balance="77.00")
    ada = hidden(messenger, "ada-1")
    assert "77.00" not in await write(ada, "balance")
    assert "77.00" not in await write(ada, subscriber["phone_number"])
    code = await code_for(messenger, subscriber["phone_number"])
    wrong = "000000" if code != "000000" else "111111"
    assert "77.00" not in await write(ada, wrong)
    assert "77.00" in await write(ada, code)
    assert "77.00" in await write(ada, "balance")
    # Nobody else is her because of it.
    eve = hidden(messenger, "eve-1")
    await write(eve, "balance")
    assert "77.00" not in await write(eve, code)


async def test_a_code_is_tried_three_times_and_not_sent_to_pester(
    town: Town, messenger: Messenger
) -> None:
    subscriber = await town.world.subscriber(balance="77.00")
    eve = hidden(messenger, "eve-2")
    await write(eve, "balance")
    await write(eve, subscriber["phone_number"])
    code = await code_for(messenger, subscriber["phone_number"])
    for step in (1, 2, 3):
        await write(eve, f"{(int(code) + step) % 1_000_000:06d}")
    assert "77.00" not in await write(eve, code)
    for _ in range(3):
        await write(eve, "balance")
        await write(eve, subscriber["phone_number"])
    sent = await town.world.services.database.fetchval(
        "SELECT count(*) FROM messenger.outbox WHERE address = $1", subscriber["phone_number"]
    )
    assert sent == 1
    codes = await town.world.services.database.fetchrow("SELECT * FROM messenger.codes")
    assert code.encode() not in codes["code_hash"]


async def test_codes_cannot_be_guessed_in_the_long_run(messenger: Messenger) -> None:
    """Whoever asks for a code each minute, at any number of addresses, gets a few an hour."""
    services, clock = messenger.services, SetClock()
    clock.now = services.clock()
    services.clock = clock
    for number in range(59):
        eve = Person(address=f"user:eve-{number}", phone=None)
        await one_time_codes.send_code(services, eve, "+23276123456")
        clock.forward(minutes=1)
    count = "SELECT count(*) FROM messenger.outbox"
    assert await services.database.fetchval(count) == one_time_codes.MAX_CODES_PER_HOUR
    clock.forward(minutes=1)
    await one_time_codes.send_code(services, Person(address="user:ada", phone=None), "+23276123456")
    assert await services.database.fetchval(count) == one_time_codes.MAX_CODES_PER_HOUR + 1


async def test_codes_of_the_gateway_and_of_the_chat_share_one_limit(
    town: Town, messenger: Messenger
) -> None:
    subscriber = await town.world.subscriber()
    url = f"/api/v1/subscribers/{subscriber['id']}/reset-pin"
    eve = Person(address="user:eve", phone=None)
    count = "SELECT count(*) FROM messenger.outbox"
    assert (await town.gateway.post(url, auth=town.world.service())).status_code == 200
    await one_time_codes.send_code(messenger.services, eve, subscriber["phone_number"])
    assert await messenger.services.database.fetchval(count) == 0
    clock = SetClock()
    clock.now = messenger.services.clock() + timedelta(minutes=1)
    messenger.services.clock = clock
    await one_time_codes.send_code(messenger.services, eve, subscriber["phone_number"])
    assert await messenger.services.database.fetchval(count) == 1
    assert (await town.gateway.post(url, auth=town.world.service())).status_code == 429


async def test_nobody_has_codes_sent_to_many(messenger: Messenger) -> None:
    services, eve = messenger.services, Person(address="user:eve", phone=None)
    for number in range(20):
        await one_time_codes.send_code(services, eve, f"+232761234{number:02}")
    sent = await services.database.fetchval("SELECT count(*) FROM messenger.outbox")
    assert sent == one_time_codes.MAX_CODES_PER_HOUR


def changed_number(phone: Phone) -> dict[str, Any]:
    system = {"type": "user_changed_number", "body": "changed", "wa_id": "23276999999"}
    return phone.message({"type": "system", "system": system})


async def test_a_number_that_changed_hands_is_trusted_again_by_the_pin(
    town: Town, messenger: Messenger
) -> None:
    subscriber = await town.world.subscriber(balance="77.00")
    phone = messenger.phone(subscriber["phone_number"])
    assert "77.00" in await phone.say("balance")
    await phone.deliver(changed_number(phone))
    await phone.handled()
    await phone.replies()
    assert "77.00" not in await phone.say("balance")
    assert "77.00" not in await phone.ask("balance")
    assert "77.00" not in await phone.ask(WRONG_PIN)
    assert "77.00" in await phone.ask(PIN)
    assert "77.00" in await phone.say("balance")


async def test_a_number_that_the_subscriber_gave_up_is_nobodys(
    town: Town, messenger: Messenger
) -> None:
    subscriber = await town.world.subscriber(balance="77.00")
    old = messenger.phone(subscriber["phone_number"])
    assert "77.00" in await old.say("balance")
    answer = await town.gateway.put(
        f"/api/v1/subscribers/{subscriber['id']}",
        json={"phone_number": town.world.phone()},
        auth=await town.world.admin("A"),
    )
    assert answer.status_code == 200
    await old.say("cancel")
    assert "77.00" not in await old.say("balance")
