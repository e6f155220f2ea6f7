"""Bar chart layout: bar heights, labels and grid lines. The template draws them."""

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from decimal import Decimal
from typing import Any, Final, NamedTuple
from zoneinfo import ZoneInfo

from tapgate.sites.console.times import MONTHS

#: Plot height in CSS pixels, as in `charts.css`. All charts have the same baseline.
HEIGHT: Final = 180
_TOP_MARGIN: Final = 6
_BASELINE: Final = HEIGHT - 1
_MAX_LABELS: Final = 8
_ROUND_STEPS: Final = tuple(Decimal(step) for step in ("1", "2", "3", "4", "6", "8", "10"))
Translate = Callable[[str], str]


class BarSegment(NamedTuple):
    """Segment in a stacked bar. `kind` is the series, which determines the fill."""

    kind: str
    y: Decimal
    height: Decimal


class Bar(NamedTuple):
    """Bar for a bucket. On phones, minor labels are hidden."""

    segments: list[BarSegment]
    label: str
    has_label: bool
    is_minor_label: bool
    values: list[Decimal]
    #: The same bucket of the period before, if it is compared.
    previous: Decimal | None = None
    previous_y: Decimal | None = None


class GridLine(NamedTuple):
    """Horizontal grid line at a round value."""

    y: Decimal
    value: str


class Chart(NamedTuple):
    bars: list[Bar]
    grid_lines: list[GridLine]
    kinds: Sequence[str]


def build_bar_chart(
    buckets: Sequence[Mapping[str, Any]],
    kinds: Sequence[str],
    *,
    period: str,
    zone: ZoneInfo,
    translate: Translate = str,
    previous: Sequence[Mapping[str, Any]] = (),
) -> Chart:
    """Build a chart with one bar per bucket, its segments stacked in the order of `kinds`.

    `previous` are the buckets of the period before, which are marked on the bars.
    """
    values = [[Decimal(str(bucket[kind])) for kind in kinds] for bucket in buckets]
    earlier = [sum((Decimal(str(item[kind])) for kind in kinds), Decimal(0)) for item in previous]
    totals = [sum(row, Decimal(0)) for row in values]
    top = _round_up(max([*totals, *earlier], default=Decimal(0)))
    label_interval = -(-len(buckets) // _MAX_LABELS) or 1
    bars = []
    for index, (bucket, row) in enumerate(zip(buckets, values, strict=True)):
        rank, remainder = divmod(len(buckets) - 1 - index, label_interval)
        before = earlier[index] if index < len(earlier) else None
        bars.append(
            Bar(
                segments=_stack_segments(kinds, row, top),
                label=_format_label(bucket["start"], period, zone, translate),
                has_label=remainder == 0,
                is_minor_label=rank % 2 == 1,
                values=row,
                previous=before,
                previous_y=None if before is None else _to_y(before, top),
            )
        )
    return Chart(
        bars=bars,
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
    return _round_coordinate(_BASELINE - (_BASELINE - _TOP_MARGIN) * value / top)


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


def _format_label(start: str, period: str, zone: ZoneInfo, translate: Translate) -> str:
    start_time = datetime.fromisoformat(start).astimezone(zone)
    if period == "day":
        return f"{start_time:%H:%M}"
    return f"{start_time.day} {translate(MONTHS[start_time.month - 1])}"


def _round_coordinate(value: Decimal) -> Decimal:
    return value.quantize(Decimal("0.1"))
