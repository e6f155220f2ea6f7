import asyncio
import base64
import io
import struct
import threading
import zlib

import pytest
from PIL import Image

from cases import each
from tapgate.core.images import MAX_PIXELS, EncodedImage, ImageError
from tapgate.messenger import images
from tapgate.messenger.channel.graph import MediaError
from tapgate.messenger.model import ImageFile
from tapgate_client.errors import ApiError, Code

JPEG_PREFIX, PNG_PREFIX = "data:image/jpeg;base64,", "data:image/png;base64,"
EXIF_LOCATION = "Freetown, by the harbor"


def encode_image(form: str, **options: object) -> bytes:
    file = io.BytesIO()
    picture = Image.radial_gradient("L").resize((40, 30)).convert("RGB")
    exif = picture.getexif()
    exif[0x010E] = EXIF_LOCATION
    picture.save(file, form, exif=exif, **options)
    return file.getvalue()


def build_png_head(width: int, height: int) -> bytes:
    """Build a small PNG that declares the given dimensions."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        return (
            struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
        )

    head = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    rows = zlib.compress(bytes(1000))
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", rows) + chunk(b"IEND", b"")


JPEG, PNG = encode_image("JPEG"), encode_image("PNG")
ANIMATED = encode_image(
    "PNG", save_all=True, append_images=[Image.new("RGB", (40, 30), "red")], duration=50
)
PDF = b"%PDF-1.7\n1 0 obj << >> endobj\ntrailer << >>\n%%EOF"
SVG = b'<svg xmlns="http://www.w3.org/2000/svg"><script>alert(1)</script></svg>'


def build_data_uri(prefix: str, content: bytes) -> str:
    return prefix + base64.b64encode(content).decode()


def open_image(picture: EncodedImage) -> Image.Image:
    return Image.open(io.BytesIO(picture.content))


def assert_reencoded(picture: EncodedImage, form: str) -> None:
    assert picture.media_type == f"image/{form.lower()}"
    assert EXIF_LOCATION.encode() not in picture.content
    with open_image(picture) as image:
        assert (image.format, image.size) == (form, (40, 30))
        assert not image.getexif()


@each(
    "prefix, content, mimetype, form",
    [
        (JPEG_PREFIX, JPEG, None, "JPEG"),
        (JPEG_PREFIX, JPEG, "image/jpeg", "JPEG"),
        (JPEG_PREFIX, JPEG, "image/jpg", "JPEG"),
        (JPEG_PREFIX, JPEG, "IMAGE/JPEG; quality=high", "JPEG"),
        (PNG_PREFIX, PNG, None, "PNG"),
        (PNG_PREFIX, PNG, "image/png", "PNG"),
    ],
)
async def test_bridge_image_is_reencoded(
    prefix: str, content: bytes, mimetype: str | None, form: str
) -> None:
    assert EXIF_LOCATION.encode() in content
    assert_reencoded(
        await images.load_inline_image(build_data_uri(prefix, content), mimetype), form
    )


INVALID_IMAGE_ERROR = "must be a valid JPEG or PNG image"
PREFIX_ERROR = "must start with data:image/jpeg;base64, or data:image/png;base64,"


@each(
    "data, message",
    [
        (None, "is required"),
        ("", "is required"),
        (base64.b64encode(PNG).decode(), PREFIX_ERROR),
        (build_data_uri("data:image/svg+xml;base64,", SVG), PREFIX_ERROR),
        (build_data_uri("data:application/pdf;base64,", PDF), PREFIX_ERROR),
        (build_data_uri("data:image/png,", PNG), PREFIX_ERROR),
        (build_data_uri(" " + PNG_PREFIX, PNG), PREFIX_ERROR),
        (build_data_uri(PNG_PREFIX, PNG)[:-1] + "!", "must be valid base64"),
        (build_data_uri(PNG_PREFIX, PNG) + "A", "must be valid base64"),
        (
            build_data_uri(PNG_PREFIX, PNG)[:60] + "\n" + build_data_uri(PNG_PREFIX, PNG)[60:],
            "must be valid base64",
        ),
        (PNG_PREFIX + "é" * 8, "must be valid base64"),
        (PNG_PREFIX, INVALID_IMAGE_ERROR),
        (build_data_uri(JPEG_PREFIX, PDF), INVALID_IMAGE_ERROR),
        (build_data_uri(PNG_PREFIX, SVG), INVALID_IMAGE_ERROR),
        (build_data_uri(PNG_PREFIX, encode_image("WEBP")), INVALID_IMAGE_ERROR),
        (build_data_uri(PNG_PREFIX, encode_image("GIF")), INVALID_IMAGE_ERROR),
        (build_data_uri(JPEG_PREFIX, PDF + JPEG), INVALID_IMAGE_ERROR),
        (build_data_uri(PNG_PREFIX, PNG[: len(PNG) // 2]), INVALID_IMAGE_ERROR),
        (build_data_uri(JPEG_PREFIX, JPEG[: len(JPEG) // 2]), INVALID_IMAGE_ERROR),
        (build_data_uri(PNG_PREFIX, JPEG), "does not match its declared media type"),
        (build_data_uri(JPEG_PREFIX, PNG), "does not match its declared media type"),
        (build_data_uri(PNG_PREFIX, ANIMATED), "must not be animated"),
        (
            build_data_uri(PNG_PREFIX, build_png_head(50_000, 50_000)),
            f"must have at most {MAX_PIXELS // 1_000_000} million pixels",
        ),
        (build_data_uri(PNG_PREFIX, PNG + bytes(images.MAX_IMAGE_BYTES)), "must be at most 5 MB"),
    ],
)
async def test_invalid_bridge_image_is_rejected(data: str | None, message: str) -> None:
    with pytest.raises(ImageError) as raised:
        await images.load_inline_image(data)
    assert str(raised.value) == message


@each("mimetype", ["image/png", "application/pdf", "jpeg", " "])
async def test_mimetype_must_match_the_data_uri(mimetype: str) -> None:
    with pytest.raises(ImageError, match=r"^does not match mimetype$"):
        await images.load_inline_image(build_data_uri(JPEG_PREFIX, JPEG), mimetype)


async def test_data_appended_to_an_image_is_removed() -> None:
    hidden = b"PK\x03\x04<script>alert(1)</script>"
    for prefix, content, form in ((JPEG_PREFIX, JPEG, "JPEG"), (PNG_PREFIX, PNG, "PNG")):
        picture = await images.load_inline_image(build_data_uri(prefix, content + hidden))
        assert_reencoded(picture, form)
        assert b"script" not in picture.content


async def test_image_of_the_maximum_size_is_accepted() -> None:
    padded = JPEG + bytes(images.MAX_IMAGE_BYTES - len(JPEG))
    assert_reencoded(await images.load_inline_image(build_data_uri(JPEG_PREFIX, padded)), "JPEG")


class FakeMediaStore:
    """Media store that returns the same content, or raises the same error, for every ID."""

    def __init__(self, content: bytes | MediaError) -> None:
        self._content = content
        self.requests: list[tuple[str, int, str | None]] = []

    async def fetch_media(
        self, media_id: str, limit: int = 0, *, sha256: str | None = None
    ) -> bytes:
        self.requests.append((media_id, limit, sha256))
        if isinstance(self._content, MediaError):
            raise self._content
        return self._content


def build_image_file(mime_type: str | None) -> ImageFile:
    return ImageFile(media_id="1234", mime_type=mime_type, sha256="hash")


@each("mime_type", [None, "image/jpeg", "image/jpg"])
async def test_channel_image_is_reencoded(mime_type: str | None) -> None:
    store = FakeMediaStore(JPEG)
    assert_reencoded(await images.load_channel_image(store, build_image_file(mime_type)), "JPEG")
    assert store.requests == [("1234", 5 * 1024 * 1024, "hash")]


@each(
    "content, mime_type, message",
    [
        (PNG, "image/jpeg", "does not match its declared media type"),
        (PDF, "image/jpeg", INVALID_IMAGE_ERROR),
        (b"", None, INVALID_IMAGE_ERROR),
        (ANIMATED, "image/png", "must not be animated"),
    ],
)
async def test_invalid_channel_image_is_rejected(
    content: bytes, mime_type: str | None, message: str
) -> None:
    with pytest.raises(ImageError) as raised:
        await images.load_channel_image(FakeMediaStore(content), build_image_file(mime_type))
    assert str(raised.value) == message


async def test_media_of_an_unsupported_type_is_not_fetched() -> None:
    store = FakeMediaStore(PNG)
    with pytest.raises(ImageError, match=r"^must be a JPEG or PNG image$"):
        await images.load_channel_image(store, build_image_file("image/webp"))
    assert store.requests == []


async def test_media_error_of_the_channel_is_propagated() -> None:
    with pytest.raises(MediaError, match="could not be fetched"):
        await images.load_channel_image(
            FakeMediaStore(MediaError("could not be fetched", is_retryable=True)),
            build_image_file(None),
        )


async def test_image_is_rejected_as_unavailable_while_the_queue_is_full(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    release, pool = threading.Event(), images.BoundedThreadPool("images", threads=1, max_pending=1)
    monkeypatch.setattr(images, "image_threads", pool)
    first = asyncio.create_task(pool.run(release.wait))
    try:
        await asyncio.sleep(0)
        with pytest.raises(ApiError) as busy:
            await images.load_inline_image(build_data_uri(JPEG_PREFIX, JPEG))
    finally:
        release.set()
        await first
    assert busy.value.code == Code.SERVICE_UNAVAILABLE
    assert_reencoded(await images.load_inline_image(build_data_uri(JPEG_PREFIX, JPEG)), "JPEG")
