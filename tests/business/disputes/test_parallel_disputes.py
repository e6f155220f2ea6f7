"""A dispute causes at most one refund, whatever happens at the same time."""

import asyncio
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from builders.disputes import DisputeDriver, create_driver
from harness import Harness
from tapgate.ledger.verification.verify import verify

_FINAL_ACTS = {
    "accept": ("respond", {"text": "Sorry", "accept": True}),
    "refund": ("decide", {"decision": "refund", "reason": "Not delivered"}),
    "reject": ("decide", {"decision": "reject", "reason": "Delivered"}),
    "withdraw": ("withdraw", {}),
}


async def act(driver: DisputeDriver, dispute: dict[str, Any], name: str) -> int:
    verb, body = _FINAL_ACTS[name]
    return (await driver.act(dispute, verb, **body)).status_code


@pytest.mark.parametrize("rival", list(_FINAL_ACTS))
async def test_acceptance_racing_another_decision_has_one_winner(
    harness: Harness, rival: str
) -> None:
    driver = await create_driver(harness, balance="5000")
    for _ in range(5):
        dispute = await driver.create_dispute("50.00")
        names = ["accept", rival] * 2
        statuses = await asyncio.gather(*(act(driver, dispute, name) for name in names))
        assert sorted(statuses) == [200, 409, 409, 409], statuses
        winner = names[statuses.index(200)]
        refunds = await driver.count_refunds(dispute["transaction_id"])
        assert refunds == ((1, 5000) if winner in ("accept", "refund") else (0, 0))
        status = {"accept": "refunded", "refund": "refunded", "reject": "rejected"}
        assert (await driver.get(dispute))["status"] == status.get(winner, "withdrawn")


async def test_parallel_disputes_of_one_payment_open_one(harness: Harness) -> None:
    driver = await create_driver(harness)
    transaction_id = await driver.create_payment()
    responses = await asyncio.gather(*(driver.dispute(transaction_id) for _ in range(6)))
    assert sorted(response.status_code for response in responses) == [201, *[409] * 5]


@settings(
    max_examples=8,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(
    steps=st.lists(
        st.tuples(st.sampled_from([*_FINAL_ACTS, "respond"]), st.integers(0, 6000)), max_size=5
    ),
    parts=st.lists(st.integers(1, 4000), max_size=2),
    is_parallel=st.booleans(),
)
async def test_refunds_never_exceed_the_payment(
    harness: Harness, steps: list[tuple[str, int]], parts: list[int], is_parallel: bool
) -> None:
    """Merchant refunds and dispute decisions in any order return at most the payment."""
    driver = await create_driver(harness)
    dispute = await driver.create_dispute("50.00")
    before = await driver.get_balance()

    async def decide(name: str) -> object:
        if name == "respond":
            return await driver.act(dispute, "respond", text="Sent")
        return await act(driver, dispute, name)

    calls = [decide(name) for name, _ in steps]
    calls += [driver.refund(dispute["transaction_id"], f"{part / 100:.2f}") for part in parts]
    if is_parallel:
        await asyncio.gather(*calls)
    else:
        for call in calls:
            await call
    count, refunded = await driver.count_refunds(dispute["transaction_id"])
    assert refunded <= 5000
    assert count <= len(parts) + 1
    assert await driver.get_balance() == before + refunded
    status = (await driver.get(dispute))["status"]
    if status in ("open", "answered", "rejected", "withdrawn"):
        assert count <= len(parts)
    async with harness.database.connection() as connection:
        proof = await verify(connection)
    assert [finding for finding in proof.findings if finding.broken] == []
