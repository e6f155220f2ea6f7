"""A small version of `make fuzz`: sampled operations and mutations."""

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
from fuzz.unreachable import UNREACHABLE
from fuzz.unsupported_methods import find_wrong_responses


async def test_no_forgery_is_accepted_or_writes_to_the_database(
    installation: Installation, fuzz_fixtures: FuzzFixtures, connections: dict[str, ConnectionPool]
) -> None:
    url = installation.deployment.database_url
    signed_requests = await build_each_kind(fuzz_fixtures)
    before = await wait_until_idle(url)
    for signed in signed_requests:
        forgeries = sample_forgeries(build_forgeries(signed), divisor=16, seed=1)
        assert len(forgeries) > 50
        assert await find_accepted(forgeries, connections) == []
    assert await digest_tables(url) == before
    for signed in signed_requests:
        # The unmodified request is accepted, so the mutation was the reason for the rejection.
        status = await send_and_get_status(signed.encode(), connections[signed.service])
        assert status in (200, 202), (signed, status)
    assert await digest_tables(url) != before


async def test_service_signature_does_not_cover_the_body(
    fuzz_fixtures: FuzzFixtures, connections: dict[str, ConnectionPool]
) -> None:
    """As documented in docs/signing.md. The body is validated like any other."""
    for signed in await build_each_kind(fuzz_fixtures):
        if "body" in signed.unsigned_parts:
            other = signed.with_part("body", signed.parts["body"] + b" ")
            assert await send_and_get_status(other.encode(), connections[signed.service]) in (
                200,
                202,
            )


async def test_random_requests_disclose_no_foreign_data_to_owners(
    fuzz_fixtures: FuzzFixtures,
) -> None:
    results = await run_fuzzing(
        fuzz_fixtures, 800, seed=7, print_line=lambda _: None, by_owners=True
    )
    assert not results.findings, "\n".join(map(str, results.findings))
    assert len(results.statuses) - len(results.list_never_succeeded()) > 30


async def test_fuzzed_requests_get_documented_responses(fuzz_fixtures: FuzzFixtures) -> None:
    results = await run_fuzzing(
        fuzz_fixtures, 180, seed=3, print_line=lambda _: None, sample_size=30
    )
    assert results.request_count > 150
    assert not results.findings, "\n".join(map(str, results.findings))


async def test_every_operation_succeeds_or_is_declared_as_unreachable(
    fuzz_fixtures: FuzzFixtures,
) -> None:
    results = await run_fuzzing(fuzz_fixtures, 0, seed=5, print_line=lambda _: None)
    assert not results.findings, "\n".join(map(str, results.findings))
    assert set(results.list_never_succeeded()) == UNREACHABLE.keys()


async def test_unsupported_method_returns_405_with_the_supported_methods(
    installation: Installation, connections: dict[str, ConnectionPool]
) -> None:
    documents = await fetch_openapi_documents(installation)
    assert [wrong async for wrong in find_wrong_responses(documents, connections)] == []
