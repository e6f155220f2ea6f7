"""Amounts of an owner's users count together, so invented users do not split an amount."""

import asyncio
from typing import Any

from builders.approvals import V1, build_rule, decide, require_held, set_email, set_rules
from builders.payouts import create_merchant, post_payout
from harness import BearerAuth, Harness
from tapgate.auth.owners import parse_owner
from tapgate.auth.principals import Principal
from tapgate.business.approvals.queries import lock_maker
from tapgate_client import ids

PASSWORD = "correct horse battery staple 9"


async def create_manager(
    harness: Harness, auth: BearerAuth, merchant: str, number: int
) -> BearerAuth:
    """Let a manager create a further manager, who signs in."""
    body: dict[str, Any] = {
        "email": f"manager{number}@{merchant}.example", "name": "X", "role": "merchant_manager",
        "owner_id": merchant, "password": PASSWORD,
    }  # fmt: skip
    created = await harness.post(f"{V1}/admin/users", json=body, auth=auth)
    assert created.status_code == 201, created.text
    credentials = {"email": body["email"], "password": PASSWORD}
    tokens = await harness.post(f"{V1}/admin/login", json=credentials)
    assert tokens.status_code == 200, tokens.text
    return BearerAuth(tokens.json()["token"], created.json()["id"])


async def count_paid(harness: Harness, merchant: str, users: list[BearerAuth]) -> int:
    """Let all users request 100 at the same time; return how many were executed at once."""
    responses = await asyncio.gather(
        *(post_payout(harness, merchant, user, amount="100") for user in users)
    )
    statuses = [response.status_code for response in responses]
    assert {*statuses} <= {200, 202}, [response.text for response in responses]
    return statuses.count(200)


async def test_managers_cannot_split_an_amount_across_users(harness: Harness) -> None:
    merchant, other = [await create_merchant(harness, "1000") for _ in range(2)]
    first = await harness.create_owner_user("M", merchant)
    users = [first, *[await create_manager(harness, first, merchant, each) for each in range(3)]]
    await set_rules(harness, build_rule("payouts", above="200"))
    paid = [await count_paid(harness, merchant, users) for _ in range(2)]
    assert paid == [2, 0]
    stranger = await harness.create_owner_user("M", other)
    assert (await post_payout(harness, other, stranger, amount="200")).status_code == 200
    staff = await harness.create_admin("F")
    assert (await post_payout(harness, merchant, staff, amount="200")).status_code == 200


async def test_requests_that_wait_count_for_the_owner(harness: Harness) -> None:
    """Also after the user's address changes, and until the request is rejected."""
    merchant = await create_merchant(harness, "1000")
    first, second = [await harness.create_owner_user("M", merchant) for _ in range(2)]
    await set_rules(harness, build_rule("payouts", above="200"))
    held = require_held(await post_payout(harness, merchant, first, amount="201"))
    await set_email(harness, first, "new@shop.example")
    waiting = require_held(await post_payout(harness, merchant, second, amount="10"))
    admin = await harness.create_admin("F")
    for each in (held, waiting):
        rejected = await decide(harness, each, "reject", admin, reason="Not today")
        assert rejected.status_code == 200, rejected.text
    assert (await post_payout(harness, merchant, second, amount="200")).status_code == 200


async def test_api_keys_count_for_their_owner(harness: Harness) -> None:
    """Today they request nothing with an amount. Their creator is an admin of the platform."""
    merchant = await create_merchant(harness, "1000")
    user = await harness.create_owner_user("M", merchant)
    key = await harness.create_api_key("payments:write", owner_id=merchant)
    owner, key_id = parse_owner(merchant), ids.decode(ids.KEY, key.id)
    for principal in (
        Principal(kind="api_key", id=key.id, name="Shop", key_id=key_id, owner=owner),
        Principal(
            kind="admin", id=user.id, name="M", admin_id=ids.decode(ids.ADMIN, user.id), owner=owner
        ),
    ):
        async with harness.services.transaction() as tx:
            assert (await lock_maker(tx, principal)).counted_for == merchant
