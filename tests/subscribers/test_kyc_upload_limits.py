"""KYC upload limits per subscriber: 4 undecided documents per type, 20 documents per day."""

import asyncio
from collections import Counter
from typing import Any

import httpx2
import pytest

from harness import Harness
from subscribers.test_kyc_documents import URL, build_url, upload_document
from tapgate.subscribers.kyc_documents import operations

DOCUMENT_TYPES = ("id_front", "id_back", "selfie", "proof_of_address")


async def decide_documents(world: Harness, record: dict[str, Any], **fields: Any) -> None:
    answer = await world.client.put(
        f"{URL}/{record['id']}", json=fields, auth=await world.create_admin("C")
    )
    assert answer.status_code == 200, answer.text


def assert_limited(answer: httpx2.Response, limit: str, maximum: int) -> None:
    assert (answer.status_code, answer.json()["code"]) == (429, "RATE_LIMITED"), answer.text
    assert answer.json()["details"] == {"limit": limit, "maximum": maximum}
    assert 0 < int(answer.headers["retry-after"]) <= 86400


async def count_documents(world: Harness, record: dict[str, Any]) -> int:
    answer = await world.client.get(build_url(record), auth=world.get_service_auth())
    return len(answer.json()["data"])


async def test_at_most_four_undecided_documents_per_type(world: Harness) -> None:
    record = await world.create_subscriber()
    for _ in range(4):
        assert (await upload_document(world, record)).status_code == 201
    assert_limited(await upload_document(world, record), "undecided_per_type", 4)
    assert (await upload_document(world, record, document_type="selfie")).status_code == 201
    assert await count_documents(world, record) == 5


@pytest.mark.parametrize("decision", [{"kyc_status": "REJECTED"}, {"kyc_level": 2}])
async def test_kyc_decision_resets_the_undecided_count(
    world: Harness, decision: dict[str, Any]
) -> None:
    record = await world.create_subscriber()
    for _ in range(4):
        await upload_document(world, record)
    await decide_documents(world, record, **decision)
    for _ in range(4):
        assert (await upload_document(world, record)).status_code == 201
    assert_limited(await upload_document(world, record), "undecided_per_type", 4)


async def test_update_without_a_kyc_decision_does_not_reset_the_count(world: Harness) -> None:
    record = await world.create_subscriber()
    for _ in range(4):
        await upload_document(world, record)
    await decide_documents(
        world, record, kyc_status="PENDING", kyc_level=1, address="1 Siaka Stevens St"
    )
    assert_limited(await upload_document(world, record), "undecided_per_type", 4)


async def test_at_most_twenty_documents_per_day(world: Harness) -> None:
    record = await world.create_subscriber()
    for number in range(20):
        assert (
            await upload_document(world, record, document_type=DOCUMENT_TYPES[number % 4])
        ).status_code == 201
        if number % 4 == 3:
            await decide_documents(world, record, kyc_status="REJECTED")
    assert_limited(await upload_document(world, record), "per_day", 20)
    world.advance_clock(days=1)
    assert (await upload_document(world, record)).status_code == 201


async def test_concurrent_uploads_do_not_exceed_the_limit(world: Harness) -> None:
    record = await world.create_subscriber()
    answers = await asyncio.gather(*(upload_document(world, record) for _ in range(12)))
    assert Counter(answer.status_code for answer in answers) == {201: 4, 429: 8}
    assert await count_documents(world, record) == 4


async def test_document_over_the_limit_is_rejected_before_it_is_decoded(
    world: Harness, monkeypatch: pytest.MonkeyPatch
) -> None:
    record = await world.create_subscriber()
    for _ in range(4):
        await upload_document(world, record)
    monkeypatch.setattr(operations, "picture_threads", None)
    assert_limited(await upload_document(world, record), "undecided_per_type", 4)


async def test_limit_reveals_nothing_about_a_restricted_subscriber(world: Harness) -> None:
    record = await world.create_restricted_subscriber()
    for _ in range(4):
        assert (await upload_document(world, record)).status_code == 201
    refused = await upload_document(
        world, record, caller=await world.create_api_key("subscribers:write")
    )
    assert (refused.status_code, refused.json()["code"]) == (403, "OTP_REQUIRED")
