"""Subscriber timeline: all sources in order, by role, in pages, without texts and values."""

from typing import Any

from builders.timeline import TEXT, create_history, get_page
from harness import WRONG_PIN, Harness, split_words
from tapgate.runtime.store.database import Database


async def list_events(
    harness: Harness, subscriber: dict[str, Any], role: str = "A", **query: str
) -> list[tuple[str, str]]:
    page = await get_page(harness, subscriber, role, **query)
    return [(item["kind"], item["event"]) for item in page["data"]]


async def test_timeline_merges_all_sources(harness: Harness) -> None:
    customer = await create_history(harness)
    page = await get_page(harness, customer)
    events = [(item["kind"], item["event"]) for item in page["data"]]
    assert {
        ("transaction", "pos_payment"),
        ("pin", "wrong_pin"),
        ("pin", "subscriber.pin_reset_requested"),
        ("kyc", "subscriber.kyc_document_added"),
        ("support", "customer"),
        ("alert", "STOLEN_PHONE"),
        ("message", "one_time_code"),
        ("chat", "send"),
        ("action", "subscriber.blocked"),
    } <= set(events)
    assert events.count(("pin", "wrong_pin")) == 1
    assert events[:2] == [("message", "wallet_changed"), ("action", "subscriber.blocked")]
    blocked = page["data"][1]
    assert (blocked["reason"], blocked["actor_type"]) == ("Lost phone", "admin")
    declined, paid = [item for item in page["data"] if item["event"] == "pos_payment"]
    assert (paid["status"], paid["amount"], paid["direction"]) == ("completed", "30.00", "debit")
    assert declined["status"] == "failed" and declined["failure_code"]
    assert not page["has_more"]


async def test_timeline_contains_no_texts(harness: Harness) -> None:
    customer = await create_history(harness)
    response = await harness.get(
        f"/api/v1/subscribers/{customer['id']}/timeline", auth=await harness.create_admin("A")
    )
    assert TEXT not in response.text and WRONG_PIN not in split_words(response.text)


async def test_role_sees_only_what_it_may_read(harness: Harness) -> None:
    customer = await create_history(harness)
    kinds_by_role = {
        role: {kind for kind, _ in await list_events(harness, customer, role)} for role in "CSF"
    }
    assert kinds_by_role["C"] == {
        "transaction", "pin", "message", "chat", "kyc", "alert", "action",
    }  # fmt: skip
    assert kinds_by_role["S"] == {
        "transaction", "pin", "message", "chat", "kyc", "support", "action",
    }  # fmt: skip
    assert kinds_by_role["F"] == {"transaction", "pin", "message", "kyc", "action"}
    page = await get_page(harness, customer, "S", kind="action")
    assert {item["reason"] for item in page["data"]} == {None}


async def test_pages_contain_each_item_once(harness: Harness) -> None:
    customer = await create_history(harness)
    expected = (await get_page(harness, customer))["data"]
    listed: list[dict[str, Any]] = []
    cursor: dict[str, str] = {}
    while True:
        page = await get_page(harness, customer, limit="2", **cursor)
        assert len(page["data"]) <= 2
        listed += page["data"]
        if not page["has_more"]:
            break
        cursor = {"cursor": page["next_cursor"]}
    assert listed == expected


async def test_timeline_can_be_filtered_by_kind(harness: Harness) -> None:
    customer = await create_history(harness)
    for kind in ("transaction", "pin", "message", "chat", "support", "kyc", "alert", "action"):
        events = await list_events(harness, customer, kind=kind)
        assert {item for item, _ in events} == {kind}


async def test_timeline_of_another_customer_is_separate(
    harness: Harness, database: Database
) -> None:
    await create_history(harness)
    other = await harness.create_subscriber()
    assert await list_events(harness, other) == [("action", "subscriber.created")]
