"""Drawn pictures of identity documents for the demo."""

import base64
import io
from typing import Final

from PIL import Image, ImageDraw

from tapgate_client.schemas.subscribers import KycDocumentType
from tapgate_sandbox.demo.country import Person

_SIZE: Final = (800, 500)
_BACKGROUND, _INK, _ACCENT = "#e8f1ee", "#1b2b29", "#0f766e"


def draw_document(document_type: KycDocumentType, person: Person) -> str:
    """Return a document's picture as a data URI."""
    picture = Image.new("RGB", _SIZE, _BACKGROUND)
    draw = ImageDraw.Draw(picture)
    if document_type == KycDocumentType.SELFIE:
        _draw_portrait(draw, left=260, top=70, scale=1.4)
    else:
        draw.rectangle((0, 0, _SIZE[0], 80), fill=_ACCENT)
        draw.text((30, 24), "DEMO IDENTITY CARD", fill="white", font_size=32)
        _draw_portrait(draw, left=40, top=130, scale=1.0)
        lines = (person.first_name, person.last_name, *person.address.split(", "))
        for number, line in enumerate(lines):
            draw.text((290, 140 + 60 * number), line, fill=_INK, font_size=32)
    draw.text((30, 450), "Sample picture, not a real document", fill=_INK, font_size=24)
    file = io.BytesIO()
    picture.save(file, "JPEG", quality=80)
    return f"data:image/jpeg;base64,{base64.b64encode(file.getvalue()).decode()}"


def _draw_portrait(draw: ImageDraw.ImageDraw, *, left: int, top: int, scale: float) -> None:
    def place(*points: int) -> list[float]:
        return [(left, top)[index % 2] + scale * point for index, point in enumerate(points)]

    draw.rectangle(place(0, 0, 200, 260), fill="#cfe3de")
    draw.ellipse(place(55, 40, 145, 150), fill="#8a5a3b")
    draw.pieslice(place(15, 165, 185, 355), 180, 360, fill=_ACCENT)
