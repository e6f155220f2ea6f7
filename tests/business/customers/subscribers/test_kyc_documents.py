"""KYC documents: images are validated, re-encoded and encrypted, and access is limited."""

import asyncio
import base64
import io
import threading
import time
import zlib
from typing import Any

import httpx2
import pytest
from PIL import Image

from builders.kyc_documents import (
    PNG,
    RED,
    URL,
    build_data_uri,
    build_image,
    build_png_chunk,
    build_png_of_size,
    build_url,
    encode_image,
    get_document,
    upload_document,
)
from cases import each, run_cases
from harness import Harness, parse_error
from tapgate.business.customers.subscribers.kyc_documents import operations
from tapgate.business.customers.subscribers.kyc_documents.operations import (
    MAX_PENDING_IMAGES,
    image_threads,
)
from tapgate.core import images
from tapgate_client import ids


async def upload_and_fetch(harness: Harness, image: str) -> tuple[httpx2.Response, Image.Image]:
    """Upload an image and return the download response and the decoded image."""
    record = await harness.create_subscriber()
    response = await upload_document(harness, record, image)
    assert response.status_code == 201, response.text
    download = await get_document(harness, record, response.json()["document_id"])
    assert download.status_code == 200
    return download, Image.open(io.BytesIO(download.content))


async def get_kyc_status(harness: Harness, record: dict[str, Any]) -> str:
    response = await harness.get(f"{URL}/{record['id']}", auth=harness.get_service_auth())
    status: str = response.json()["kyc_status"]
    return status


async def test_document_is_added_listed_and_downloaded(harness: Harness) -> None:
    record = await harness.create_subscriber()
    documents = []
    for document_type in ("id_front", "id_back", "selfie", "proof_of_address"):
        response = await upload_document(harness, record, document_type=document_type)
        assert response.status_code == 201
        documents.append(response.json())
        assert list(response.json()) == ["document_id", "document_type", "kyc_status"]
        assert response.json()["document_id"].startswith("doc_")
        assert response.json()["document_type"] == document_type
        assert response.json()["kyc_status"] == "PENDING"
    assert await get_kyc_status(harness, record) == "PENDING"
    response = await harness.get(
        build_url(record), params={"limit": "3"}, auth=harness.get_service_auth()
    )
    page = response.json()
    expected = [["document_id", "document_type", "status", "created_at"]] * 3
    assert [list(document) for document in page["data"]] == expected
    response = await harness.get(
        build_url(record), params={"cursor": page["next_cursor"]}, auth=harness.get_service_auth()
    )
    listed = [document["document_id"] for document in page["data"] + response.json()["data"]]
    assert listed == [document["document_id"] for document in reversed(documents)]
    download = await get_document(harness, record, documents[0]["document_id"])
    assert download.headers["content-type"] == "image/png"
    assert download.headers["cache-control"] == "no-store"
    assert download.headers["x-content-type-options"] == "nosniff"
    filename = f"{documents[0]['document_id']}.png"
    assert download.headers["content-disposition"] == f'attachment; filename="{filename}"'
    assert Image.open(io.BytesIO(download.content)).tobytes() == build_image().tobytes()


async def test_image_is_encrypted_in_the_database_and_bound_to_its_row(harness: Harness) -> None:
    record = await harness.create_subscriber()
    first = (await upload_document(harness, record)).json()
    second = (await upload_document(harness, record)).json()
    document_ids = [
        ids.decode(ids.DOCUMENT, document["document_id"]) for document in (first, second)
    ]
    database = harness.database
    for row in await database.fetch("SELECT image FROM kyc_documents"):
        assert PNG[:16] not in row["image"]
    # An image copied into another row cannot be decrypted.
    await database.execute(
        """UPDATE kyc_documents SET image = other.image FROM kyc_documents other
           WHERE kyc_documents.id = $1 AND other.id = $2""",
        *document_ids,
    )
    assert (await get_document(harness, record, first["document_id"])).status_code == 500
    assert (await get_document(harness, record, second["document_id"])).status_code == 200


async def test_image_metadata_is_removed(harness: Harness) -> None:
    exif = Image.Exif()
    exif[0x010F] = "sEcReT camera"
    exif[0x8825] = {1: "N", 2: (8.0, 29.0, 3.0)}
    for image_format, media_type, options in [
        ("JPEG", "image/jpeg", {"comment": b"sEcReT"}),
        ("PNG", "image/png", {"dpi": (300, 300)}),
    ]:
        content = encode_image(
            build_image(), image_format, exif=exif, icc_profile=b"sEcReT", **options
        )
        assert b"sEcReT" in content
        download, image = await upload_and_fetch(
            harness, build_data_uri(content + b"sEcReT", media_type)
        )
        assert download.headers["content-type"] == media_type
        assert b"sEcReT" not in download.content
        assert dict(image.getexif()) == {}
        assert not {"icc_profile", "exif", "comment", "dpi", "xmp"} & set(image.info)


@each("image_format, media_type", [("JPEG", "image/jpeg"), ("PNG", "image/png")])
async def test_image_is_rotated_by_its_exif_orientation(
    harness: Harness, image_format: str, media_type: str
) -> None:
    exif = Image.Exif()
    exif[0x0112] = 6  # rotate 90 degrees clockwise
    _, image = await upload_and_fetch(
        harness, build_data_uri(encode_image(build_image(), image_format, exif=exif), media_type)
    )
    assert image.size == (40, 60)
    top, bottom = image.convert("RGB").getpixel((20, 5)), image.getpixel((20, 55))
    assert isinstance(top, tuple)
    assert isinstance(bottom, tuple)
    assert top[0] > 150 > top[2]
    assert bottom[2] > 150 > bottom[0]


@each("mode", ["1", "L", "LA", "P", "RGB", "RGBA", "I;16"])
async def test_every_png_color_mode_is_accepted(harness: Harness, mode: str) -> None:
    source = build_image() if mode == "RGB" else Image.new(mode, (30, 20))
    _, image = await upload_and_fetch(harness, build_data_uri(encode_image(source)))
    assert image.size == source.size
    image.load()


@each("mode", ["L", "RGB", "CMYK"])
async def test_every_jpeg_color_mode_is_accepted(harness: Harness, mode: str) -> None:
    source = build_image().convert(mode)
    _, image = await upload_and_fetch(
        harness, build_data_uri(encode_image(source, "JPEG"), "image/jpeg")
    )
    assert image.mode in ("L", "RGB")
    image.load()


async def test_additional_images_in_a_jpeg_are_dropped(harness: Harness) -> None:
    content = encode_image(
        build_image(), "MPO", save_all=True, append_images=[Image.new("RGB", (9, 9))]
    )
    download, image = await upload_and_fetch(harness, build_data_uri(content, "image/jpeg"))
    assert (image.format, image.size) == ("JPEG", (60, 40))
    assert len(download.content) < len(content)


async def test_scan_markers_inside_a_comment_are_not_counted(harness: Harness) -> None:
    comment = b"\xff\xda" * 100
    content = encode_image(build_image((900, 600)), "JPEG", progressive=True, comment=comment)
    assert comment in content
    _, image = await upload_and_fetch(harness, build_data_uri(content, "image/jpeg"))
    assert image.size == (900, 600)


def build_jpeg_with_scans(times: int) -> bytes:
    """Return a progressive JPEG whose last scan occurs `times` times."""
    content = encode_image(build_image(), "JPEG", progressive=True)
    scan = content.rindex(b"\xff\xda")
    return content[:scan] + content[scan:-2] * times + content[-2:]


async def test_jpeg_with_twenty_repeated_scans_is_accepted(harness: Harness) -> None:
    await upload_and_fetch(harness, build_data_uri(build_jpeg_with_scans(20), "image/jpeg"))


def build_padded_image(length: int) -> bytes:
    content = encode_image(build_image(), "JPEG")
    return content[: content.index(b"\xff\xda") + 14] + b"\xff" * length + b"\0"


async def test_jpeg_with_padding_instead_of_scan_data_is_rejected(harness: Harness) -> None:
    image = build_data_uri(build_padded_image(50_000), "image/jpeg")
    response = await upload_document(harness, await harness.create_subscriber(), image)
    assert response.status_code == 422


def test_counting_scans_takes_time_linear_in_the_padding() -> None:
    """Measured in the thread's CPU time, which excludes work in other threads."""

    def measure_seconds(length: int) -> float:
        content, started = build_padded_image(length), time.thread_time()
        assert images.count_jpeg_scans(content) == 1
        return time.thread_time() - started

    short, long = (min(measure_seconds(length) for _ in range(5)) for length in (10_000, 100_000))
    assert long < 40 * short


async def test_uploads_beyond_the_pending_limit_get_503(harness: Harness) -> None:
    records = [await harness.create_subscriber() for _ in range(MAX_PENDING_IMAGES // 4)]
    release = threading.Event()
    blockers = [asyncio.create_task(image_threads.run(release.wait)) for _ in range(2)]
    uploads = [asyncio.create_task(upload_document(harness, record)) for record in records * 4]
    async with asyncio.timeout(30):
        while len(rejected := [task for task in uploads if task.done()]) < len(blockers):
            await asyncio.sleep(0.01)
    release.set()
    await asyncio.gather(*blockers)
    assert {task.result().status_code for task in rejected} == {503}
    others = [task for task in uploads if task not in rejected]
    assert {(await task).status_code for task in others} == {201}


def build_invalid_images() -> dict[str, str]:
    """Return invalid images by description, as sent in requests."""
    return {
        "no data URI": base64.b64encode(PNG).decode(),
        "URL": "https://example.com/image.png",
        "GIF": build_data_uri(encode_image(build_image(), "GIF"), "image/gif"),
        "SVG": build_data_uri(b"<svg xmlns='http://www.w3.org/2000/svg'/>", "image/svg+xml"),
        "not base64": "data:image/png;base64,%%%%",
        "non-ASCII base64": "data:image/png;base64,é" + base64.b64encode(PNG).decode(),
        "truncated base64": build_data_uri(PNG)[:-3],
        "hex instead of base64": "data:image/png," + PNG.hex(),
        "empty": "data:image/png;base64,",
        "PNG declared as JPEG": build_data_uri(PNG, "image/jpeg"),
        "JPEG declared as PNG": build_data_uri(encode_image(build_image(), "JPEG")),
        "GIF declared as PNG": build_data_uri(encode_image(build_image(), "GIF")),
        "truncated PNG": build_data_uri(PNG[: len(PNG) // 2]),
        "truncated JPEG": build_data_uri(encode_image(build_image(), "JPEG")[:-200], "image/jpeg"),
        "many scans": build_data_uri(build_jpeg_with_scans(60), "image/jpeg"),
        "header only": build_data_uri(PNG[:40]),
        "signature only": build_data_uri(PNG[:8]),
        "noise": build_data_uri(bytes(range(256)) * 10),
        "corrupted": build_data_uri(PNG[:60] + b"\0\0\0\0\0" + PNG[65:]),
        "animated": build_data_uri(encode_image(build_image(), save_all=True,
                                   append_images=[build_image((60, 40))] * 2,
                                   duration=[10, 20, 30], default_image=True)),
        "too large": build_data_uri(build_png_of_size(8000, 6000)),
        "size above the decoder's warning limit": build_data_uri(build_png_of_size(10_000, 10_000)),
        "size above the decoder's error limit": build_data_uri(build_png_of_size(60_000, 60_000)),
        "zero height": build_data_uri(build_png_of_size(60, 0)),
        "decompression bomb in a text chunk": build_data_uri(
            PNG[:33]
            + build_png_chunk(b"zTXt", b"k\0\0" + zlib.compress(bytes(80_000_000)))
            + PNG[33:]
        ),
    }  # fmt: skip


async def test_invalid_image_is_rejected(harness: Harness) -> None:
    await run_cases(
        (case, check_invalid_image(harness, image))
        for case, image in build_invalid_images().items()
    )


async def check_invalid_image(harness: Harness, image: str) -> None:
    record = await harness.create_subscriber()
    response = await upload_document(harness, record, image)
    assert (response.status_code, response.json()["code"]) == (422, "VALIDATION_FAILED")
    assert list(response.json()["details"]["fields"]) == ["image"]
    assert await get_kyc_status(harness, record) == "NONE"


async def test_truncated_image_causes_no_server_error(harness: Harness) -> None:
    for media_type, content in (
        ("image/png", PNG),
        ("image/jpeg", encode_image(build_image((16, 16)), "JPEG")),
    ):
        for length in range(0, len(content), max(1, len(content) // 60)):
            record = await harness.create_subscriber()
            response = await upload_document(
                harness, record, build_data_uri(content[:length], media_type)
            )
            assert response.status_code in (201, 422), (media_type, length, response.text)


async def test_large_image_is_accepted_and_oversized_body_is_rejected(harness: Harness) -> None:
    record = await harness.create_subscriber()
    noise = Image.effect_noise((1500, 1500), 100)
    response = await upload_document(harness, record, build_data_uri(encode_image(noise)))
    assert response.status_code == 201
    response = await upload_document(harness, record, build_data_uri(bytes(7 * 1024 * 1024)))
    assert (response.status_code, response.json()["code"]) == (413, "PAYLOAD_TOO_LARGE")


async def test_other_requests_are_served_while_an_image_is_decoded(
    harness: Harness, monkeypatch: pytest.MonkeyPatch
) -> None:
    record, decode_data_uri = await harness.create_subscriber(), operations.decode_data_uri
    started, resume = threading.Event(), threading.Event()

    def decode_when_resumed(image: str) -> images.EncodedImage:
        started.set()
        assert resume.wait(30), "no other request was served"
        return decode_data_uri(image)

    monkeypatch.setattr(operations, "decode_data_uri", decode_when_resumed)
    upload = asyncio.create_task(upload_document(harness, record))
    while not started.is_set():
        await asyncio.sleep(0.002)
    assert await get_kyc_status(harness, record) == "NONE"
    assert not upload.done()
    resume.set()
    assert (await upload).status_code == 201


async def test_decoding_a_large_image_does_not_block_the_event_loop(
    harness: Harness, monkeypatch: pytest.MonkeyPatch
) -> None:
    record, decode_data_uri = await harness.create_subscriber(), operations.decode_data_uri
    is_decoding = threading.Event()

    def decode_and_flag(image: str) -> images.EncodedImage:
        is_decoding.set()
        try:
            return decode_data_uri(image)
        finally:
            is_decoding.clear()

    monkeypatch.setattr(operations, "decode_data_uri", decode_and_flag)
    large = build_data_uri(encode_image(Image.new("RGB", (4000, 4000), RED)))
    for _ in range(10):  # a busy machine may stall for an entire attempt
        upload, loop_turns = asyncio.create_task(upload_document(harness, record, large)), 0
        while not upload.done():
            await asyncio.sleep(0.001)
            loop_turns += is_decoding.is_set()
        assert (await upload).status_code == 201
        if loop_turns > 10:
            break
    assert loop_turns > 10


async def test_new_document_sets_the_kyc_status_to_pending_and_publishes_only_changes(
    harness: Harness,
) -> None:
    record, admin = await harness.create_subscriber(), await harness.create_admin("C")
    await harness.database.execute(
        """INSERT INTO webhook_endpoints (id, url, events, secret, created_at)
           VALUES ($1, 'https://example.com', '{subscriber.kyc_changed}', '', now())""",
        harness.services.new_id(),
    )
    await upload_document(harness, record, caller=admin)
    await upload_document(harness, record, caller=admin)
    await harness.put(
        f"{URL}/{record['id']}", json={"kyc_status": "VERIFIED", "kyc_level": 2}, auth=admin
    )
    await harness.put(f"{URL}/{record['id']}", json={"first_name": "Eve"}, auth=admin)
    await upload_document(harness, record, caller=admin)
    rows = await harness.database.fetch("SELECT type, data FROM events ORDER BY id")
    assert [(row["data"]["kyc_status"], row["data"]["kyc_level"]) for row in rows] == [
        ("PENDING", 1),
        ("VERIFIED", 2),
        ("PENDING", 2),
    ]
    response = await harness.get(f"{URL}/{record['id']}", auth=admin)
    assert rows[-1]["data"] == response.json()


async def test_document_uploads_and_views_are_audited(harness: Harness) -> None:
    record, admin = await harness.create_subscriber(), await harness.create_admin("C")
    document = (await upload_document(harness, record, caller=admin)).json()["document_id"]
    await get_document(harness, record, document, caller=admin)
    (added,) = await harness.list_audit_entries(record["id"], "subscriber.kyc_document_added")
    assert (added["actor"]["id"], added["changes"]) == (admin.id, {"id_front": [None, document]})
    (updated,) = await harness.list_audit_entries(record["id"], "subscriber.updated")
    assert updated["changes"]["kyc_status"] == ["NONE", "PENDING"]
    (viewed,) = await harness.list_audit_entries(record["id"], "subscriber.kyc_document_seen")
    assert (viewed["actor"]["id"], viewed["reason"]) == (admin.id, document)


async def test_unknown_subscriber_or_document_is_not_found(harness: Harness) -> None:
    record, other = await harness.create_subscriber(), await harness.create_subscriber()
    document = (await upload_document(harness, record)).json()["document_id"]
    unknown = {"id": "sub_0000000000000"}
    for response in (
        await upload_document(harness, unknown),
        await get_document(harness, unknown, document),
        await harness.get(build_url(unknown), auth=harness.get_service_auth()),
    ):
        assert (response.status_code, response.json()["code"]) == (404, "SUBSCRIBER_NOT_FOUND")
    for owner, document_id in ((other, document), (record, "doc_0000000000000"), (record, "x")):
        assert parse_error(await get_document(harness, owner, document_id)) == (404, "NOT_FOUND")


async def test_closed_subscriber_keeps_its_documents_and_accepts_no_new_ones(
    harness: Harness,
) -> None:
    record, admin = await harness.create_subscriber(), await harness.create_admin()
    document = (await upload_document(harness, record)).json()["document_id"]
    await harness.post(f"{URL}/{record['id']}/close", json={"reason": "r"}, auth=admin)
    assert parse_error(await upload_document(harness, record)) == (409, "NOT_CLOSABLE")
    assert (await get_document(harness, record, document, caller=admin)).status_code == 200
    assert len((await harness.get(build_url(record), auth=admin)).json()["data"]) == 1
