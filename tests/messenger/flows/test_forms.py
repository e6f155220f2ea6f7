import asyncio

from builders.messenger import ADDRESS, FlowDriver
from tapgate.messenger.flows import forms
from tapgate.messenger.flows.forms import Form


async def find_form(flow_driver: FlowDriver, token: str) -> Form | None:
    async with flow_driver.database.connection() as connection:
        return await forms.find(connection, forms.hash_token(token), flow_driver.now)


async def use_form(flow_driver: FlowDriver, token: str) -> bool:
    async with flow_driver.database.transaction() as tx:
        return await forms.mark_used(tx, forms.hash_token(token), flow_driver.now)


async def test_form_is_found_only_by_its_token(flow_driver: FlowDriver) -> None:
    token = await flow_driver.issue_form("change_pin", "fr", "op1")
    assert await find_form(flow_driver, token) == Form(
        token_hash=forms.hash_token(token),
        address=ADDRESS,
        form="change_pin",
        operation="op1",
        language="fr",
        text="10.00 SLE to Aminata K.",
    )
    assert await find_form(flow_driver, token + "x") is None
    assert await find_form(flow_driver, "") is None


async def test_token_is_not_stored_in_plain_text(flow_driver: FlowDriver) -> None:
    token = await flow_driver.issue_form()
    rows = await flow_driver.database.fetch("SELECT f::text AS row FROM messenger.forms f")
    assert rows
    assert not any(token in row["row"] or token.encode().hex() in row["row"] for row in rows)


async def test_form_expires_after_five_minutes(flow_driver: FlowDriver) -> None:
    token = await flow_driver.issue_form()
    flow_driver.advance_clock(minutes=5, microseconds=-1)
    assert await find_form(flow_driver, token) is not None
    flow_driver.advance_clock(microseconds=1)
    assert await find_form(flow_driver, token) is None


async def test_form_can_be_marked_as_used_only_once(flow_driver: FlowDriver) -> None:
    token = await flow_driver.issue_form()
    assert sorted(await asyncio.gather(*(use_form(flow_driver, token) for _ in range(8)))) == [
        *[False] * 7,
        True,
    ]
    assert await find_form(flow_driver, token) is None


async def test_form_can_be_marked_as_used_one_minute_after_its_expiry(
    flow_driver: FlowDriver,
) -> None:
    token = await flow_driver.issue_form()
    flow_driver.advance_clock(minutes=6)
    assert await use_form(flow_driver, token)


async def test_rolled_back_use_leaves_the_form_usable(flow_driver: FlowDriver) -> None:
    token = await flow_driver.issue_form()
    try:
        async with flow_driver.database.transaction() as tx:
            assert await forms.mark_used(tx, forms.hash_token(token), flow_driver.now)
            raise InterruptedError
    except InterruptedError:
        pass
    assert await use_form(flow_driver, token)


async def test_new_form_invalidates_the_previous_form_of_its_operation(
    flow_driver: FlowDriver,
) -> None:
    older = await flow_driver.issue_form(operation="op1")
    other = await flow_driver.issue_form(operation="op2")
    newer = await flow_driver.issue_form(operation="op1")
    assert await find_form(flow_driver, older) is None
    assert not await use_form(flow_driver, older)
    assert await find_form(flow_driver, other) is not None
    assert await find_form(flow_driver, newer) is not None


async def test_only_the_newest_forms_of_a_person_are_kept(flow_driver: FlowDriver) -> None:
    tokens = []
    for number in range(forms.MAX_FORMS_PER_PERSON + 5):
        tokens.append(await flow_driver.issue_form(operation=f"op{number}"))
        flow_driver.advance_clock(seconds=1)
    count = await flow_driver.database.fetchval("SELECT count(*) FROM messenger.forms")
    assert count == forms.MAX_FORMS_PER_PERSON
    assert await find_form(flow_driver, tokens[4]) is None
    assert await find_form(flow_driver, tokens[5]) is not None
    assert await find_form(flow_driver, tokens[-1]) is not None
