"""Charts as shapes of given size: where each bar and each label stands. The template draws them."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from decimal import Decimal
from typing import Any, Final, NamedTuple
from zoneinfo import ZoneInfo

WIDTH: Final = 640
HEIGHT: Final = 200
_LEFT: Final = 64
_RIGHT: Final = 22
_TOP: Final = 10
_BOTTOM: Final = 24
_MOST_LABELS: Final = 8
_GAP: Final = Decimal("0.22")  # of a bar's place
_STEPS: Final = tuple(Decimal(step) for step in ("1", "2", "3", "4", "6", "8", "10"))


class Part(NamedTuple):
    """A piece of a bar; `kind` says what it stands for, and how it is filled."""

    kind: str
    y: Decimal
    height: Decimal


class Bar(NamedTuple):
    x: Decimal
    width: Decimal
    middle: Decimal
    parts: list[Part]
    label: str
    is_labelled: bool
    values: list[Decimal]


class Line(NamedTuple):
    """Across the chart, at a round value."""

    y: Decimal
    value: str


class Chart(NamedTuple):
    bars: list[Bar]
    lines: list[Line]
    kinds: Sequence[str]
    width: int = WIDTH
    height: int = HEIGHT
    left: int = _LEFT
    right: int = WIDTH - _RIGHT
    bottom: int = HEIGHT - _BOTTOM


def bars(
    buckets: Sequence[Mapping[str, Any]], kinds: Sequence[str], *, period: str, zone: ZoneInfo
) -> Chart:
    """One bar for each bucket, its parts on top of each other in the order of `kinds`."""
    values = [[Decimal(str(bucket[kind])) for kind in kinds] for bucket in buckets]
    top = _round_up(max((sum(row, Decimal(0)) for row in values), default=Decimal(0)))
    place = Decimal(WIDTH - _LEFT - _RIGHT) / max(len(buckets), 1)
    every = -(-len(buckets) // _MOST_LABELS) or 1
    return Chart(
        bars=[
            Bar(
                x=_exact(_LEFT + place * (number + _GAP / 2)),
                width=_exact(place * (1 - _GAP)),
                middle=_exact(_LEFT + place * (number + Decimal("0.5"))),
                parts=_stacked(kinds, row, top),
                label=_label(bucket["start"], period, zone),
                is_labelled=(len(buckets) - 1 - number) % every == 0,
                values=row,
            )
            for number, (bucket, row) in enumerate(zip(buckets, values, strict=True))
        ],
        lines=[Line(_y(top * share / 2, top), _short(top * share / 2)) for share in (0, 1, 2)],
        kinds=kinds,
    )


def _stacked(kinds: Sequence[str], row: Sequence[Decimal], top: Decimal) -> list[Part]:
    parts, below = [], Decimal(0)
    for kind, value in zip(kinds, row, strict=True):
        if value > 0:
            upper, lower = _y(below + value, top), _y(below, top)
            parts.append(Part(kind, upper, _exact(lower - upper)))
        below += value
    return parts


def _y(value: Decimal, top: Decimal) -> Decimal:
    room = Decimal(HEIGHT - _TOP - _BOTTOM)
    return _exact(_TOP + room - room * value / top)


def _round_up(value: Decimal) -> Decimal:
    """The next round value, at which the chart ends; half of it is a whole number too."""
    if value <= 1:
        return Decimal(2)
    power = Decimal(10) ** value.adjusted()
    return next(top for step in _STEPS if (top := step * power) >= value and top % 2 == 0)


def _short(value: Decimal) -> str:
    """`1.2M`, `340k`, `12`."""
    for size, letter in ((10**9, "B"), (10**6, "M"), (10**3, "k")):
        if value >= size:
            return f"{(value / size).normalize():f}{letter}"
    return f"{value.normalize():f}"


def _label(start: str, period: str, zone: ZoneInfo) -> str:
    moment = datetime.fromisoformat(start).astimezone(zone)
    return f"{moment:%H:%M}" if period == "day" else f"{moment.day} {moment:%b}"


def _exact(value: Decimal) -> Decimal:
    return value.quantize(Decimal("0.1"))
