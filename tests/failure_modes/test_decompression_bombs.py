"""Decompression bombs: small uploads that expand to large sizes. Tests measure memory, not time."""

import asyncio
import gzip
import io
import struct
import zlib
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

from builders.kyc_documents import (
    build_image,
    build_png_chunk,
    build_png_of_size,
    encode_image,
)
from cases import each
from harness import Harness
from tapgate.core.images import MAX_PIXELS, MAX_SIDE_PIXELS, ImageError, reencode
from tapgate.http.api import form_files
from tapgate.http.body_limits import DEFAULT_BODY_BYTES
from tapgate_client.errors import ApiError

MEBIBYTE = 1024 * 1024
#: Maximum size of most request bodies.
SMALL_BODY_BYTES = DEFAULT_BODY_BYTES
#: Maximum size for a card file, or for a request body that contains an image.
MAX_UPLOAD_BYTES = 8 * MEBIBYTE
UPLOAD_URL = "/api/v1/cards/upload-csv"
HEADER = b"Serial No.,MAC Address\n"


class PeakMemory:
    """Peak growth in this process's resident memory inside the block."""

    def __enter__(self) -> "PeakMemory":
        Path("/proc/self/clear_refs").write_text("5")  # reset the peak RSS counter
        self._baseline = _read_kibibytes("VmRSS")
        return self

    def __exit__(self, *_: object) -> None:
        self.growth = (_read_kibibytes("VmHWM") - self._baseline) * 1024


def _read_kibibytes(name: str) -> int:
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith(name + ":"))


PNG, JPEG = encode_image(build_image()), encode_image(build_image(), "JPEG")
PNG_HEADER_BYTES = 33  # signature and IHDR chunk


@cache
def compress_zeros() -> bytes:
    """Return 256 MiB of zero bytes compressed to about 1 MiB."""
    return zlib.compress(bytes(256 * MEBIBYTE), 1)


def build_png_with_chunks(*parts: bytes) -> bytes:
    return PNG[:PNG_HEADER_BYTES] + b"".join(parts) + PNG[PNG_HEADER_BYTES:]


def build_jpeg_with_segments(marker: int, *segments: bytes) -> bytes:
    encoded = [struct.pack(">BBH", 0xFF, marker, len(item) + 2) + item for item in segments]
    return JPEG[:2] + b"".join(encoded) + JPEG[2:]


def build_animation(form: str) -> bytes:
    frames = [Image.new("RGB", (8, 8), (n % 256, n // 256, 0)) for n in range(300)]
    return encode_image(frames[0], form, save_all=True, append_images=frames[1:])


def build_jpeg_of_size(width: int, height: int) -> bytes:
    offset = JPEG.index(b"\xff\xc0") + 5
    return JPEG[:offset] + struct.pack(">HH", height, width) + JPEG[offset + 4 :]


REJECTED_IMAGES: dict[str, Callable[[], bytes]] = {
    "50,000 by 50,000": lambda: build_png_of_size(50_000, 50_000),
    "the maximum PNG width": lambda: build_png_of_size(2**31 - 1, 1),
    "one pixel wide": lambda: build_png_of_size(1, MAX_PIXELS),
    "one pixel high": lambda: build_png_of_size(MAX_SIDE_PIXELS + 1, 1),
    "the largest JPEG": lambda: build_jpeg_of_size(65_500, 65_500),
    "a compressed text chunk": lambda: build_png_with_chunks(
        build_png_chunk(b"zTXt", b"k\0\0" + compress_zeros())
    ),
    "a compressed international text chunk": lambda: build_png_with_chunks(
        build_png_chunk(b"iTXt", b"k\0\1\0\0\0" + compress_zeros())
    ),
    "a compressed color profile": lambda: build_png_with_chunks(
        build_png_chunk(b"iCCP", b"k\0\0" + compress_zeros())
    ),
    "many compressed text chunks": lambda: build_png_with_chunks(
        *[build_png_chunk(b"zTXt", b"k\0\0" + zlib.compress(bytes(MEBIBYTE - 9)))] * 2000
    ),
    "an animated PNG": lambda: build_animation("PNG"),
    "a GIF": lambda: build_animation("GIF"),
    "a WebP": lambda: build_animation("WEBP"),
    "a TIFF": lambda: encode_image(build_image(), "TIFF"),
    "a BMP": lambda: encode_image(build_image(), "BMP"),
    "an SVG": lambda: b'<svg xmlns="http://www.w3.org/2000/svg"><image href="file:///"/></svg>',
    "XML entities": lambda: b'<!DOCTYPE a [<!ENTITY b SYSTEM "file:///etc/passwd">]><a>&b;</a>',
    "PostScript": lambda: b"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 9 9\n",
    "a gzip file": lambda: gzip.compress(PNG),
}
#: Accepted, but re-encoded without the hidden content.
ACCEPTED_IMAGES: dict[str, Callable[[], bytes]] = {
    "more pixels than the header declares": lambda: build_png_with_chunks(
        build_png_chunk(b"IDAT", compress_zeros())
    ),
    "five megabytes of EXIF": lambda: build_png_with_chunks(
        build_png_chunk(b"eXIf", b"MM\0*\0\0\0\x08" + b"\xff" * 5 * MEBIBYTE)
    ),
    "99 color profiles": lambda: build_jpeg_with_segments(
        0xE2, *[b"ICC_PROFILE\0" + bytes([n, 255]) + bytes(65_500) for n in range(1, 100)]
    ),
    "an appended ZIP archive": lambda: PNG + b"PK\x03\x04" + bytes(MEBIBYTE),
    "PHP code in a comment": lambda: build_jpeg_with_segments(
        0xFE, b"<?php system($_GET[0]); ?><script>"
    ),
}


@each("name", REJECTED_IMAGES)
def test_oversized_or_unsupported_image_is_rejected_with_bounded_memory(name: str) -> None:
    """A tiny file can declare 50,000 by 50,000 pixels, which need ten gigabytes of memory."""
    reencode(PNG)
    bomb = REJECTED_IMAGES[name]()
    assert len(bomb) < MAX_UPLOAD_BYTES
    with PeakMemory() as memory, pytest.raises(ImageError):
        reencode(bomb)
    assert memory.growth < 64 * MEBIBYTE


@pytest.mark.filterwarnings("ignore:Tag data larger than file")
@pytest.mark.filterwarnings("ignore:Corrupt EXIF data")
@pytest.mark.parametrize("name", ACCEPTED_IMAGES)
def test_hidden_image_content_is_neither_decompressed_nor_kept(name: str) -> None:
    """A polyglot file, an image that is also another format, could be served as that format."""
    reencode(PNG)
    bomb = ACCEPTED_IMAGES[name]()
    with PeakMemory() as memory:
        reencoded = reencode(bomb)
    assert memory.growth < 64 * MEBIBYTE
    assert len(reencoded.content) < 10_000
    with Image.open(io.BytesIO(reencoded.content)) as image:
        assert (image.size, image.info.keys() & {"exif", "icc_profile", "comment"}) == (
            (60, 40),
            set(),
        )


def fill_to_limit(start: bytes, chunk: bytes, end: bytes = b"") -> bytes:
    return start + chunk * ((MAX_UPLOAD_BYTES - len(start) - len(end)) // len(chunk)) + end


MULTIPART_HEADERS = {"Content-Type": "multipart/form-data; boundary=b"}
MULTIPART_PART = b"--b\r\nContent-Disposition: form-data; name=%b\r\n\r\n\r\n"
REJECTED_FILES: dict[str, tuple[Callable[[], bytes], dict[str, str], int]] = {
    "eight million columns": (lambda: fill_to_limit(HEADER + b"A-1", b","), {}, 422),
    "2.8 million nonempty columns": (lambda: fill_to_limit(HEADER + b"A-1", b",ab"), {}, 422),
    "eight million columns in the header": (lambda: fill_to_limit(b"", b","), {}, 422),
    "one field": (lambda: fill_to_limit(HEADER, b"A"), {}, 422),
    "one quoted field": (lambda: fill_to_limit(HEADER + b'"', b"A\n"), {}, 422),
    "one record of many lines": (lambda: fill_to_limit(HEADER, b'"\n",'), {}, 422),
    "blank lines": (lambda: fill_to_limit(HEADER, b"\n"), {}, 422),
    "empty rows": (lambda: fill_to_limit(HEADER, b",\n"), {}, 422),
    "a form with many parts": (
        lambda: fill_to_limit(b"", MULTIPART_PART % b"x", b"--b--\r\n"),
        MULTIPART_HEADERS,
        400,
    ),
    "a form with many files": (
        lambda: fill_to_limit(b"", MULTIPART_PART % b"file", b"--b--\r\n"),
        MULTIPART_HEADERS,
        400,
    ),
    "a form with empty parts": (
        lambda: fill_to_limit(b"", b"--b\r\nA:\r\n\r\n\r\n", b"--b--\r\n"),
        MULTIPART_HEADERS,
        400,
    ),
    "a form with one long header": (
        lambda: fill_to_limit(b"--b\r\nA: ", b";"),
        MULTIPART_HEADERS,
        400,
    ),
    "a form without a first boundary": (
        lambda: fill_to_limit(b"", b"\r\n--"),
        MULTIPART_HEADERS,
        400,
    ),
    "a gzip file": (
        lambda: gzip.compress(HEADER + bytes(MEBIBYTE)),
        {"Content-Encoding": "gzip"},
        415,
    ),
}


async def test_malformed_card_file_is_rejected_with_bounded_memory(harness: Harness) -> None:
    """A parser must not build lists that are many times larger than the file.

    A CSV parser builds a list of columns, and a multipart parser builds a list of parts.
    """
    admin = await harness.create_admin()
    for name, (build_body, headers, status) in REJECTED_FILES.items():
        body = build_body()
        assert len(body) <= MAX_UPLOAD_BYTES
        with PeakMemory() as memory:
            response = await harness.post(UPLOAD_URL, content=body, headers=headers, auth=admin)
        assert response.status_code == status, name
        assert memory.growth < 10 * MAX_UPLOAD_BYTES, name
    assert await harness.database.fetchval("SELECT count(*) FROM cards") == 0


def test_multipart_parsing_stops_after_the_maximum_number_of_parts(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """CPU work is bounded too; the test counts parts because timing is unreliable."""
    part_count = 0
    begin_part = form_files.FilePartCollector.begin_part

    def count_and_begin(self: Any) -> None:
        nonlocal part_count
        part_count += 1
        begin_part(self)

    monkeypatch.setattr(form_files.FilePartCollector, "begin_part", count_and_begin)
    build_body, headers, _ = REJECTED_FILES["a form with empty parts"]
    with pytest.raises(ApiError) as caught:
        form_files.extract_file(headers["Content-Type"], build_body())
    assert caught.value.message == "body must have at most 100 parts"
    assert part_count == form_files.MAX_PARTS + 1


async def test_compressed_request_body_is_rejected_without_decompression(harness: Harness) -> None:
    """`Content-Encoding` could expand a kilobyte to a gigabyte before the size limit applies."""
    body = gzip.compress(b'{"name": "' + b"a" * 2 * MEBIBYTE + b'"}', 9)
    assert len(body) < SMALL_BODY_BYTES
    for coding in ("gzip", "deflate", "br", "zstd", "gzip, gzip"):
        with PeakMemory() as memory:
            response = await harness.post(
                "/api/v1/admin/partners",
                content=body,
                headers={"Content-Encoding": coding},
                auth=await harness.create_admin(),
            )
        assert (response.status_code, response.json()["code"]) == (415, "UNSUPPORTED_ENCODING")
        assert memory.growth < 16 * MEBIBYTE


async def test_concurrent_deep_and_wide_json_bodies_use_bounded_memory(harness: Harness) -> None:
    """Each bracket, key, and number becomes an object when decoded."""
    wide = b'{"name": "x", "x": [' + b"[]," * 5_000 + b"[]]}"
    keys = b'{"name": "x"' + b"".join(b',"%d":0' % n for n in range(1_800)) + b"}"
    null = b'{"overdraft_limit": null, "name": "\\ud800", "x": [' + b"{}," * 5_000 + b"{}]}"
    deep = b'{"name": "x", "x": ' + b"[" * 8_000 + b"]" * 8_000 + b"}"
    assert max(map(len, (wide, keys, null, deep))) < SMALL_BODY_BYTES
    admin = await harness.create_admin()
    with PeakMemory() as memory:
        responses = await asyncio.gather(
            *(
                harness.post("/api/v1/admin/partners", content=body, auth=admin)
                for body in (wide, keys, null, deep)
                for _ in range(3)
            )
        )
    assert [response.status_code for response in responses] == [201] * 6 + [422] * 3 + [400] * 3
    assert memory.growth < 128 * MEBIBYTE
