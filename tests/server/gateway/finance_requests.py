"""A ready-to-send request for every finance route whose response is the changed record.

A request that does not fit the record's status is an error of its own, and no declined transaction.
"""

from collections.abc import Awaitable, Callable
from typing import Any, NamedTuple

import httpx2

from builders.bank_statements import (
    LINES_URL,
    STATEMENTS_URL,
    build_csv,
    change_line,
    import_statement,
    list_lines,
    post_statement,
)
from builders.payouts import (
    PAYOUTS_URL,
    create_bank_account,
    create_merchant,
    create_run,
    request_payout,
)
from harness import BearerAuth, Harness

_DAY = "2026-01-15"


class RecordChange(NamedTuple):
    """Sends a request with an idempotency key, and a different request with the same key."""

    send: Callable[[str], Awaitable[httpx2.Response]]
    send_changed: Callable[[str], Awaitable[httpx2.Response]]


async def _prepare_payout_change(
    harness: Harness, verb: str, fields: dict[str, Any], changed: dict[str, Any]
) -> RecordChange:
    auth = await harness.create_admin("F")
    first, second = [
        (await request_payout(harness, await create_merchant(harness), amount="10"))["id"]
        for _ in range(2)
    ]
    if verb != "cancel":
        await create_bank_account(harness, None)
        await create_run(harness)

    def send(payout_id: str, body: dict[str, Any]) -> Awaitable[httpx2.Response]:
        return harness.post(f"{PAYOUTS_URL}/{payout_id}/{verb}", json=body, auth=auth)

    other_id = first if changed else second
    return RecordChange(
        lambda key: send(first, fields | {"request_id": key}),
        lambda key: send(other_id, fields | changed | {"request_id": key}),
    )


async def _create_lines(harness: Harness, amount: str) -> list[str]:
    await create_bank_account(harness, None)
    items = [(_DAY, amount, reference, "item") for reference in ("B-1", "B-2")]
    await import_statement(harness, build_csv(*items))
    return [line["id"] for line in await list_lines(harness)]


def _build_line_change(
    harness: Harness, auth: BearerAuth, verb: str, lines: list[str], fields: dict[str, Any]
) -> RecordChange:
    return RecordChange(
        lambda key: change_line(harness, lines[0], verb, auth, request_id=key, **fields),
        lambda key: change_line(harness, lines[1], verb, auth, request_id=key, **fields),
    )


async def prepare_cancelled_payout(harness: Harness) -> RecordChange:
    return await _prepare_payout_change(harness, "cancel", {}, {})


async def prepare_paid_payout(harness: Harness) -> RecordChange:
    fields = {"bank_reference": "B-1"}
    return await _prepare_payout_change(harness, "paid", fields, {"bank_reference": "B-2"})


async def prepare_returned_payout(harness: Harness) -> RecordChange:
    fields = {"reason": "Account closed"}
    return await _prepare_payout_change(harness, "returned", fields, {"reason": "Unknown name"})


async def prepare_statement(harness: Harness) -> RecordChange:
    """Prepare a statement that pays a submitted payout."""
    await create_bank_account(harness, None)
    payout = await request_payout(harness, await create_merchant(harness), amount="10")
    await create_run(harness)
    auth = await harness.create_admin("F")
    content = build_csv((_DAY, "-10.00", payout["reference"], "payout"))
    other = build_csv((_DAY, "-11.00", "B-2", "item"))
    return RecordChange(
        lambda key: post_statement(harness, content, auth, key=key),
        lambda key: post_statement(harness, other, auth, key=key),
    )


async def prepare_matched_line(harness: Harness) -> RecordChange:
    lines = await _create_lines(harness, "-10.00")
    payout = await request_payout(harness, await create_merchant(harness), amount="10")
    await create_run(harness)
    auth = await harness.create_admin("F")
    return _build_line_change(harness, auth, "match", lines, {"payout_id": payout["id"]})


async def prepare_posted_line(harness: Harness) -> RecordChange:
    lines = await _create_lines(harness, "25.00")
    auth = await harness.create_admin("F")
    return _build_line_change(harness, auth, "post", lines, {"reason": "Interest of January"})


async def prepare_unmatched_line(harness: Harness) -> RecordChange:
    lines = await _create_lines(harness, "25.00")
    auth = await harness.create_admin("F")
    for line_id in lines:
        response = await change_line(harness, line_id, "post", auth, reason="Interest of January")
        assert response.is_success, response.text
    return _build_line_change(harness, auth, "unmatch", lines, {})


RECORD_CHANGES: dict[str, Callable[[Harness], Awaitable[RecordChange]]] = {
    f"POST {PAYOUTS_URL}/{{id}}/cancel": prepare_cancelled_payout,
    f"POST {PAYOUTS_URL}/{{id}}/paid": prepare_paid_payout,
    f"POST {PAYOUTS_URL}/{{id}}/returned": prepare_returned_payout,
    f"POST {STATEMENTS_URL}": prepare_statement,
    f"POST {LINES_URL}/{{id}}/match": prepare_matched_line,
    f"POST {LINES_URL}/{{id}}/post": prepare_posted_line,
    f"POST {LINES_URL}/{{id}}/unmatch": prepare_unmatched_line,
}
