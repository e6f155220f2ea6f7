import asyncio

from messenger.flows.stage import ADDRESS, Stage
from tapgate.messenger.flows import forms
from tapgate.messenger.flows.forms import Form


async def found(stage: Stage, token: str) -> Form | None:
    async with stage.database.connection() as connection:
        return await forms.find(connection, token, stage.now)


async def used(stage: Stage, token: str) -> bool:
    async with stage.database.transaction() as tx:
        return await forms.mark_used(tx, forms.hash_token(token), stage.now)


async def test_a_form_is_found_by_its_token_alone(stage: Stage) -> None:
    token = await stage.issue("change_pin", "fr", "op1")
    assert await found(stage, token) == Form(
        token_hash=forms.hash_token(token),
        address=ADDRESS,
        form="change_pin",
        operation="op1",
        language="fr",
        text="10.00 SLE to Aminata K.",
    )
    assert await found(stage, token + "x") is None
    assert await found(stage, "") is None


async def test_the_token_itself_is_not_kept(stage: Stage) -> None:
    token = await stage.issue()
    rows = await stage.database.fetch("SELECT f::text AS row FROM messenger.forms f")
    assert rows
    assert not any(token in row["row"] or token.encode().hex() in row["row"] for row in rows)


async def test_a_form_ends_after_five_minutes(stage: Stage) -> None:
    token = await stage.issue()
    stage.later(minutes=5, microseconds=-1)
    assert await found(stage, token) is not None
    stage.later(microseconds=1)
    assert await found(stage, token) is None


async def test_a_form_is_used_once(stage: Stage) -> None:
    token = await stage.issue()
    assert sorted(await asyncio.gather(*(used(stage, token) for _ in range(8)))) == [
        *[False] * 7,
        True,
    ]
    assert await found(stage, token) is None


async def test_a_form_found_in_time_may_be_used_a_little_later(stage: Stage) -> None:
    token = await stage.issue()
    stage.later(minutes=6)
    assert await used(stage, token)


async def test_use_that_is_rolled_back_did_not_happen(stage: Stage) -> None:
    token = await stage.issue()
    try:
        async with stage.database.transaction() as tx:
            assert await forms.mark_used(tx, forms.hash_token(token), stage.now)
            raise InterruptedError
    except InterruptedError:
        pass
    assert await used(stage, token)


async def test_a_new_form_ends_the_older_one_of_its_operation(stage: Stage) -> None:
    older = await stage.issue(operation="op1")
    other = await stage.issue(operation="op2")
    newer = await stage.issue(operation="op1")
    assert await found(stage, older) is None
    assert not await used(stage, older)
    assert await found(stage, other) is not None
    assert await found(stage, newer) is not None


async def test_the_newest_forms_of_a_person_are_kept(stage: Stage) -> None:
    tokens = []
    for number in range(forms.MAX_FORMS_PER_PERSON + 5):
        tokens.append(await stage.issue(operation=f"op{number}"))
        stage.later(seconds=1)
    count = await stage.database.fetchval("SELECT count(*) FROM messenger.forms")
    assert count == forms.MAX_FORMS_PER_PERSON
    assert await found(stage, tokens[4]) is None
    assert await found(stage, tokens[5]) is not None
    assert await found(stage, tokens[-1]) is not None
