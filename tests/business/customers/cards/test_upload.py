"""Card upload by CSV: new rows become cards, and invalid rows are reported one by one."""

import asyncio
import time
from typing import Any

import httpx2
import pytest

from builders.participants import CARDS_URL, create_card, get_card
from cases import each
from harness import Harness
from tapgate.business.customers.cards import upload as cards_upload
from tapgate.business.customers.cards.uids import parse_uid
from tapgate.business.customers.cards.upload import LOCK_KEY
from tapgate_client.clock import get_platform_day

HEADER = "Serial No.,MAC Address\n"
HEADER_WITH_EXPIRY = "Serial No.,MAC Address,Expiry Date\n"


async def upload_csv(
    harness: Harness, file: str | bytes, *, caller: Any = None, content_type: str = "text/csv"
) -> httpx2.Response:
    return await harness.post(
        f"{CARDS_URL}/upload-csv",
        content=file,
        headers={"Content-Type": content_type},
        auth=caller or await harness.create_admin(),
    )


async def upload_and_get_result(harness: Harness, file: str | bytes) -> dict[str, Any]:
    response = await upload_csv(harness, file)
    assert response.status_code == 200, response.text
    body: dict[str, Any] = response.json()
    assert list(body) == ["success", "message", "total", "created", "skipped", "errors"]
    assert body["total"] == body["created"] + body["skipped"] + len(body["errors"])
    return body


async def upload_and_get_error(harness: Harness, line: str, *, header: str = HEADER) -> str:
    """Upload one row and return its error."""
    (error,) = (await upload_and_get_result(harness, header + line))["errors"]
    assert error["row"] == 2
    message: str = error["error"]
    return message


async def test_rows_create_unassigned_cards(harness: Harness) -> None:
    file = f"{HEADER_WITH_EXPIRY}UP-1,04:a2:b3:c4:d5:e6:f7,2090-01-31\nUP-2,,\n"
    assert await upload_and_get_result(harness, file) == {
        "success": True,
        "message": "Cards uploaded",
        "total": 2,
        "created": 2,
        "skipped": 0,
        "errors": [],
    }
    record = await get_card(harness, "UP-1")
    assert record["mac_address"] == "04:A2:B3:C4:D5:E6:F7"
    assert record["expires_at"] == "2090-01-31T23:59:59.999Z"
    assert record["status"] == "UNASSIGNED"
    assert record["created_at"] == record["updated_at"]
    record = await get_card(harness, "UP-2")
    assert (record["mac_address"], record["expires_at"], record["type"]) == (None, None, None)


async def test_multipart_upload_is_accepted(harness: Harness) -> None:
    admin = await harness.create_admin()
    files = {
        "note": (None, "first batch"),
        "file": ("cards.csv", f"{HEADER}UP-1,\nUP-2,\n", "text/csv"),
    }
    response = await harness.post(f"{CARDS_URL}/upload-csv", files=files, auth=admin)
    assert (response.status_code, response.json()["created"]) == (200, 2)


async def test_malformed_multipart_upload_is_rejected(harness: Harness) -> None:
    admin = await harness.create_admin()
    part = '--b\r\nContent-Disposition: form-data; name="{}"\r\n\r\n' + HEADER + "UP-1,\r\n"
    form = "multipart/form-data; boundary=b"
    for content_type, body, field in [
        (form, part.format("other") + "--b--\r\n", "file"),
        (form, part.format("file") * 2 + "--b--\r\n", "file"),
        (form, part.format("file"), "body"),
        (form, part.format("file")[:30], "body"),
        (form, "", "body"),
        (form, f"{HEADER}UP-1,\n", "body"),
        (form, "--b\r\n" + "X-Many: 1\r\n" * 50 + "\r\n\r\n--b--", "body"),
        (form, "--b\r\nX: " + "y" * 50_000 + "\r\n\r\n\r\n--b--", "body"),
        ("multipart/form-data", part.format("file") + "--b--\r\n", "body"),
        ("multipart/form-data; boundary=", part.format("file") + "--b--\r\n", "body"),
        (f"multipart/form-data; boundary={'b' * 500}", "--b--", "body"),
        ("multipart/form-data; boundary=é", "--b--", "body"),
    ]:
        response = await harness.post(
            f"{CARDS_URL}/upload-csv",
            content=body,
            headers={b"Content-Type": content_type.encode("latin-1")},
            auth=admin,
        )
        assert (response.status_code, response.json()["code"]) == (400, "INVALID_REQUEST"), body
        assert list(response.json()["details"]["fields"]) == [field], body
    assert (await harness.get(CARDS_URL, auth=admin)).json()["data"] == []


async def test_header_is_required_but_case_spaces_and_quotes_are_ignored(harness: Harness) -> None:
    for good in (
        "\ufeffSerial No.,MAC Address\n",
        " serial no. , MAC ADDRESS ,expiry date\r\n",
        '"Serial No.","MAC Address"\r',
        "Serial No.,MAC Address",
    ):
        assert (await upload_and_get_result(harness, good))["total"] == 0
    for bad in (
        "",
        "\n" + HEADER,
        "Serial,MAC\n",
        "Serial No.;MAC Address\n",
        "MAC Address,Serial No.\n",
        "Serial No.\n",
        "Serial No.,MAC Address,Colour\n",
        "Serial No.,MAC Address,Expiry Date,Colour\n",
        "UP-1,04:A2:B3:C4\n",
        "{}",
    ):
        response = await upload_csv(harness, f"{bad}UP-1,\n" if bad.endswith("\n") else bad)
        assert response.status_code == 422, bad
        assert list(response.json()["details"]["fields"]) == ["file"]


@each(
    "file",
    [
        HEADER.encode() + b"UP-\xff,\n",
        HEADER.encode("utf-16"),
        f'{HEADER}UP-1,\n"UP-2,\nUP-3,\n',
        f'{HEADER}"UP-1"x,\n',
        HEADER + "U" * 200_000 + ",\n",
    ],
)
async def test_malformed_csv_is_rejected_as_a_whole(harness: Harness, file: str | bytes) -> None:
    response = await upload_csv(harness, file)
    assert response.status_code == 422
    assert list(response.json()["details"]["fields"]) == ["file"]
    assert "UP-" not in response.text
    response = await harness.get(CARDS_URL, auth=harness.get_service_auth())
    assert response.json()["data"] == []


async def test_quotes_blank_lines_and_line_endings_are_parsed(harness: Harness) -> None:
    file = (
        f'{HEADER.strip()}\r\n\r\n"UP-1","04:A2:B3:C4"\r\n   \r\n,\r\n UP-2 , 04-A2-B3-C5 ,\r\n'
        '"UP\n-3",\r\nUP-4,bad\r\nUP-5'
    )
    outcome = await upload_and_get_result(harness, file)
    assert (outcome["created"], outcome["total"]) == (3, 5)
    assert [(error["row"], error["serial"]) for error in outcome["errors"]] == [
        (7, "UP-3"),
        (9, "UP-4"),
    ]
    assert (await get_card(harness, "UP-2"))["mac_address"] == "04:A2:B3:C5"
    assert (await get_card(harness, "UP-5"))["mac_address"] is None


async def test_valid_rows_are_stored_when_other_rows_are_invalid(harness: Harness) -> None:
    await create_card(harness, serial="HERE-1", uid="DE:AD:BE:EF")
    today = get_platform_day(harness.services.clock(), harness.services.settings.timezone)
    file = HEADER_WITH_EXPIRY + "\n".join(
        [
            "UP-1,04:A2:B3:C4,",
            "no serial,,",
            "UP-1,,",
            "UP-3,04-a2-b3-c4,",
            "HERE-1,,",
            "UP-4,deadbeef,",
            "UP-5,08:11:22:33,",
            "UP-6,,2020-01-01",
            "UP-7,,31.01.2090",
            f"UP-8,,{today}",
            "UP-9,,,surplus",
            ",04:A2:B3:C9,",
            "UP-10,,,,",
        ]
    )
    outcome = await upload_and_get_result(harness, file)
    assert (outcome["created"], outcome["skipped"]) == (3, 1)
    assert [(item["row"], item["serial"], item["error"]) for item in outcome["errors"]] == [
        (3, "no serial", "Serial No. must be 1 to 32 letters, digits or dashes"),
        (4, "UP-1", "Serial No. is a duplicate of row 2"),
        (5, "UP-3", "MAC Address is a duplicate of row 2"),
        (7, "UP-4", "MAC Address is already used by another card"),
        (8, "UP-5", "MAC Address must not be a random UID (08...), which changes at every tap"),
        (9, "UP-6", "Expiry Date must not be in the past"),
        (10, "UP-7", "Expiry Date must be a date such as 2026-01-31"),
        (12, "UP-9", "The row has more fields than the header"),
        (13, "", "Serial No. must be 1 to 32 letters, digits or dashes"),
    ]
    response = await harness.get(CARDS_URL, auth=harness.get_service_auth())
    assert [record["serial"] for record in response.json()["data"]] == [
        "UP-10", "UP-8", "UP-1", "HERE-1",
    ]  # fmt: skip
    assert (await get_card(harness, "HERE-1"))["mac_address"] == "DE:AD:BE:EF"


async def test_rejected_row_does_not_reserve_its_serial(harness: Harness) -> None:
    outcome = await upload_and_get_result(harness, f"{HEADER}UP-1,bad\nUP-1,04:A2:B3:C4\n")
    assert (outcome["created"], len(outcome["errors"])) == (1, 1)


async def test_uid_is_parsed_in_every_notation() -> None:
    for text, uid in [
        ("04a2b3c4", "04:A2:B3:C4"),
        ("04:a2:b3:c4", "04:A2:B3:C4"),
        ("04-A2-B3-C4-D5-E6", "04:A2:B3:C4:D5:E6"),
        ("04A2B3C4D5E6F7", "04:A2:B3:C4:D5:E6:F7"),
        ("04A2B3C4D5E6F7080910", "04:A2:B3:C4:D5:E6:F7:08:09:10"),
    ]:
        assert parse_uid(text) == uid
    for wrong in (
        "",
        "04",
        "04:A2:B3",
        "04:A2:B3:C4:D5",
        "04:A2-B3:C4",
        "04:A2:B3C4",
        "04:A2:B3:C4:",
        ":04:A2:B3:C4",
        "04:A2:B3:G4",
        "4:A2:B3:C4",
        "04 A2 B3 C4",
        "0４A2B3C4",
        "04A2B3C4\n",
        "00" * 100,
    ):
        assert parse_uid(wrong) is None, wrong


async def test_only_four_byte_uids_that_start_with_08_are_rejected_as_random(
    harness: Harness,
) -> None:
    assert "random" in await upload_and_get_error(harness, "UP-1,08A1B2C3")
    assert (await upload_and_get_result(harness, f"{HEADER}UP-1,08A1B2C3D4E5F6\n"))["created"] == 1
    assert "bytes" in await upload_and_get_error(harness, "UP-2,08A1B2")


async def test_expiry_is_the_end_of_the_day_in_the_platform_timezone(harness: Harness) -> None:
    services = harness.services
    zone = type(services.settings.timezone)("Asia/Tokyo")
    services.settings = services.settings.replace(timezone=zone)
    await upload_and_get_result(harness, f"{HEADER_WITH_EXPIRY}UP-1,,2090-06-30\n")
    assert (await get_card(harness, "UP-1"))["expires_at"] == "2090-06-30T14:59:59.999Z"
    for last in ("9999-12-31", "10000-01-01", "0001-01-01"):
        found = await upload_and_get_error(harness, f"UP-2,,{last}", header=HEADER_WITH_EXPIRY)
        assert "Expiry Date" in found


async def test_invalid_serial_is_echoed_truncated_and_other_values_are_not(
    harness: Harness,
) -> None:
    invalid_serial = "=cmd|' /C calc'!A0\x00\u202e\x1b[31m" + "x" * 100
    response = await upload_csv(harness, f"{HEADER}{invalid_serial},sEcReT\nUP-1,sEcReT\n")
    first, second = response.json()["errors"]
    assert first["serial"] == "=cmd|' /C calc'!A0[31mxxxxxxxxxx"
    assert len(first["serial"]) == 32
    assert second["serial"] == "UP-1"
    assert "sEcReT" not in response.text


async def test_repeated_upload_changes_nothing(harness: Harness) -> None:
    file = HEADER + "".join(f"UP-{n},04A2B3{n:02X}\n" for n in range(20))
    assert (await upload_and_get_result(harness, file))["created"] == 20
    before = (await harness.get(CARDS_URL, auth=harness.get_service_auth())).json()
    outcome = await upload_and_get_result(harness, file)
    assert (outcome["total"], outcome["created"], outcome["skipped"]) == (20, 0, 20)
    assert (await harness.get(CARDS_URL, auth=harness.get_service_auth())).json() == before


async def test_concurrent_uploads_with_the_same_uids_create_one_set_of_cards(
    harness: Harness,
) -> None:
    admin = await harness.create_admin()
    files = [
        HEADER + "".join(f"{name}-{n},04A2B3{n * step % 101:02X}\n" for n in range(1, 101))
        for name, step in (("A", 1), ("B", 100))
    ]
    responses = await asyncio.gather(*(upload_csv(harness, file, caller=admin) for file in files))
    assert sorted(response.json()["created"] for response in responses) == [0, 100]


async def test_waiting_uploads_do_not_exhaust_the_connection_pool(
    harness: Harness, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock_reads: list[float] = []

    def read_clock() -> float:
        """Record the call: an upload reads the clock when it starts and after each attempt."""
        clock_reads.append(time.monotonic())
        return clock_reads[-1]

    monkeypatch.setattr(cards_upload, "monotonic", read_clock)
    admin = await harness.create_admin()
    record = await harness.create_subscriber()
    async with harness.services.transaction() as other_tx:
        await other_tx.execute("SELECT pg_advisory_xact_lock($1)", LOCK_KEY)
        uploads = [
            asyncio.create_task(upload_csv(harness, f"{HEADER}W-{number},\n", caller=admin))
            for number in range(12)
        ]
        async with asyncio.timeout(30):
            while len(clock_reads) < 3 * len(uploads):
                await asyncio.sleep(0.01)
        url = f"/api/v1/subscribers/{record['id']}"
        assert (await harness.get(url, auth=harness.get_service_auth())).status_code == 200
    assert [response.json()["created"] for response in await asyncio.gather(*uploads)] == [1] * 12


async def test_upload_gets_503_if_another_upload_holds_the_lock_too_long(
    harness: Harness, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cards_upload, "UPLOAD_TIMEOUT_SECONDS", 0.3)
    async with harness.services.transaction() as other_tx:
        await other_tx.execute("SELECT pg_advisory_xact_lock($1)", LOCK_KEY)
        response = await upload_csv(harness, f"{HEADER}W-1,\n")
        assert (response.status_code, response.json()["code"]) == (503, "SERVICE_UNAVAILABLE")


async def test_upload_accepts_at_most_ten_thousand_rows(harness: Harness) -> None:
    lines = [f"BULK-{n:05d},{n:014X},2090-01-31\n" for n in range(10_000)]
    assert await upload_and_get_result(harness, HEADER_WITH_EXPIRY + "".join(lines)) == {
        "success": True,
        "message": "Cards uploaded",
        "total": 10_000,
        "created": 10_000,
        "skipped": 0,
        "errors": [],
    }
    row = await harness.database.fetchrow(
        """SELECT count(*), count(DISTINCT uid) AS uids, count(DISTINCT expires_at) AS days,
                  min(serial) AS first, max(serial) AS last FROM cards"""
    )
    assert row is not None
    assert tuple(row) == (10_000, 10_000, 1, "BULK-00000", "BULK-09999")
    assert (await get_card(harness, "BULK-07777"))["mac_address"] == parse_uid(f"{7777:014X}")
    outcome = await upload_and_get_result(harness, HEADER_WITH_EXPIRY + "".join(lines))
    assert (outcome["created"], outcome["skipped"]) == (0, 10_000)
    response = await upload_csv(harness, HEADER_WITH_EXPIRY + "".join(lines) + "BULK-10000,,\n")
    assert response.status_code == 422
    assert list(response.json()["details"]["fields"]) == ["file"]


async def test_ten_thousand_invalid_rows_are_reported(harness: Harness) -> None:
    outcome = await upload_and_get_result(harness, HEADER + "bad serial,\n" * 10_000)
    assert len(outcome["errors"]) == 10_000
    assert outcome["errors"][-1]["row"] == 10_001


async def test_file_larger_than_eight_mebibytes_is_rejected(harness: Harness) -> None:
    lines = (b" " * 1023 + b"\n") * 8 * 1024
    response = await upload_csv(harness, HEADER.encode() + lines)
    assert (response.status_code, response.json()["code"]) == (413, "PAYLOAD_TOO_LARGE")
    response = await upload_csv(harness, HEADER.encode() + lines[len(HEADER) :])
    assert response.status_code == 200


async def test_upload_is_audited_once(harness: Harness) -> None:
    admin = await harness.create_admin()
    await upload_csv(harness, f"{HEADER}UP-1,\nUP-2,\nUP-3,bad\n", caller=admin)
    rows = await harness.database.fetch(
        "SELECT actor, resource_id, changes FROM audit_entries WHERE event = 'card.uploaded'"
    )
    (entry,) = rows
    assert (entry["actor"]["id"], entry["resource_id"]) == (admin.id, None)
    assert entry["changes"] == {"created": [None, 2], "skipped": [None, 0], "errors": [None, 1]}
