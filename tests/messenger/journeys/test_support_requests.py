"""Support requests from the chat: one open alert per person, at a limited rate."""

from typing import Any

import pytest

from messenger.journeys.phone import Phone
from messenger.journeys.test_trust import hidden, write
from messenger.journeys.town import Messenger, Town


async def alerts(town: Town) -> list[dict[str, Any]]:
    answer = await town.gateway.get("/api/v1/compliance/alerts", auth=await town.world.admin("C"))
    data: list[dict[str, Any]] = answer.json()["data"]
    return data


async def ask_for_person(phone: Phone) -> str:
    answer = await phone.ask_raw(message="talk to a person")
    return str(answer.json()["answer"])


@pytest.mark.parametrize("times", [1, 10])
async def test_repeated_requests_are_one_alert(
    town: Town, messenger: Messenger, times: int
) -> None:
    subscriber = await town.world.subscriber()
    phone = messenger.phone(subscriber["phone_number"])
    answers = {await ask_for_person(phone) for _ in range(times)}
    assert len(answers) == 1
    (alert,) = await alerts(town)
    assert alert["details"] == {"asked_by": subscriber["phone_number"]}
    # Further requests within the hour do not reach the gateway, nor its audit log.
    assert alert["occurrences"] == min(times, 3)


async def test_people_without_a_number_have_one_alert_each(
    town: Town, messenger: Messenger
) -> None:
    for name in ("ada", "eve"):
        phone = hidden(messenger, name)
        for _ in range(2):
            await write(phone, "talk to a person")
    assert sorted(alert["details"]["asked_by"] for alert in await alerts(town)) == [
        "user:ada",
        "user:eve",
    ]
