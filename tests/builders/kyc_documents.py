"""KYC documents and their images."""

import base64
import io
import struct
import zlib
from typing import Any

import httpx2
from PIL import Image

from harness import Harness

URL = "/api/v1/subscribers"
RED, BLUE = (200, 0, 0), (0, 0, 200)


def build_url(record: dict[str, Any]) -> str:
    return f"{URL}/{record['id']}/kyc-documents"


def build_data_uri(content: bytes, media_type: str = "image/png") -> str:
    return f"data:{media_type};base64,{base64.b64encode(content).decode()}"


def encode_image(image: Image.Image, image_format: str = "PNG", **options: Any) -> bytes:
    file = io.BytesIO()
    image.save(file, image_format, **options)
    return file.getvalue()


def build_image(size: tuple[int, int] = (60, 40)) -> Image.Image:
    """Return an image that is red on the left and blue on the right."""
    image = Image.new("RGB", size, RED)
    image.paste(BLUE, (size[0] // 2, 0, *size))
    return image


PNG = encode_image(build_image())


def build_png_chunk(kind: bytes, data: bytes) -> bytes:
    """Return a PNG chunk with its length and checksum."""
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


def build_png_of_size(width: int, height: int) -> bytes:
    """Return a small PNG file whose header declares the given size."""
    head = struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + b"".join(
        [
            build_png_chunk(b"IHDR", head),
            build_png_chunk(b"IDAT", zlib.compress(bytes(1000))),
            build_png_chunk(b"IEND", b""),
        ]
    )


async def upload_document(
    harness: Harness,
    record: dict[str, Any],
    image: Any = None,
    *,
    document_type: str = "id_front",
    caller: Any = None,
) -> httpx2.Response:
    return await harness.post(
        build_url(record),
        json={
            "document_type": document_type,
            "image": build_data_uri(PNG) if image is None else image,
        },
        auth=caller or harness.get_service_auth(),
    )


async def get_document(
    harness: Harness, record: dict[str, Any], document_id: str, *, caller: Any = None
) -> httpx2.Response:
    return await harness.get(
        f"{build_url(record)}/{document_id}", auth=caller or await harness.create_admin("C")
    )


DOCUMENT_TYPES = ("id_front", "id_back", "selfie", "proof_of_address")
