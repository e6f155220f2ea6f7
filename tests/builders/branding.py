"""Statement branding and logos."""

import io
from typing import Final

from PIL import Image

from tapgate.business.branding.model import DEFAULT_COLOR, Branding

BRANDING: Final = Branding(
    name="Tapgate",
    color=DEFAULT_COLOR,
    support_contact=None,
    statement_header=None,
    logo=None,
    updated_at=None,
)


def build_png(width: int = 4, height: int = 2) -> bytes:
    file = io.BytesIO()
    Image.new("RGBA", (width, height), "#0f766e80").save(file, "PNG")
    return file.getvalue()
