"""KYC upload limits per subscriber: 4 undecided documents per type, 20 documents per day."""

import asyncio
from collections import Counter
from typing import Any

import httpx2
import pytest

from builders.kyc_documents import DOCUMENT_TYPES, URL, build_url, upload_document
from harness import Harness
from tapgate.business.customers.subscribers.kyc_documents import operations


async def decide_documents(harness: Harness, record: dict[str, Any], **fields: Any) -> None:
    response = await harness.put(
        f"{URL}/{record['id']}", json=fields, auth=await harness.create_admin("C")
    )
    assert response.status_code == 200, response.text


def assert_limited(response: httpx2.Response, limit: str, maximum: int) -> None:
    assert (response.status_code, response.json()["code"]) == (429, "RATE_LIMITED"), response.text
    assert response.json()["details"] == {"limit": limit, "maximum": maximum}
    assert 0 < int(response.headers["retry-after"]) <= 86400


async def count_documents(harness: Harness, record: dict[str, Any]) -> int:
    response = await harness.get(build_url(record), auth=harness.get_service_auth())
    return len(response.json()["data"])


async def test_at_most_four_undecided_documents_per_type(harness: Harness) -> None:
    record = await harness.create_subscriber()
    for _ in range(4):
        assert (await upload_document(harness, record)).status_code == 201
    assert_limited(await upload_document(harness, record), "undecided_per_type", 4)
    assert (await upload_document(harness, record, document_type="selfie")).status_code == 201
    assert await count_documents(harness, record) == 5


@pytest.mark.parametrize("decision", [{"kyc_status": "REJECTED"}, {"kyc_level": 2}])
async def test_kyc_decision_resets_the_undecided_count(
    harness: Harness, decision: dict[str, Any]
) -> None:
    record = await harness.create_subscriber()
    for _ in range(4):
        await upload_document(harness, record)
    await decide_documents(harness, record, **decision)
    for _ in range(4):
        assert (await upload_document(harness, record)).status_code == 201
    assert_limited(await upload_document(harness, record), "undecided_per_type", 4)


async def test_update_without_a_kyc_decision_does_not_reset_the_count(harness: Harness) -> None:
    record = await harness.create_subscriber()
    for _ in range(4):
        await upload_document(harness, record)
    await decide_documents(
        harness, record, kyc_status="PENDING", kyc_level=1, address="1 Siaka Stevens St"
    )
    assert_limited(await upload_document(harness, record), "undecided_per_type", 4)


async def test_at_most_twenty_documents_per_day(harness: Harness) -> None:
    record = await harness.create_subscriber()
    for number in range(20):
        response = await upload_document(harness, record, document_type=DOCUMENT_TYPES[number % 4])
        assert response.status_code == 201
        if number % 4 == 3:
            await decide_documents(harness, record, kyc_status="REJECTED")
    assert_limited(await upload_document(harness, record), "per_day", 20)
    harness.advance_clock(days=1)
    assert (await upload_document(harness, record)).status_code == 201


async def test_concurrent_uploads_do_not_exceed_the_limit(harness: Harness) -> None:
    record = await harness.create_subscriber()
    responses = await asyncio.gather(*(upload_document(harness, record) for _ in range(12)))
    assert Counter(response.status_code for response in responses) == {201: 4, 429: 8}
    assert await count_documents(harness, record) == 4


async def test_document_over_the_limit_is_rejected_before_it_is_decoded(
    harness: Harness, monkeypatch: pytest.MonkeyPatch
) -> None:
    record = await harness.create_subscriber()
    for _ in range(4):
        await upload_document(harness, record)
    monkeypatch.setattr(operations, "image_threads", None)
    assert_limited(await upload_document(harness, record), "undecided_per_type", 4)


async def test_limit_reveals_nothing_about_a_restricted_subscriber(harness: Harness) -> None:
    record = await harness.create_restricted_subscriber()
    for _ in range(4):
        assert (await upload_document(harness, record)).status_code == 201
    response = await upload_document(
        harness, record, caller=await harness.create_api_key("subscribers:write")
    )
    assert (response.status_code, response.json()["code"]) == (403, "OTP_REQUIRED")
