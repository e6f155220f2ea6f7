"""What `make fuzz` does, on a small scale: one of many cases, one of a few changed bytes."""

from fuzz.forgery import accepted, answered, at_rest, everything_written, forgeries, sampled
from fuzz.installation import Installation
from fuzz.line_pool import Lines
from fuzz.methods import wrong_answers
from fuzz.run import descriptions, fuzzed
from fuzz.signed import each_kind
from fuzz.stock import Stock


async def test_no_forgery_is_accepted_and_none_writes(
    installation: Installation, stock: Stock, ways: dict[str, Lines]
) -> None:
    url = installation.platform.database_url
    genuine = await each_kind(stock)
    before = await at_rest(url)
    for signed in genuine:
        tries = sampled(forgeries(signed), one_of=16, seed=1)
        assert len(tries) > 50
        assert await accepted(tries, ways) == []
    assert await everything_written(url) == before
    for signed in genuine:
        # So it was the change that was refused.
        status = await answered(signed.on_the_line(), ways[signed.service])
        assert status in (200, 202), (signed, status)
    assert await everything_written(url) != before


async def test_what_a_service_does_not_sign_is_the_body(
    stock: Stock, ways: dict[str, Lines]
) -> None:
    """As docs/signing.md says. What is written there is checked like anybody's."""
    for signed in await each_kind(stock):
        if "body" in signed.uncovered:
            other = signed.with_part("body", signed.parts["body"] + b" ")
            assert await answered(other.on_the_line(), ways[signed.service]) in (200, 202)


async def test_whatever_is_asked_is_answered_as_described(stock: Stock) -> None:
    tally = await fuzzed(stock, 180, seed=1, say=lambda _: None, of_operations=30)
    assert tally.requests > 150
    assert not tally.findings, "\n".join(map(str, tally.findings))
    assert len(tally.never_done()) < 10, list(tally.table())


async def test_a_method_that_a_path_does_not_have_is_405(
    installation: Installation, ways: dict[str, Lines]
) -> None:
    documents = await descriptions(installation)
    assert [wrong async for wrong in wrong_answers(documents, ways)] == []
