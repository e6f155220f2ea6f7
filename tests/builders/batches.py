"""Batches over HTTP."""

from collections.abc import Iterable, Sequence
from typing import Any

import httpx2

from builders.participants import create_partner
from builders.payouts import fund_owner
from harness import Harness
from tapgate.business.finance.batches.worker import BatchWorker

BATCHES_URL = "/api/v1/batches"
HEADER = ("phone_number", "amount", "reference")
Rows = Iterable[Sequence[str]]


def build_csv(rows: Rows, header: Sequence[str] = HEADER) -> bytes:
    return "".join(f"{','.join(row)}\n" for row in (header, *rows)).encode()


async def create_funded_partner(harness: Harness, balance: str = "1000") -> str:
    """Create a partner with a balance; return its ID."""
    partner_id: str = (await create_partner(harness))["partner"]["id"]
    if balance != "0":
        await fund_owner(harness, partner_id, balance)
    return partner_id


async def post_batch(
    harness: Harness,
    source_id: str = "platform",
    name: str = "Salaries November",
    auth: Any = None,
    **fields: Any,
) -> httpx2.Response:
    return await harness.post(
        BATCHES_URL,
        json={"name": name, "source_id": source_id, **fields},
        auth=auth or await harness.create_admin("F"),
    )


async def put_lines(harness: Harness, batch_id: str, file: bytes) -> httpx2.Response:
    return await harness.put(
        f"{BATCHES_URL}/{batch_id}/lines",
        content=file,
        headers={"Content-Type": "text/csv"},
        auth=await harness.create_admin("F"),
    )


async def create_draft(
    harness: Harness, rows: Rows, source_id: str = "platform", **fields: Any
) -> str:
    """Create a batch with lines; return its ID."""
    response = await post_batch(harness, source_id, **fields)
    assert response.status_code == 201, response.text
    batch_id: str = response.json()["id"]
    uploaded = await put_lines(harness, batch_id, build_csv(rows))
    assert uploaded.status_code == 200, uploaded.text
    return batch_id


async def change_batch(
    harness: Harness, batch_id: str, verb: str, auth: Any = None, **fields: Any
) -> httpx2.Response:
    return await harness.post(
        f"{BATCHES_URL}/{batch_id}/{verb}",
        json=fields,
        auth=auth or await harness.create_admin("F"),
    )


async def create_validated(harness: Harness, person: dict[str, Any]) -> str:
    """Create a validated batch that pays one person from cash; return its ID."""
    batch_id = await create_draft(harness, [(person["phone_number"], "1", "A")])
    validated = await change_batch(harness, batch_id, "validate")
    assert validated.json()["valid"] == 1, validated.text
    return batch_id


async def start_batch(
    harness: Harness, rows: Rows, source_id: str = "platform", **fields: Any
) -> str:
    """Create, validate and start a batch; return its ID."""
    batch_id = await create_draft(harness, rows, source_id, **fields)
    validated = await change_batch(harness, batch_id, "validate")
    assert validated.status_code == 200, validated.text
    started = await change_batch(harness, batch_id, "run")
    assert started.status_code == 202, started.text
    assert started.json()["status"] == "running"
    return batch_id


async def pay_batches(harness: Harness) -> None:
    """Do the background worker's work."""
    await BatchWorker(harness.services).pay_due()


async def run_batch(
    harness: Harness, rows: Rows, source_id: str = "platform", **fields: Any
) -> dict[str, Any]:
    """Pay a batch and return its record."""
    batch_id = await start_batch(harness, rows, source_id, **fields)
    await pay_batches(harness)
    return await get_batch(harness, batch_id)


async def get_batch(harness: Harness, batch_id: str) -> dict[str, Any]:
    response = await harness.get(f"{BATCHES_URL}/{batch_id}", auth=await harness.create_admin("F"))
    assert response.status_code == 200, response.text
    record: dict[str, Any] = response.json()
    return record


async def list_lines(harness: Harness, batch_id: str, **query: Any) -> list[dict[str, Any]]:
    response = await harness.get(
        f"{BATCHES_URL}/{batch_id}/lines",
        params={"limit": 100, **query},
        auth=await harness.create_admin("F"),
    )
    assert response.status_code == 200, response.text
    lines: list[dict[str, Any]] = response.json()["data"]
    return lines


def get_codes(lines: Sequence[dict[str, Any]]) -> list[tuple[str, str | None]]:
    return [(line["status"], line["code"]) for line in lines]
