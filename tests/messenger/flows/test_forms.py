import asyncio

from messenger.flows.builders import ADDRESS, FlowDriver
from tapgate.messenger.flows import forms
from tapgate.messenger.flows.forms import Form


async def find_form(stage: FlowDriver, token: str) -> Form | None:
    async with stage.database.connection() as connection:
        return await forms.find(connection, token, stage.now)


async def use_form(stage: FlowDriver, token: str) -> bool:
    async with stage.database.transaction() as tx:
        return await forms.mark_used(tx, forms.hash_token(token), stage.now)


async def test_form_is_found_only_by_its_token(stage: FlowDriver) -> None:
    token = await stage.issue_form("change_pin", "fr", "op1")
    assert await find_form(stage, token) == Form(
        token_hash=forms.hash_token(token),
        address=ADDRESS,
        form="change_pin",
        operation="op1",
        language="fr",
        text="10.00 SLE to Aminata K.",
    )
    assert await find_form(stage, token + "x") is None
    assert await find_form(stage, "") is None


async def test_token_is_not_stored_in_plain_text(stage: FlowDriver) -> None:
    token = await stage.issue_form()
    rows = await stage.database.fetch("SELECT f::text AS row FROM messenger.forms f")
    assert rows
    assert not any(token in row["row"] or token.encode().hex() in row["row"] for row in rows)


async def test_form_expires_after_five_minutes(stage: FlowDriver) -> None:
    token = await stage.issue_form()
    stage.advance_clock(minutes=5, microseconds=-1)
    assert await find_form(stage, token) is not None
    stage.advance_clock(microseconds=1)
    assert await find_form(stage, token) is None


async def test_form_is_used_once(stage: FlowDriver) -> None:
    token = await stage.issue_form()
    assert sorted(await asyncio.gather(*(use_form(stage, token) for _ in range(8)))) == [
        *[False] * 7,
        True,
    ]
    assert await find_form(stage, token) is None


async def test_form_found_before_expiry_can_be_used_shortly_after(stage: FlowDriver) -> None:
    token = await stage.issue_form()
    stage.advance_clock(minutes=6)
    assert await use_form(stage, token)


async def test_rolled_back_use_leaves_the_form_usable(stage: FlowDriver) -> None:
    token = await stage.issue_form()
    try:
        async with stage.database.transaction() as tx:
            assert await forms.mark_used(tx, forms.hash_token(token), stage.now)
            raise InterruptedError
    except InterruptedError:
        pass
    assert await use_form(stage, token)


async def test_new_form_invalidates_the_previous_form_of_its_operation(stage: FlowDriver) -> None:
    older = await stage.issue_form(operation="op1")
    other = await stage.issue_form(operation="op2")
    newer = await stage.issue_form(operation="op1")
    assert await find_form(stage, older) is None
    assert not await use_form(stage, older)
    assert await find_form(stage, other) is not None
    assert await find_form(stage, newer) is not None


async def test_only_the_newest_forms_of_a_person_are_kept(stage: FlowDriver) -> None:
    tokens = []
    for number in range(forms.MAX_FORMS_PER_PERSON + 5):
        tokens.append(await stage.issue_form(operation=f"op{number}"))
        stage.advance_clock(seconds=1)
    count = await stage.database.fetchval("SELECT count(*) FROM messenger.forms")
    assert count == forms.MAX_FORMS_PER_PERSON
    assert await find_form(stage, tokens[4]) is None
    assert await find_form(stage, tokens[5]) is not None
    assert await find_form(stage, tokens[-1]) is not None
