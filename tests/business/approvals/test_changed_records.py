"""A guarded request has the effect that its guard has seen, although others change the records."""

from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from builders.approvals import (
    V1,
    GuardedRecords,
    approve,
    build_rule,
    decide,
    find_endpoint,
    get_approval,
    require_held,
    set_rules,
)
from builders.auth import enroll_app
from harness import BearerAuth, Harness, parse_error
from tapgate.business.approvals.execution import ApprovalWorker
from tapgate.http.endpoint import Endpoint
from tapgate.server.gateway import list_endpoints
from tapgate_client import ids
from tapgate_client.schemas.approvals import GUARDABLE_OPERATIONS

#: Guarded endpoints whose requests `GuardedRecords` does not list, and why that is enough.
UNLISTED = {
    "PUT /api/v1/admin/approval-rules": "replaces the rules that hold the others",
    "POST /api/v1/agents": "describes its body only",
    "POST /api/v1/books/transfers/{id}/return": "needs a second book, and is always described",
    "POST /api/v1/cards/keysets/{id}/retire": "is always described",
    "POST /api/v1/subscribers/{id}/kyc-decision": "changes the row that PUT changes",
}


@contextmanager
def between_guard_and_handler(
    monkeypatch: pytest.MonkeyPatch, endpoint: Endpoint, change: Callable[[], Awaitable[Any]]
) -> Iterator[None]:
    """Make a change after the guard of the next request to an endpoint has described it."""
    describe, is_done = endpoint.guard.describe, False

    async def describe_then_change(*arguments: Any, **named: Any) -> Any:
        nonlocal is_done
        proposal = await describe(*arguments, **named)
        if not is_done:
            is_done = True
            await change()
        return proposal

    with monkeypatch.context() as patch:
        patch.setattr(endpoint.guard, "describe", describe_then_change)
        yield


@contextmanager
def harmless_at_first(monkeypatch: pytest.MonkeyPatch, endpoint: Endpoint) -> Iterator[None]:
    """Let the guard of an endpoint see a harmless request first, as before a change by others."""
    describe, is_done = endpoint.guard.describe, False

    async def describe_later(*arguments: Any, **named: Any) -> Any:
        nonlocal is_done
        if is_done:
            return await describe(*arguments, **named)
        is_done = True
        return None

    with monkeypatch.context() as patch:
        patch.setattr(endpoint.guard, "describe", describe_later)
        yield


async def read_effects(harness: Harness) -> Any:
    """Return how many changes were committed: each one has an audit entry."""
    return await harness.database.fetchval(
        "SELECT count(*) FROM audit_entries WHERE resource_type <> 'approval'"
    )


async def test_no_request_runs_with_another_effect_than_its_guard_has_seen(
    harness: Harness, platform: GuardedRecords, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen = set()
    for _, method, path, body in await platform.list_requests():
        endpoint = find_endpoint(harness.services, method, path)
        if not endpoint.takes_tx:
            continue
        before = await read_effects(harness)
        with harmless_at_first(monkeypatch, endpoint):
            response = await platform.send(method, path, body)
        assert parse_error(response) == (503, "SERVICE_UNAVAILABLE"), (path, response.text)
        assert await read_effects(harness) == before, path
        assert (await platform.send(method, path, body)).status_code < 300, path
        seen.add(endpoint.name)
    guarded = {item.name for item in list_endpoints() if item.guard and item.takes_tx}
    assert guarded - seen == set(UNLISTED)


async def test_no_approved_request_runs_with_another_effect(
    harness: Harness, platform: GuardedRecords, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It stays approved, and a worker describes it again."""
    await set_rules(harness, *(build_rule(operation) for operation in GUARDABLE_OPERATIONS))
    approver = await harness.create_admin("F")
    for _, method, path, body in await platform.list_requests():
        endpoint = find_endpoint(harness.services, method, path)
        if not endpoint.takes_tx:
            continue
        held = require_held(await platform.send(method, path, body))
        before = await read_effects(harness)
        with harmless_at_first(monkeypatch, endpoint):
            await decide(harness, held, "approve", approver)
        assert (await get_approval(harness, held, approver))["status"] == "approved", path
        assert await read_effects(harness) == before, path
        await harness.database.execute(
            "UPDATE approvals SET next_attempt_at = now() - interval '1 minute'"
        )
        await ApprovalWorker(harness.services).work()
        assert (await get_approval(harness, held, approver))["status"] == "executed", path


async def create_partner(harness: Harness) -> tuple[str, str]:
    partner = (await harness.create_partner()).partner_id
    return partner, f"/admin/partners/{partner}"


async def set_overdraft(harness: Harness, partner: str, limit: str) -> None:
    await harness.database.execute(
        "UPDATE accounts SET overdraft = $2 WHERE owner_id = $1",
        ids.decode(ids.PARTNER, partner),
        int(limit) * 100,
    )


class Restriction:
    """An approved restriction, and the harmless request that would undo it a moment later."""

    def __init__(
        self, harness: Harness, operation: str, request: tuple[str, str, Any], record: str
    ) -> None:
        self.harness, self.operation, self.record = harness, operation, record
        self.method, self.path, self.body = request
        self.restrict: Callable[[], Awaitable[Any]]


async def suspend(harness: Harness, kind: str) -> Restriction:
    """Suspend a record while its activation is sent: it is active when the guard sees it."""
    admin = await harness.create_admin()
    processor = await harness.get_processor_id(await harness.create_processor())
    stop, start, operation = "suspend", "activate", "merchant_keys"
    if kind == "partner":
        path, operation = (await create_partner(harness))[1], "api_keys"
    elif kind == "processor":
        path = f"/processors/{processor}"
    else:
        terminals = f"/processors/{processor}/terminals"
        created = await harness.post(V1 + terminals, json={"name": "Till"}, auth=admin)
        path, stop, start = f"{terminals}/{created.json()['terminal']['id']}", "block", "unblock"
    found = Restriction(harness, operation, ("POST", f"{path}/{start}", {}), path)

    async def restrict() -> None:
        response = await harness.post(f"{V1}{path}/{stop}", json={"reason": "fraud"}, auth=admin)
        assert response.status_code == 200, response.text

    found.restrict = restrict
    return found


async def change_with_approval(
    harness: Harness, operation: str, path: str, old: dict[str, Any], new: dict[str, Any]
) -> Restriction:
    """Change a value with approval while the old value is sent, which changes nothing before."""
    found = Restriction(harness, operation, ("PUT", path, old), path)

    async def restrict() -> None:
        response = await harness.put(V1 + path, json=new, auth=await harness.create_admin())
        if response.status_code == 202:
            await approve(harness, response.json()["approval"], await harness.create_admin())
        assert response.status_code in (200, 202), response.text

    found.restrict = restrict
    return found


async def build_restriction(harness: Harness, name: str) -> Restriction:
    if name in ("partner", "processor", "terminal"):
        return await suspend(harness, name)
    if name == "overdraft":
        partner, path = await create_partner(harness)
        await set_overdraft(harness, partner, "1000000")
        values = [{"overdraft_limit": limit} for limit in ("1000000.00", "0")]
        return await change_with_approval(harness, "overdraft_limits", path, *values)
    customer = await harness.create_subscriber()
    path = f"/subscribers/{customer['id']}"
    if name == "phone number":
        values = [
            {"phone_number": number}
            for number in (customer["phone_number"], harness.new_phone_number())
        ]
        return await change_with_approval(harness, "subscriber_phone", path, *values)
    await harness.database.execute("UPDATE accounts SET kyc_level = 3 WHERE kind = 'wallet'")
    values = [{"kyc_level": 3}, {"kyc_level": 1}]
    return await change_with_approval(harness, "kyc_level", path, *values)


NAMES = ("partner", "processor", "terminal", "overdraft", "phone number", "KYC level")


async def send(harness: Harness, restriction: Restriction, auth: BearerAuth) -> Any:
    url, body = V1 + restriction.path, restriction.body
    return await harness.client.request(restriction.method, url, json=body, auth=auth)


@pytest.mark.parametrize("name", NAMES)
async def test_restriction_is_not_undone_by_a_request_that_was_harmless(
    harness: Harness, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    restriction = await build_restriction(harness, name)
    await set_rules(harness, build_rule(restriction.operation))
    attacker, reader = await harness.create_admin(), await harness.create_admin()
    endpoint = find_endpoint(harness.services, restriction.method, restriction.path)
    after: list[Any] = []

    async def restrict() -> None:
        await restriction.restrict()
        after.append(await read(harness, restriction.record, reader))

    with between_guard_and_handler(monkeypatch, endpoint, restrict):
        response = await send(harness, restriction, attacker)
    assert parse_error(response) == (503, "SERVICE_UNAVAILABLE")
    assert await read(harness, restriction.record, reader) == after[0]
    require_held(await send(harness, restriction, attacker))


async def read(harness: Harness, path: str, auth: BearerAuth) -> Any:
    if "/terminals/" in path:
        path, _, terminal_id = path.rpartition("/")
        records = (await harness.get(V1 + path, auth=auth)).json()["data"]
        return next(record for record in records if record["id"] == terminal_id)
    return (await harness.get(V1 + path, auth=auth)).json()


async def test_request_that_needed_no_second_factor_changes_nothing_that_does(
    harness: Harness, monkeypatch: pytest.MonkeyPatch
) -> None:
    restriction = await build_restriction(harness, "phone number")
    admin = await harness.create_admin()
    await enroll_app(harness.services, ids.decode(ids.ADMIN, admin.id) or 0)
    await harness.database.execute("UPDATE sessions SET factor_at = NULL")
    endpoint = find_endpoint(harness.services, "PUT", restriction.path)
    with between_guard_and_handler(monkeypatch, endpoint, restriction.restrict):
        response = await send(harness, restriction, admin)
    assert parse_error(response) == (503, "SERVICE_UNAVAILABLE")
    assert parse_error(await send(harness, restriction, admin)) == (403, "OTP_REQUIRED")
