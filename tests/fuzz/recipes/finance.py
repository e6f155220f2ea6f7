"""Prerequisites for operations on bank accounts, bank statements and batches."""

from drivers.actors import require_success
from fuzz.callers import Caller
from fuzz.recipes.recipe import V1, Prerequisites, register_recipe
from fuzz.values import RequestSubjects


@register_recipe(
    f"GET {V1}/bank-accounts/{{id}}",
    f"PUT {V1}/bank-accounts/{{id}}/csv-mapping",
    *(f"POST {V1}/bank-accounts/{{id}}/{verb}" for verb in ("verify", "block")),
)
async def prepare_bank_account(subjects: RequestSubjects, _: Caller) -> Prerequisites:
    return Prerequisites({"id": await subjects.fixtures.create_bank_account()})


@register_recipe(
    f"GET {V1}/batches/{{id}}",
    f"GET {V1}/batches/{{id}}/lines",
    *(f"POST {V1}/batches/{{id}}/{verb}" for verb in ("validate", "cancel")),
)
async def prepare_batch(subjects: RequestSubjects, _: Caller) -> Prerequisites:
    created = await subjects.fixtures.admin.post("batches", name="Salaries", source_id="platform")
    return Prerequisites({"id": require_success(created)["id"]})


@register_recipe(
    f"GET {V1}/bank-statements/lines/{{id}}/candidates",
    *(f"POST {V1}/bank-statements/lines/{{id}}/{verb}" for verb in ("post", "ignore")),
)
async def prepare_statement_line(subjects: RequestSubjects, _: Caller) -> Prerequisites:
    return Prerequisites({"id": await subjects.fixtures.create_statement_line()})
