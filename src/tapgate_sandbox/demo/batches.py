"""The demo's batch: grants to customers, one of whom is blocked before the run."""

from collections.abc import Awaitable, Callable, Sequence

from tapgate.auth.actors import Actor
from tapgate.business.finance.batches import operations
from tapgate.business.finance.batches.lines_parser import parse_lines
from tapgate.business.finance.batches.validation import validate
from tapgate.business.finance.batches.worker import BatchWorker
from tapgate.http.api.services import Services
from tapgate_client import ids
from tapgate_client.schemas.batches import NewBatch
from tapgate_sandbox.demo.administrator import require_first_admin


async def pay_batch(
    services: Services,
    actor: Actor,
    name: str,
    partner_id: int,
    lines: Sequence[tuple[str, str]],
    before_run: Callable[[], Awaitable[None]],
) -> None:
    """Pay (phone number, amount) lines from the partner's account."""
    currency = services.settings.currency
    admin_id = await require_first_admin(services.database)
    source = ids.encode(ids.PARTNER, partner_id)
    rows = [f"{phone},{amount},G-{number:03}" for number, (phone, amount) in enumerate(lines, 1)]
    file = "\n".join(["phone_number,amount,reference", *rows]).encode()
    async with services.transaction() as tx:
        batch, _ = await operations.create(
            tx,
            actor,
            NewBatch(name=name, source_id=source),
            admin_id=admin_id,
            currency=currency,
            key=None,
        )
        await operations.replace_lines(tx, actor, batch.id, parse_lines(None, file, currency))
        await validate(tx, actor, batch.id)
    await before_run()
    async with services.transaction() as tx:
        run_by = ids.encode(ids.ADMIN, admin_id)
        await operations.start(tx, actor, batch.id, run_by=run_by, approval_id=None, key=None)
    await BatchWorker(services).pay_due()
