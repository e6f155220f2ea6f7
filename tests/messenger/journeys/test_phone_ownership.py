"""Phone ownership: hidden numbers and numbers that change owner."""

from datetime import timedelta

from builders.auth import FakeClock
from builders.hidden_numbers import create_hidden_number_phone, get_pending_code, send_text
from drivers.messenger import MessengerDriver, ServicesDriver
from tapgate.messenger import one_time_codes
from tapgate.messenger.model import Person


async def test_hidden_number_is_verified_by_a_one_time_code(
    services_driver: ServicesDriver, messenger: MessengerDriver
) -> None:
    subscriber = await services_driver.harness.create_subscriber(balance="77.00")
    ada = create_hidden_number_phone(messenger, "ada-1")
    assert "77.00" not in await send_text(ada, "balance")
    assert "77.00" not in await send_text(ada, subscriber["phone_number"])
    code = await get_pending_code(messenger, subscriber["phone_number"])
    wrong = "000000" if code != "000000" else "111111"
    assert "77.00" not in await send_text(ada, wrong)
    assert "77.00" in await send_text(ada, code)
    assert "77.00" in await send_text(ada, "balance")
    # The code does not verify another user.
    eve = create_hidden_number_phone(messenger, "eve-1")
    await send_text(eve, "balance")
    assert "77.00" not in await send_text(eve, code)


async def test_code_allows_three_attempts_and_is_not_replaced_immediately(
    services_driver: ServicesDriver, messenger: MessengerDriver
) -> None:
    subscriber = await services_driver.harness.create_subscriber(balance="77.00")
    eve = create_hidden_number_phone(messenger, "eve-2")
    await send_text(eve, "balance")
    await send_text(eve, subscriber["phone_number"])
    code = await get_pending_code(messenger, subscriber["phone_number"])
    for step in (1, 2, 3):
        await send_text(eve, f"{(int(code) + step) % 1_000_000:06d}")
    assert "77.00" not in await send_text(eve, code)
    for _ in range(3):
        await send_text(eve, "balance")
        await send_text(eve, subscriber["phone_number"])
    sent = await services_driver.harness.database.fetchval(
        "SELECT count(*) FROM messenger.outbox WHERE address = $1", subscriber["phone_number"]
    )
    assert sent == 1
    codes = await services_driver.harness.database.fetchrow("SELECT * FROM messenger.codes")
    assert code.encode() not in codes["code_hash"]


async def test_codes_per_phone_number_are_limited_per_hour(messenger: MessengerDriver) -> None:
    """Requests from many addresses count together, so codes cannot be guessed over time."""
    services, clock = messenger.services, FakeClock()
    clock.now = services.clock()
    services.clock = clock
    for number in range(59):
        eve = Person(address=f"user:eve-{number}", phone=None)
        await one_time_codes.send_code(services, eve, "+23276123456")
        clock.advance(minutes=1)
    count = "SELECT count(*) FROM messenger.outbox"
    assert await services.database.fetchval(count) == one_time_codes.MAX_CODES_PER_HOUR
    clock.advance(minutes=1)
    await one_time_codes.send_code(services, Person(address="user:ada", phone=None), "+23276123456")
    assert await services.database.fetchval(count) == one_time_codes.MAX_CODES_PER_HOUR + 1


async def test_gateway_codes_and_chat_codes_share_one_limit(
    services_driver: ServicesDriver, messenger: MessengerDriver
) -> None:
    subscriber = await services_driver.harness.create_subscriber()
    url = f"/api/v1/subscribers/{subscriber['id']}/reset-pin"
    eve = Person(address="user:eve", phone=None)
    count = "SELECT count(*) FROM messenger.outbox"
    response = await services_driver.gateway.post(
        url, auth=services_driver.harness.get_service_auth()
    )
    assert response.status_code == 200
    await one_time_codes.send_code(messenger.services, eve, subscriber["phone_number"])
    assert await messenger.services.database.fetchval(count) == 0
    clock = FakeClock()
    clock.now = messenger.services.clock() + timedelta(minutes=1)
    messenger.services.clock = clock
    await one_time_codes.send_code(messenger.services, eve, subscriber["phone_number"])
    assert await messenger.services.database.fetchval(count) == 1
    response = await services_driver.gateway.post(
        url, auth=services_driver.harness.get_service_auth()
    )
    assert response.status_code == 429


async def test_codes_requested_by_one_user_are_limited_across_phone_numbers(
    messenger: MessengerDriver,
) -> None:
    services, eve = messenger.services, Person(address="user:eve", phone=None)
    for number in range(20):
        await one_time_codes.send_code(services, eve, f"+232761234{number:02}")
    sent = await services.database.fetchval("SELECT count(*) FROM messenger.outbox")
    assert sent == one_time_codes.MAX_CODES_PER_HOUR


async def test_former_phone_number_has_no_access_to_the_wallet(
    services_driver: ServicesDriver, messenger: MessengerDriver
) -> None:
    subscriber = await services_driver.harness.create_subscriber(balance="77.00")
    old = messenger.create_phone(subscriber["phone_number"])
    assert "77.00" in await old.send_text("balance")
    response = await services_driver.gateway.put(
        f"/api/v1/subscribers/{subscriber['id']}",
        json={"phone_number": services_driver.harness.new_phone_number()},
        auth=await services_driver.harness.create_admin("A"),
    )
    assert response.status_code == 200
    await old.send_text("cancel")
    assert "77.00" not in await old.send_text("balance")
