"""Runs of batches that require approval."""

import asyncio

from builders.approvals import build_rule, require_held, set_rules
from builders.batches import change_batch, create_draft
from harness import Harness, parse_error
from tapgate_client import ids


async def test_run_during_the_validation_needs_approval_too(harness: Harness) -> None:
    """The operation would wait for the lock of the validation, and then find a validated batch."""
    person = await harness.create_subscriber()
    batch_id = await create_draft(harness, [(person["phone_number"], "100", "A")])
    await set_rules(harness, build_rule("batches"))
    finance = await harness.create_admin("F")
    async with harness.services.transaction() as tx:
        await tx.execute(
            "SELECT FROM batches WHERE id = $1 FOR UPDATE", ids.decode(ids.BATCH, batch_id)
        )
        validation = asyncio.create_task(change_batch(harness, batch_id, "validate", finance))
        await asyncio.sleep(0.5)
        run = asyncio.create_task(change_batch(harness, batch_id, "run", finance))
        await asyncio.sleep(0.5)
    assert (await validation).status_code == 200
    assert parse_error(await run) == (409, "BATCH_NOT_READY")
    require_held(await change_batch(harness, batch_id, "run", finance))
