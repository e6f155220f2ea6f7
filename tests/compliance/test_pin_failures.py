"""The PIN failure rule, after an operator activates it."""

import asyncio

from compliance.builders import list_alerts, submit_transfer, update_rule
from harness import PIN, WRONG_PIN, Harness


async def test_wrong_pins_raise_an_alert_and_block_the_next_payment(
    world: Harness,
) -> None:
    rule = await update_rule(world, "Wrong PINs", status="active", threshold=1, action="block")
    subscriber, receiver = (
        await world.create_subscriber(balance="100"),
        await world.create_subscriber(),
    )
    url = f"/api/v1/subscribers/{subscriber['id']}"
    await world.client.post(
        f"{url}/verify-pin", json={"pin": WRONG_PIN}, auth=world.get_service_auth()
    )
    assert (await submit_transfer(world, subscriber["id"], receiver["id"], "1")).code is None
    assert await list_alerts(world) == []
    change = {"old_pin": WRONG_PIN, "new_pin": "8164"}
    await world.client.post(f"{url}/change-pin", json=change, auth=world.get_service_auth())
    (alert,) = await list_alerts(world)
    assert (alert["alert_type"], alert["rule_id"]) == ("PIN_FAILURES", rule["id"])
    assert (alert["subscriber_id"], alert["transaction_id"]) == (subscriber["id"], None)
    await world.client.post(f"{url}/verify-pin", json={"pin": PIN}, auth=world.get_service_auth())
    outcome = await submit_transfer(world, subscriber["id"], receiver["id"], "1")
    assert outcome.code == "COMPLIANCE_REJECTED"
    (alert,) = await list_alerts(world)
    assert alert["occurrences"] == 2
    assert alert["transaction_id"] is not None


async def test_concurrent_wrong_pins_are_each_counted_once(world: Harness) -> None:
    await update_rule(world, "Wrong PINs", status="active", threshold=0)
    subscriber = await world.create_subscriber()
    url = f"/api/v1/subscribers/{subscriber['id']}/verify-pin"
    answers = await asyncio.gather(
        *(
            world.client.post(url, json={"pin": WRONG_PIN}, auth=world.get_service_auth())
            for _ in range(10)
        )
    )
    assert sorted(answer.status_code for answer in answers) == [400] * 3 + [403] * 7
    (alert,) = await list_alerts(world)
    assert (alert["occurrences"], alert["details"]["figure"]) == (3, 3)
