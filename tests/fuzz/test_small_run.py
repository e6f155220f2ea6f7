"""What `make fuzz` does, on a small scale: one of many cases, one of a few changed bytes."""

from fuzz.connection_pool import ConnectionPool
from fuzz.fixtures import FuzzFixtures
from fuzz.forgery import (
    build_forgeries,
    digest_tables,
    find_accepted,
    sample_forgeries,
    send_and_get_status,
    wait_until_idle,
)
from fuzz.installation import Installation
from fuzz.run import fetch_openapi_documents, run_fuzzing
from fuzz.signed_requests import build_each_kind
from fuzz.unsupported_methods import find_wrong_responses


async def test_no_forgery_is_accepted_and_none_writes(
    installation: Installation, stock: FuzzFixtures, ways: dict[str, ConnectionPool]
) -> None:
    url = installation.deployment.database_url
    genuine = await build_each_kind(stock)
    before = await wait_until_idle(url)
    for signed in genuine:
        tries = sample_forgeries(build_forgeries(signed), one_of=16, seed=1)
        assert len(tries) > 50
        assert await find_accepted(tries, ways) == []
    assert await digest_tables(url) == before
    for signed in genuine:
        # So it was the change that was refused.
        status = await send_and_get_status(signed.encode(), ways[signed.service])
        assert status in (200, 202), (signed, status)
    assert await digest_tables(url) != before


async def test_what_a_service_does_not_sign_is_the_body(
    stock: FuzzFixtures, ways: dict[str, ConnectionPool]
) -> None:
    """As docs/signing.md says. What is written there is checked like anybody's."""
    for signed in await build_each_kind(stock):
        if "body" in signed.unsigned_parts:
            other = signed.with_part("body", signed.parts["body"] + b" ")
            assert await send_and_get_status(other.encode(), ways[signed.service]) in (200, 202)


async def test_whatever_is_asked_is_answered_as_described(stock: FuzzFixtures) -> None:
    tally = await run_fuzzing(stock, 180, seed=1, say=lambda _: None, of_operations=30)
    assert tally.request_count > 150
    assert not tally.findings, "\n".join(map(str, tally.findings))
    assert len(tally.never_succeeded()) < 10, list(tally.format_table())


async def test_a_method_that_a_path_does_not_have_is_405(
    installation: Installation, ways: dict[str, ConnectionPool]
) -> None:
    documents = await fetch_openapi_documents(installation)
    assert [wrong async for wrong in find_wrong_responses(documents, ways)] == []
