"""Layout of bar charts: positions of bars, labels and grid lines. The template draws them."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from decimal import Decimal
from typing import Any, Final, NamedTuple
from zoneinfo import ZoneInfo

WIDTH: Final = 640
HEIGHT: Final = 200
_LEFT_MARGIN: Final = 64
_RIGHT_MARGIN: Final = 22
_TOP_MARGIN: Final = 10
_BOTTOM_MARGIN: Final = 24
_MAX_LABELS: Final = 8
_BAR_GAP: Final = Decimal("0.22")  # as a fraction of the slot of a bar
_ROUND_STEPS: Final = tuple(Decimal(step) for step in ("1", "2", "3", "4", "6", "8", "10"))


class BarSegment(NamedTuple):
    """Segment of a stacked bar. `kind` is the series, which determines the fill."""

    kind: str
    y: Decimal
    height: Decimal


class Bar(NamedTuple):
    x: Decimal
    width: Decimal
    center: Decimal
    segments: list[BarSegment]
    label: str
    has_label: bool
    values: list[Decimal]


class GridLine(NamedTuple):
    """Horizontal grid line at a round value."""

    y: Decimal
    value: str


class Chart(NamedTuple):
    bars: list[Bar]
    grid_lines: list[GridLine]
    kinds: Sequence[str]
    width: int = WIDTH
    height: int = HEIGHT
    left: int = _LEFT_MARGIN
    right: int = WIDTH - _RIGHT_MARGIN
    bottom: int = HEIGHT - _BOTTOM_MARGIN


def build_bar_chart(
    buckets: Sequence[Mapping[str, Any]], kinds: Sequence[str], *, period: str, zone: ZoneInfo
) -> Chart:
    """Build a chart with one bar per bucket, its segments stacked in the order of `kinds`."""
    values = [[Decimal(str(bucket[kind])) for kind in kinds] for bucket in buckets]
    top = _round_up(max((sum(row, Decimal(0)) for row in values), default=Decimal(0)))
    slot_width = Decimal(WIDTH - _LEFT_MARGIN - _RIGHT_MARGIN) / max(len(buckets), 1)
    label_interval = -(-len(buckets) // _MAX_LABELS) or 1
    return Chart(
        bars=[
            Bar(
                x=_round_coordinate(_LEFT_MARGIN + slot_width * (index + _BAR_GAP / 2)),
                width=_round_coordinate(slot_width * (1 - _BAR_GAP)),
                center=_round_coordinate(_LEFT_MARGIN + slot_width * (index + Decimal("0.5"))),
                segments=_stack_segments(kinds, row, top),
                label=_format_label(bucket["start"], period, zone),
                has_label=(len(buckets) - 1 - index) % label_interval == 0,
                values=row,
            )
            for index, (bucket, row) in enumerate(zip(buckets, values, strict=True))
        ],
        grid_lines=[
            GridLine(_to_y(top * halves / 2, top), _format_short(top * halves / 2))
            for halves in (0, 1, 2)
        ],
        kinds=kinds,
    )


def _stack_segments(kinds: Sequence[str], row: Sequence[Decimal], top: Decimal) -> list[BarSegment]:
    segments, base = [], Decimal(0)
    for kind, value in zip(kinds, row, strict=True):
        if value > 0:
            upper, lower = _to_y(base + value, top), _to_y(base, top)
            segments.append(BarSegment(kind, upper, _round_coordinate(lower - upper)))
        base += value
    return segments


def _to_y(value: Decimal, top: Decimal) -> Decimal:
    plot_height = Decimal(HEIGHT - _TOP_MARGIN - _BOTTOM_MARGIN)
    return _round_coordinate(_TOP_MARGIN + plot_height - plot_height * value / top)


def _round_up(value: Decimal) -> Decimal:
    """Return the top of the value axis: the next round value whose half is a whole number."""
    if value <= 1:
        return Decimal(2)
    power = Decimal(10) ** value.adjusted()
    return next(top for step in _ROUND_STEPS if (top := step * power) >= value and top % 2 == 0)


def _format_short(value: Decimal) -> str:
    """Format a value compactly: `1.2M`, `340k`, `12`."""
    for size, letter in ((10**9, "B"), (10**6, "M"), (10**3, "k")):
        if value >= size:
            return f"{(value / size).normalize():f}{letter}"
    return f"{value.normalize():f}"


def _format_label(start: str, period: str, zone: ZoneInfo) -> str:
    start_time = datetime.fromisoformat(start).astimezone(zone)
    return f"{start_time:%H:%M}" if period == "day" else f"{start_time.day} {start_time:%b}"


def _round_coordinate(value: Decimal) -> Decimal:
    return value.quantize(Decimal("0.1"))
