"""A repeated request joins the call that counts it, with no more than the amount checked there."""

import asyncio
from typing import Any

import msgspec
import pytest

from builders.approvals import (
    GuardedRecords,
    approve,
    build_rule,
    decide,
    find_endpoint,
    require_held,
    set_rules,
)
from builders.payouts import create_merchant, fund_owner, get_balance, post_payout
from harness import Harness
from tapgate.business.finance.payouts import routes
from tapgate.http.endpoint import Endpoint
from tapgate.server.gateway import list_endpoints
from tapgate_client.errors import unavailable
from tapgate_client.schemas.approvals import AMOUNT_OPERATIONS

LIMIT = "100"


async def prepare_payout(harness: Harness) -> tuple[str, Any]:
    merchant = await create_merchant(harness, "90")
    manager = await harness.create_owner_user("M", merchant)
    await set_rules(harness, build_rule("payouts", above=LIMIT))
    return merchant, manager


async def fail(*_: Any) -> Any:
    raise unavailable("The ledger does not respond.")


async def test_repeated_payout_of_everything_is_checked_with_its_new_amount(
    harness: Harness, monkeypatch: pytest.MonkeyPatch
) -> None:
    merchant, manager = await prepare_payout(harness)
    with monkeypatch.context() as patch:
        patch.setattr(routes, "submit_request", fail)
        assert (await post_payout(harness, merchant, manager, request_id="K")).status_code == 503
    await fund_owner(harness, merchant, "5000")
    held = require_held(await post_payout(harness, merchant, manager, request_id="K"))
    assert held["amount"] == "5090.00"
    again = require_held(await post_payout(harness, merchant, manager, request_id="K"))
    assert again["id"] == held["id"]
    assert (await approve(harness, held))["status"] == "executed"
    assert await get_balance(harness, merchant) == "0.00"


async def test_repeated_payout_below_the_limit_counts_its_larger_amount(
    harness: Harness, monkeypatch: pytest.MonkeyPatch
) -> None:
    merchant, manager = await prepare_payout(harness)
    with monkeypatch.context() as patch:
        patch.setattr(routes, "submit_request", fail)
        await post_payout(harness, merchant, manager, request_id="K")
    await fund_owner(harness, merchant, "10")
    repeated = await post_payout(harness, merchant, manager, request_id="K")
    assert (repeated.status_code, repeated.json()["amount"]) == (200, "100.00 SLE")
    await fund_owner(harness, merchant, "0.01")
    require_held(await post_payout(harness, merchant, manager))


async def test_parallel_request_with_the_same_key_is_checked_with_its_amount(
    harness: Harness, monkeypatch: pytest.MonkeyPatch
) -> None:
    merchant, manager = await prepare_payout(harness)
    build, waiting, go = routes.build_payout_command, asyncio.Event(), asyncio.Event()

    async def build_late(*arguments: Any) -> Any:
        if not waiting.is_set():
            waiting.set()
            await go.wait()
        return await build(*arguments)

    monkeypatch.setattr(routes, "build_payout_command", build_late)
    first = asyncio.create_task(post_payout(harness, merchant, manager, request_id="K"))
    await waiting.wait()
    await fund_owner(harness, merchant, "5000")
    require_held(await post_payout(harness, merchant, manager, request_id="K"))
    go.set()
    assert (await first).json()["amount"] == "90.00 SLE"


async def test_no_repeated_request_moves_more_than_was_checked(
    harness: Harness, platform: GuardedRecords, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first attempt of each request ends in 503, and the amount of the second has grown."""
    await set_rules(
        harness, *(build_rule(operation, above="10000000") for operation in AMOUNT_OPERATIONS)
    )
    services = harness.services
    run = services.run_guarded
    paths = set()

    async def run_first(endpoint: Endpoint, request: Any, arguments: Any, handle: Any) -> Any:
        return await run(endpoint, request, arguments, fail)

    for number, (_, method, path, body) in enumerate(await platform.list_requests()):
        endpoint = find_endpoint(services, method, path)
        if not endpoint.moves_money:
            continue
        sent = {**(body or {}), "request_id": f"K-{number}"}
        with monkeypatch.context() as patch:
            patch.setattr(services, "run_guarded", run_first)
            first = await platform.send(method, path, sent)
            assert first.status_code == 503, (path, first.text)
        describe = endpoint.guard.describe

        async def describe_more(*arguments: Any, describe: Any = describe, **named: Any) -> Any:
            proposal = await describe(*arguments, **named)
            return msgspec.structs.replace(proposal, amount=proposal.amount + 10**10)

        with monkeypatch.context() as patch:
            patch.setattr(endpoint.guard, "describe", describe_more)
            held = require_held(await platform.send(method, path, sent))
        assert (await decide(harness, held, "cancel", platform.maker)).status_code == 200
        paths.add(endpoint.path)
    guarded = {item.path for item in list_endpoints() if item.moves_money and item.guard}
    assert guarded - paths == {"/api/v1/float-requests/{id}/fund"}
