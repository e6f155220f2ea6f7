"""Effective branding, and its colors as a stylesheet."""

from datetime import datetime
from typing import Final

import msgspec

from tapgate_client.clock import format_rfc3339
from tapgate_client.colors import MIN_TEXT_CONTRAST, WHITE, get_contrast, mix
from tapgate_client.schemas.branding import BrandingRecord

DEFAULT_COLOR: Final = "#0f766e"

_BLACK: Final = "#000000"
#: Dark theme surface, as in `palette.css`.
_DARK_SURFACE: Final = "#14181e"
_MIN_DARK_CONTRAST: Final = 7.0
_STEPS: Final = 20
_STYLESHEET: Final = """\
:root {{ --brand: {color}; --accent: {color}; --on-accent: {white}; --accent-soft: {soft}; }}
@media screen and (prefers-color-scheme: dark) {{
  :root:not([data-theme="light"]) {{ {dark} }}
}}
@media screen {{ :root[data-theme="dark"] {{ {dark} }} }}
"""
_DARK_VALUES: Final = "--accent: {color}; --on-accent: {ink}; --accent-soft: {soft};"


class Branding(msgspec.Struct, frozen=True, kw_only=True):
    name: str
    color: str
    support_contact: str | None
    statement_header: str | None
    logo: bytes | None
    updated_at: datetime | None


def to_record(branding: Branding) -> BrandingRecord:
    return BrandingRecord(
        name=branding.name,
        color=branding.color,
        support_contact=branding.support_contact,
        statement_header=branding.statement_header,
        has_logo=branding.logo is not None,
        updated_at=None if branding.updated_at is None else format_rfc3339(branding.updated_at),
    )


def render_stylesheet(color: str) -> str:
    """Return the stylesheet that replaces the accent color in light and dark mode.

    In dark mode the color is lightened until it is readable on the dark surface.
    """
    shares = [step / _STEPS for step in range(_STEPS + 1)]
    light = next(
        candidate
        for share in shares
        if get_contrast(candidate := mix(color, WHITE, share), _DARK_SURFACE) >= _MIN_DARK_CONTRAST
    )
    dark = _DARK_VALUES.format(
        color=light, ink=mix(color, _BLACK, 0.8), soft=_build_tint(light, _DARK_SURFACE)
    )
    return _STYLESHEET.format(color=color, white=WHITE, soft=_build_tint(color, WHITE), dark=dark)


def _build_tint(color: str, surface: str) -> str:
    """Return the surface with up to an eighth of the color, on which the color is readable."""
    tints = (mix(surface, color, 0.12 - 0.01 * step) for step in range(13))
    return next((tint for tint in tints if get_contrast(tint, color) >= MIN_TEXT_CONTRAST), surface)
