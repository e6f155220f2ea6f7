"""Prerequisites for operations on payouts, bank statements, batches and closed days."""

from fuzz.callers import Caller
from fuzz.recipes.kinds import (
    build_batch_lines,
    build_statement,
    create_payout,
    get_statement_line,
    upload,
)
from fuzz.recipes.recipe import V1, Prerequisites, register_recipe
from fuzz.values import ABSENT, RequestSubjects


@register_recipe(f"POST {V1}/payouts")
async def prepare_payout(subjects: RequestSubjects, _: Caller) -> Prerequisites:
    return Prerequisites(
        body={"owner_id": subjects.fixtures.payee, "amount": "1.00", "bank_account_id": ABSENT}
    )


@register_recipe(
    f"POST {V1}/payout-runs", *(f"POST {V1}/payouts/{{id}}/{verb}" for verb in ("paid", "returned"))
)
async def prepare_submitted_payout(subjects: RequestSubjects, _: Caller) -> Prerequisites:
    """Prepare a payout that a run has sent to the bank, and another one for the next run."""
    payout = await create_payout(subjects, {})
    await subjects.fixtures.admin.post("payout-runs")
    await create_payout(subjects, {})
    return Prerequisites({"id": payout}, {"owner_type": ABSENT})


@register_recipe(f"POST {V1}/bank-statements")
async def prepare_statement_file(subjects: RequestSubjects, _: Caller) -> Prerequisites:
    return Prerequisites(
        query={"format": ABSENT, "bank_account_id": ABSENT},
        content=(build_statement(subjects).encode(), "application/xml"),
    )


@register_recipe(f"POST {V1}/bank-statements/lines/{{id}}/match")
async def prepare_payout_line(subjects: RequestSubjects, caller: Caller) -> Prerequisites:
    """Prepare a line with the amount of a payout, which the bank paid too early to be matched."""
    payout = (await prepare_submitted_payout(subjects, caller)).path["id"]
    imported = await upload(subjects, "POST", "bank-statements", build_statement(subjects, "-1.00"))
    line = await get_statement_line(subjects, imported["id"])
    return Prerequisites({"id": line}, {"payout_id": payout})


@register_recipe(f"POST {V1}/batches")
async def prepare_new_batch(_subjects: RequestSubjects, _: Caller) -> Prerequisites:
    return Prerequisites(body={"source_id": "platform"})


@register_recipe(f"PUT {V1}/batches/{{id}}/lines")
async def prepare_batch_lines(subjects: RequestSubjects, _: Caller) -> Prerequisites:
    return Prerequisites(content=(build_batch_lines(subjects.subscriber).encode(), "text/csv"))


@register_recipe(f"POST {V1}/ledger/days/{{date}}/close")
async def prepare_ended_day(subjects: RequestSubjects, _: Caller) -> Prerequisites:
    return Prerequisites(
        {"date": subjects.rng.choice(["2026-01-15", subjects.fixtures.installation.first_day])}
    )


@register_recipe(f"GET {V1}/ledger/journal")
async def prepare_journal_day(subjects: RequestSubjects, _: Caller) -> Prerequisites:
    day = subjects.fixtures.installation.first_day
    return Prerequisites(query={"day": day, "from": ABSENT, "to": ABSENT})


@register_recipe(f"GET {V1}/transactions/{{id}}/proof")
async def prepare_closed_transaction(subjects: RequestSubjects, _: Caller) -> Prerequisites:
    day = subjects.fixtures.installation.first_day
    listed = await subjects.fixtures.admin.list_all("transactions", to=day)
    return Prerequisites({"id": subjects.rng.choice(listed)["id"]})
