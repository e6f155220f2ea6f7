"""Colors in the notation `#rrggbb`: contrast as WCAG defines it, and mixtures."""

import re
from typing import Final

#: Contrast that WCAG 2 (AA) requires of text.
MIN_TEXT_CONTRAST: Final = 4.5
WHITE: Final = "#ffffff"

_COLOR: Final = re.compile(r"#[0-9a-fA-F]{6}")


def is_color(text: str) -> bool:
    return _COLOR.fullmatch(text) is not None


def get_contrast(first: str, second: str) -> float:
    """Return the contrast of two colors, from 1 to 21."""
    darker, lighter = sorted((_get_luminance(first), _get_luminance(second)))
    return (lighter + 0.05) / (darker + 0.05)


def mix(first: str, second: str, share: float) -> str:
    """Return a mixture in which the second color has the given share."""
    channels = zip(_get_channels(first), _get_channels(second), strict=True)
    return "#" + "".join(f"{round(a + (b - a) * share):02x}" for a, b in channels)


def _get_channels(color: str) -> list[int]:
    return [int(color[start : start + 2], 16) for start in (1, 3, 5)]


def _get_luminance(color: str) -> float:
    red, green, blue = (_to_linear(channel / 255) for channel in _get_channels(color))
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def _to_linear(value: float) -> float:
    return value / 12.92 if value <= 0.04045 else float(((value + 0.055) / 1.055) ** 2.4)
