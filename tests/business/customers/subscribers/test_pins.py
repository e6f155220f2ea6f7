"""PIN verification, change and reset, with attempt limits that hold under concurrency."""

from typing import Any

import httpx2

from harness import PIN, WRONG_PIN, Harness, parse_error, split_words

URL = "/api/v1/subscribers"
NEW_PIN = "5927"


async def verify_pin(harness: Harness, record: dict[str, Any], pin: str = PIN) -> httpx2.Response:
    return await harness.post(
        f"{URL}/{record['id']}/verify-pin", json={"pin": pin}, auth=harness.get_service_auth()
    )


async def change_pin(
    harness: Harness, record: dict[str, Any], old_pin: str = PIN, new_pin: str = NEW_PIN
) -> httpx2.Response:
    return await harness.post(
        f"{URL}/{record['id']}/change-pin",
        json={"old_pin": old_pin, "new_pin": new_pin},
        auth=harness.get_service_auth(),
    )


async def is_correct_pin(harness: Harness, record: dict[str, Any], pin: str) -> bool:
    return (await verify_pin(harness, record, pin)).status_code == 200


async def lock_pin(harness: Harness, record: dict[str, Any]) -> None:
    for _ in range(3):
        await verify_pin(harness, record, WRONG_PIN)


async def test_correct_pin_is_verified(harness: Harness) -> None:
    record = await harness.create_subscriber()
    response = await verify_pin(harness, record)
    assert response.status_code == 200
    assert response.json() == {"success": True, "verified": True, "message": "PIN verified"}


async def test_three_consecutive_wrong_pins_lock_the_pin(harness: Harness) -> None:
    record = await harness.create_subscriber()
    for remaining in (2, 1, 0):
        response = await verify_pin(harness, record, WRONG_PIN)
        assert (response.status_code, response.json()["code"]) == (400, "INVALID_PIN")
        assert response.json()["details"] == {"attempts_remaining": remaining}
        assert WRONG_PIN not in split_words(response.text)
    response = await verify_pin(harness, record)
    assert (response.status_code, response.json()["code"]) == (403, "ACCOUNT_LOCKED")
    subscriber = await harness.get(f"{URL}/{record['id']}", auth=harness.get_service_auth())
    assert subscriber.json()["pin_locked_until"] == response.json()["details"]["locked_until"]
    assert subscriber.json()["pin_locked_until"] is not None


async def test_expired_pin_lock_is_not_in_the_record(harness: Harness) -> None:
    record = await harness.create_subscriber()
    await lock_pin(harness, record)
    harness.advance_clock(minutes=31)
    subscriber = await harness.get(f"{URL}/{record['id']}", auth=harness.get_service_auth())
    assert subscriber.json()["pin_locked_until"] is None


async def test_pin_of_a_blocked_subscriber_can_be_verified(harness: Harness) -> None:
    record = await harness.create_subscriber()
    await harness.post(
        f"{URL}/{record['id']}/block", json={"reason": "r"}, auth=await harness.create_admin()
    )
    assert (await verify_pin(harness, record)).status_code == 200


async def test_failed_pin_attempts_are_audited(harness: Harness) -> None:
    record = await harness.create_subscriber()
    await verify_pin(harness, record)
    for _ in range(4):
        await verify_pin(harness, record, WRONG_PIN)
    entries = await harness.list_audit_entries(record["id"], "subscriber.pin_verified")
    assert [(entry["result"], entry["reason"]) for entry in entries] == [
        ("failure", "INVALID_PIN"),
        ("failure", "INVALID_PIN"),
        ("failure", "INVALID_PIN"),
        ("failure", "ACCOUNT_LOCKED"),
    ]


async def test_change_replaces_the_pin(harness: Harness) -> None:
    record = await harness.create_subscriber()
    response = await change_pin(harness, record)
    assert response.status_code == 200
    assert response.json() == {"success": True, "message": "PIN changed"}
    assert not await is_correct_pin(harness, record, PIN)
    assert await is_correct_pin(harness, record, NEW_PIN)
    (entry,) = await harness.list_audit_entries(record["id"], "subscriber.pin_changed")
    assert entry["changes"] == {"pin": ["***", "***"]}


async def test_change_with_a_wrong_pin_is_counted_and_changes_nothing(harness: Harness) -> None:
    record = await harness.create_subscriber()
    response = await change_pin(harness, record, old_pin=WRONG_PIN)
    assert (response.status_code, response.json()["code"]) == (400, "INVALID_PIN")
    assert response.json()["details"] == {"attempts_remaining": 2}
    assert await is_correct_pin(harness, record, PIN)


async def test_new_pin_must_differ_from_the_old_pin(harness: Harness) -> None:
    record = await harness.create_subscriber()
    assert parse_error(await change_pin(harness, record, new_pin=PIN)) == (400, "SAME_PIN")


async def test_same_pin_check_does_not_reveal_the_pin(harness: Harness) -> None:
    record = await harness.create_subscriber()
    response = await change_pin(harness, record, old_pin=WRONG_PIN, new_pin=WRONG_PIN)
    assert (response.status_code, response.json()["code"]) == (400, "INVALID_PIN")
    assert response.json()["details"] == {"attempts_remaining": 2}


async def test_malformed_change_is_400_and_not_counted_as_an_attempt(harness: Harness) -> None:
    record = await harness.create_subscriber()
    await verify_pin(harness, record, WRONG_PIN)
    bodies: list[tuple[dict[str, Any], str]] = [
        ({"new_pin": NEW_PIN}, "old_pin"),
        ({"old_pin": PIN}, "new_pin"),
        ({"old_pin": PIN, "new_pin": 5927}, "new_pin"),
        ({"old_pin": PIN, "new_pin": "59271"}, "new_pin"),
        ({"old_pin": "", "new_pin": NEW_PIN}, "old_pin"),
        ({"old_pin": PIN, "new_pin": "59\0 7"}, "new_pin"),
        ({"old_pin": PIN, "new_pin": "5" * 10_000}, "new_pin"),
    ]
    for body, field in bodies:
        response = await harness.post(
            f"{URL}/{record['id']}/change-pin", json=body, auth=harness.get_service_auth()
        )
        assert (response.status_code, response.json()["code"]) == (400, "INVALID_REQUEST"), body
        assert list(response.json()["details"]["fields"]) == [field]
        assert PIN not in split_words(response.text)
        assert "59" not in response.text
    response = await verify_pin(harness, record, WRONG_PIN)
    assert response.json()["details"] == {"attempts_remaining": 1}


async def test_weak_new_pin_is_rejected_with_400(harness: Harness) -> None:
    record = await harness.create_subscriber()
    response = await change_pin(harness, record, new_pin="1111")
    assert (response.status_code, response.json()["code"]) == (400, "INVALID_REQUEST")
    assert list(response.json()["details"]["fields"]) == ["new_pin"]
    assert await is_correct_pin(harness, record, PIN)


async def request_reset_code(harness: Harness, record: dict[str, Any]) -> str:
    response = await harness.post(
        f"{URL}/{record['id']}/reset-pin", auth=await harness.create_admin("S")
    )
    assert response.status_code == 200
    assert list(response.json()) == ["success", "message"]
    code = await harness.get_pending_code(record["phone_number"])
    assert code not in response.text
    return code


async def test_one_time_code_uses_the_language_of_the_subscriber(harness: Harness) -> None:
    await request_reset_code(harness, await harness.create_subscriber(language="fr"))
    assert await harness.services.database.fetchval("SELECT language FROM messages") == "fr"


async def confirm_reset(
    harness: Harness, record: dict[str, Any], code: str, new_pin: str = NEW_PIN
) -> httpx2.Response:
    return await harness.post(
        f"{URL}/{record['id']}/reset-pin/confirm",
        json={"otp": code, "new_pin": new_pin},
        auth=harness.get_service_auth(),
    )


async def test_reset_code_sets_a_new_pin_and_releases_the_lock(harness: Harness) -> None:
    record = await harness.create_subscriber()
    await lock_pin(harness, record)
    response = await confirm_reset(harness, record, await request_reset_code(harness, record))
    assert response.status_code == 200
    assert response.json() == {"success": True, "message": "PIN reset"}
    assert await is_correct_pin(harness, record, NEW_PIN)
    count = len(await harness.list_audit_entries(record["id"], "subscriber.pin_reset_requested"))
    assert count == 1
    (entry,) = await harness.list_audit_entries(record["id"], "subscriber.pin_reset")
    assert (entry["result"], entry["changes"]) == ("success", {"pin": ["***", "***"]})


async def test_weak_pin_does_not_consume_the_reset_code(harness: Harness) -> None:
    record = await harness.create_subscriber()
    code = await request_reset_code(harness, record)
    response = await confirm_reset(harness, record, code, "1111")
    assert response.status_code == 422
    assert list(response.json()["details"]["fields"]) == ["new_pin"]
    assert (await confirm_reset(harness, record, code)).status_code == 200


async def test_malformed_confirmation_is_not_counted_as_an_attempt(harness: Harness) -> None:
    record = await harness.create_subscriber()
    code = await request_reset_code(harness, record)
    bodies: list[tuple[dict[str, Any], int, str]] = [
        ({"new_pin": NEW_PIN}, 400, "otp"),
        ({"otp": "123456"}, 400, "new_pin"),
        ({"otp": 123456, "new_pin": NEW_PIN}, 400, "otp"),
        ({"otp": "12345", "new_pin": NEW_PIN}, 422, "otp"),
        ({"otp": "123456", "new_pin": "abcd"}, 422, "new_pin"),
    ]
    for body, status, field in bodies:
        response = await harness.post(
            f"{URL}/{record['id']}/reset-pin/confirm", json=body, auth=harness.get_service_auth()
        )
        assert response.status_code == status
        assert list(response.json()["details"]["fields"]) == [field]
    assert (await confirm_reset(harness, record, code)).status_code == 200
