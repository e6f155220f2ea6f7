"""Saved replies: order, labels, languages, limits, access and the audit log."""

import asyncio
from typing import Any

import httpx2
import pytest

from drivers.actors import require_success
from harness import BearerAuth, Harness
from tapgate_client import ids
from tapgate_client.schemas.saved_replies import (
    MAX_LABEL_LENGTH,
    MAX_SAVED_REPLIES,
    SavedReplyTexts,
)
from tapgate_client.schemas.subscribers import SubscriberLanguage
from tapgate_client.schemas.support import MAX_REPLY_LENGTH

URL = "/api/v1/support/saved-replies"
BUILT_IN = ["Checking", "Lost card", "Wrong recipient", "Never share your PIN", "Solved"]


@pytest.fixture
async def support(harness: Harness) -> BearerAuth:
    return await harness.create_admin("S")


async def list_all(harness: Harness, auth: BearerAuth) -> list[dict[str, Any]]:
    return list(require_success(await harness.get(URL, auth=auth))["data"])


async def list_labels(harness: Harness, auth: BearerAuth) -> list[str]:
    replies = await list_all(harness, auth)
    assert [reply["position"] for reply in replies] == list(range(1, len(replies) + 1))
    return [reply["label"] for reply in replies]


async def create(
    harness: Harness, auth: BearerAuth, label: str = "Opening hours", **fields: Any
) -> httpx2.Response:
    body = {"label": label, "texts": {"en": "From 8 to 18."}, **fields}
    return await harness.post(URL, json=body, auth=auth)


def get_problem(response: httpx2.Response) -> tuple[int, str, list[str]]:
    body = response.json()
    return response.status_code, body["code"], list(body.get("details", {}).get("fields", {}))


async def test_installation_has_replies_in_every_language_of_customers(
    harness: Harness, support: BearerAuth
) -> None:
    assert await list_labels(harness, support) == BUILT_IN
    languages = set(SubscriberLanguage)
    assert set(SavedReplyTexts.__struct_fields__) == languages
    for reply in await list_all(harness, support):
        assert {name for name, text in reply["texts"].items() if text} == languages
    assert (await list_all(harness, support))[0]["texts"]["fr"].startswith("Merci pour votre")


async def test_reply_is_created_read_changed_and_deleted(
    harness: Harness, support: BearerAuth
) -> None:
    created = require_success(await create(harness, support, " Hours "))
    assert (created["label"], created["position"]) == ("Hours", len(BUILT_IN) + 1)
    assert created["texts"] == {"en": "From 8 to 18.", "fr": None}
    url = f"{URL}/{created['id']}"
    assert require_success(await harness.get(url, auth=support)) == created

    texts = {"en": "From 9 to 18.", "fr": "De 9 h à 18 h."}
    changed = require_success(await harness.put(url, json={"texts": texts}, auth=support))
    assert (changed["label"], changed["texts"]) == ("Hours", texts)
    changed = require_success(await harness.put(url, json={"label": "Times"}, auth=support))
    assert (changed["label"], changed["texts"]) == ("Times", texts)
    # The texts are replaced in all languages.
    body = {"texts": {"en": "From 9 to 18."}}
    changed = require_success(await harness.put(url, json=body, auth=support))
    assert changed["texts"] == {"en": "From 9 to 18.", "fr": None}
    assert (await list_all(harness, support))[-1] == changed

    assert (await harness.delete(url, auth=support)).status_code == 204
    assert await list_labels(harness, support) == BUILT_IN
    for response in (
        await harness.get(url, auth=support),
        await harness.put(url, json={}, auth=support),
        await harness.delete(url, auth=support),
        await harness.get(f"{URL}/{ids.encode(ids.RULE, 1)}", auth=support),
    ):
        assert get_problem(response)[:2] == (404, "NOT_FOUND")
        assert response.json()["message"] == "No such saved reply."


async def test_position_moves_a_reply_and_the_others_keep_their_order(
    harness: Harness, support: BearerAuth
) -> None:
    second = require_success(await create(harness, support, "Second", position=2))
    assert second["position"] == 2
    assert await list_labels(harness, support) == [BUILT_IN[0], "Second", *BUILT_IN[1:]]
    url = f"{URL}/{second['id']}"
    for position, expected, order in (
        (4, 4, [*BUILT_IN[:3], "Second", *BUILT_IN[3:]]),
        (1, 1, ["Second", *BUILT_IN]),
        (MAX_SAVED_REPLIES, 6, [*BUILT_IN, "Second"]),
    ):
        moved = await harness.put(url, json={"position": position}, auth=support)
        assert require_success(moved)["position"] == expected
        assert await list_labels(harness, support) == order
    first = (await list_all(harness, support))[0]
    await harness.delete(f"{URL}/{first['id']}", auth=support)
    assert await list_labels(harness, support) == [*BUILT_IN[1:], "Second"]


@pytest.mark.parametrize(
    "fields, name",
    [
        ({"label": ""}, "label"),
        ({"label": "   "}, "label"),
        ({"label": "x" * (MAX_LABEL_LENGTH + 1)}, "label"),
        ({"texts": {"en": ""}}, "texts.en"),
        ({"texts": {"en": "x" * (MAX_REPLY_LENGTH + 1)}}, "texts.en"),
        ({"texts": {"en": "Hello", "fr": " "}}, "texts.fr"),
        ({"texts": {"en": "a\0b"}}, "texts.en"),
        ({"position": 0}, "position"),
        ({"position": MAX_SAVED_REPLIES + 1}, "position"),
    ],
)
async def test_invalid_field_is_named(
    harness: Harness, support: BearerAuth, fields: dict[str, Any], name: str
) -> None:
    existing = (await list_all(harness, support))[0]
    changed = await harness.put(f"{URL}/{existing['id']}", json=fields, auth=support)
    created = await create(harness, support, **{"label": "New", **fields})
    assert get_problem(changed) == get_problem(created) == (422, "VALIDATION_FAILED", [name])


async def test_text_in_english_is_required(harness: Harness, support: BearerAuth) -> None:
    response = await create(harness, support, texts={"fr": "Bonjour"})
    assert response.status_code == 400 and "en" in response.json()["message"]


async def test_label_is_unique_in_upper_and_lower_case(
    harness: Harness, support: BearerAuth
) -> None:
    duplicate = (409, "DUPLICATE_REFERENCE", ["label"])
    assert get_problem(await create(harness, support, "SOLVED")) == duplicate
    first, *_, last = await list_all(harness, support)
    url = f"{URL}/{first['id']}"
    response = await harness.put(url, json={"label": "solved"}, auth=support)
    assert get_problem(response) == duplicate
    # Its own label is not a duplicate.
    url = f"{URL}/{last['id']}"
    require_success(await harness.put(url, json={"label": "SOLVED"}, auth=support))


async def test_concurrent_creations_keep_labels_positions_and_the_limit(
    harness: Harness, support: BearerAuth
) -> None:
    twins = await asyncio.gather(*(create(harness, support, "Twin") for _ in range(3)))
    assert sorted(item.status_code for item in twins) == [201, 409, 409]
    free = MAX_SAVED_REPLIES - len(BUILT_IN) - 1
    made = await asyncio.gather(*(create(harness, support, f"R{n}") for n in range(free + 2)))
    rejected = [item for item in made if item.status_code != 201]
    assert [get_problem(item)[:2] for item in rejected] == [(422, "VALIDATION_FAILED")] * 2
    assert len(await list_labels(harness, support)) == MAX_SAVED_REPLIES


async def test_other_roles_cannot_read_or_change_them(harness: Harness) -> None:
    for role in "CF":
        auth = await harness.create_admin(role)
        assert (await harness.get(URL, auth=auth)).status_code == 403
        assert (await create(harness, auth)).status_code == 403


async def test_changes_are_audited_with_old_and_new_values(
    harness: Harness, support: BearerAuth
) -> None:
    created = require_success(await create(harness, support))
    url = f"{URL}/{created['id']}"
    await harness.put(url, json={"texts": {"en": "Closed."}, "position": 1}, auth=support)
    await harness.put(url, json={"label": created["label"]}, auth=support)  # no change
    await harness.delete(url, auth=support)
    entries = await harness.get(
        "/api/v1/audit/logs",
        params={"resource_id": created["id"]},
        auth=await harness.create_admin("A"),
    )
    events = require_success(entries)["data"]
    assert [entry["event"] for entry in events] == [
        "saved_reply.deleted",
        "saved_reply.updated",
        "saved_reply.created",
    ]
    assert {entry["actor"]["id"] for entry in events} == {support.id}
    old, new = {"en": "From 8 to 18.", "fr": None}, {"en": "Closed.", "fr": None}
    assert events[1]["changes"] == {"texts": [old, new], "position": [6, 1]}
