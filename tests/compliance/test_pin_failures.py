"""The PIN failure rule, which is inactive by default."""

import asyncio

from builders.payments import list_alerts, submit_transfer, update_rule
from harness import PIN, WRONG_PIN, Harness


async def test_wrong_pins_above_the_threshold_raise_an_alert_and_block_transfers(
    harness: Harness,
) -> None:
    rule = await update_rule(harness, "Wrong PINs", status="active", threshold=1, action="block")
    subscriber, receiver = (
        await harness.create_subscriber(balance="100"),
        await harness.create_subscriber(),
    )
    url = f"/api/v1/subscribers/{subscriber['id']}"
    await harness.client.post(
        f"{url}/verify-pin", json={"pin": WRONG_PIN}, auth=harness.get_service_auth()
    )
    assert (await submit_transfer(harness, subscriber["id"], receiver["id"], "1")).code is None
    assert await list_alerts(harness) == []
    change = {"old_pin": WRONG_PIN, "new_pin": "8164"}
    await harness.client.post(f"{url}/change-pin", json=change, auth=harness.get_service_auth())
    (alert,) = await list_alerts(harness)
    assert (alert["alert_type"], alert["rule_id"]) == ("PIN_FAILURES", rule["id"])
    assert (alert["subscriber_id"], alert["transaction_id"]) == (subscriber["id"], None)
    await harness.client.post(
        f"{url}/verify-pin", json={"pin": PIN}, auth=harness.get_service_auth()
    )
    outcome = await submit_transfer(harness, subscriber["id"], receiver["id"], "1")
    assert outcome.code == "COMPLIANCE_REJECTED"
    (alert,) = await list_alerts(harness)
    assert alert["occurrences"] == 2
    assert alert["transaction_id"] is not None


async def test_concurrent_wrong_pins_are_counted_until_the_pin_is_locked(harness: Harness) -> None:
    await update_rule(harness, "Wrong PINs", status="active", threshold=0)
    subscriber = await harness.create_subscriber()
    url = f"/api/v1/subscribers/{subscriber['id']}/verify-pin"
    responses = await asyncio.gather(
        *(
            harness.client.post(url, json={"pin": WRONG_PIN}, auth=harness.get_service_auth())
            for _ in range(10)
        )
    )
    assert sorted(response.status_code for response in responses) == [400] * 3 + [403] * 7
    (alert,) = await list_alerts(harness)
    assert (alert["occurrences"], alert["details"]["figure"]) == (3, 3)
