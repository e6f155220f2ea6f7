"""Chart of a card's tap counters: the genuine card climbs, a copy falls behind."""

from typing import Any, Final, NamedTuple

WIDTH: Final = 600
HEIGHT: Final = 110
_MARGIN: Final = 8


class TapMark(NamedTuple):
    """Position of a tap in the chart, oldest first."""

    x: int
    y: int
    is_accepted: bool
    counter: int


class TapMarks(NamedTuple):
    marks: list[TapMark]
    #: SVG points of the line through accepted taps, and of the line through rejected ones.
    genuine: str
    copied: str


def build_tap_marks(taps: Any) -> TapMarks | None:
    """Return the chart, or None if it would show nothing: a copy needs a rejected tap."""
    rows = [] if taps is None else [tap for tap in taps["data"] if tap["counter"] is not None][::-1]
    if len(rows) < 2 or all(tap["result"] == "accepted" for tap in rows):
        return None
    lowest = min(tap["counter"] for tap in rows)
    span = max(tap["counter"] for tap in rows) - lowest or 1
    marks = [
        TapMark(
            x=_MARGIN + index * (WIDTH - 2 * _MARGIN) // (len(rows) - 1),
            y=HEIGHT - _MARGIN - (tap["counter"] - lowest) * (HEIGHT - 2 * _MARGIN) // span,
            is_accepted=tap["result"] == "accepted",
            counter=tap["counter"],
        )
        for index, tap in enumerate(rows)
    ]
    return TapMarks(
        marks,
        " ".join(f"{mark.x},{mark.y}" for mark in marks if mark.is_accepted),
        " ".join(f"{mark.x},{mark.y}" for mark in marks if not mark.is_accepted),
    )
