"""Requests that a release before 2.0 has stored as HTTP requests are executed too."""

from typing import Any

import msgspec

from builders.approvals import (
    V1,
    GuardedRecords,
    approve,
    build_rule,
    get_approval,
    require_held,
    set_rules,
)
from harness import Harness
from tapgate_client import ids
from tapgate_client.schemas.approvals import GUARDABLE_OPERATIONS


async def store_as_before(
    harness: Harness, approval: dict[str, Any], method: str, path: str, body: Any
) -> None:
    """Replace the stored call by the request, in the format of earlier releases."""
    approval_id = ids.decode(ids.APPROVAL, approval["id"]) or 0
    request = {
        "method": method,
        "path": V1 + path,
        "body": b"" if body is None else msgspec.json.encode(body),
        "ip": "192.0.2.7",
        "moves_money": approval["amount"] is not None,
        "api_key_id": None,
    }
    context = f"approval request {approval_id}".encode()
    await harness.database.execute(
        "UPDATE approvals SET sealed_request = $2 WHERE id = $1",
        approval_id,
        harness.services.vault.seal(msgspec.msgpack.encode(request), context),
    )


async def test_stored_requests_of_every_operation_are_executed(
    harness: Harness, platform: GuardedRecords
) -> None:
    await set_rules(harness, *(build_rule(operation) for operation in GUARDABLE_OPERATIONS))
    requests, approver = await platform.list_requests(), await harness.create_admin("F")
    for _, method, path, body in requests:
        approval = require_held(await platform.send(method, path, body))
        await store_as_before(harness, approval, method, path, body)
        executed = await approve(harness, approval, approver)
        assert (executed["status"], executed["code"]) == ("executed", None), (path, executed)


async def test_stored_request_to_an_endpoint_that_no_longer_exists_fails(
    harness: Harness, platform: GuardedRecords
) -> None:
    await set_rules(harness, build_rule("branding"))
    approval = require_held(await platform.send("PUT", "/admin/branding", {"name": "Shop"}))
    await store_as_before(harness, approval, "PUT", "/admin/brand", {"name": "Shop"})
    await approve(harness, approval, await harness.create_admin("F"))
    failed = await get_approval(harness, approval, platform.maker)
    assert (failed["status"], failed["code"]) == ("failed", "NOT_FOUND")
