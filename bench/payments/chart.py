"""SVG bar chart of a run: payments and TPC-B transactions per second."""

from typing import NamedTuple

from bench.payments.results import Results, get_best_phase, get_best_tpcb_run

_WIDTH, _LEFT, _RIGHT = 720, 190, 80
_BAR, _GAP, _GROUP_GAP = 22, 8, 22
_TOP, _BOTTOM = 44, 16

_STYLE = """
    text { font: 13px system-ui, sans-serif; fill: #24292f; }
    .title { font-weight: 600; font-size: 15px; }
    .payments { fill: #1a7f5a; }
    .tpcb { fill: #8c959f; }
    @media (prefers-color-scheme: dark) {
        text { fill: #e6edf3; }
        .payments { fill: #3fb98a; }
        .tpcb { fill: #6e7681; }
    }
"""


class Bar(NamedTuple):
    kind: str
    name: str
    value: float


def render_svg(results: Results) -> str:
    groups = [_build_payment_bars(results), _build_tpcb_bars(results)]
    max_value = max(bar.value for group in groups for bar in group)
    y, parts = _TOP, []
    for group in groups:
        for bar in group:
            parts.append(_render_bar(bar, y, max_value))
            y += _BAR + _GAP
        y += _GROUP_GAP - _GAP
    height = y - _GROUP_GAP + _BOTTOM
    title = f"Per second, on one server in one run (ratio {results.ratio.ratio:.2f})"
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {height}" role="img"'
        f' width="{_WIDTH}" height="{height}" aria-label="{title}">\n'
        f"<style>{_STYLE}</style>\n"
        f'<text class="title" x="8" y="24">{title}</text>\n' + "\n".join(parts) + "\n</svg>\n"
    )


def _build_payment_bars(results: Results) -> list[Bar]:
    counts = sorted({phase.connections for phase in results.payments if phase.connections > 1})
    return [
        Bar(
            "payments", f"payments, {n} connections", get_best_phase(results.payments, n).per_second
        )
        for n in counts
    ]


def _build_tpcb_bars(results: Results) -> list[Bar]:
    counts = sorted({run.clients for run in results.tpcb if run.clients > 1})
    return [
        Bar("tpcb", f"TPC-B, {n} clients", get_best_tpcb_run(results.tpcb, n).per_second)
        for n in counts
    ]


def _render_bar(bar: Bar, y: int, max_value: float) -> str:
    width = round(bar.value / max_value * (_WIDTH - _LEFT - _RIGHT))
    middle = y + _BAR // 2 + 5
    return (
        f'<text x="{_LEFT - 10}" y="{middle}" text-anchor="end">{bar.name}</text>\n'
        f'<rect class="{bar.kind}" x="{_LEFT}" y="{y}" width="{width}" height="{_BAR}" rx="3"/>\n'
        f'<text x="{_LEFT + width + 8}" y="{middle}">{bar.value:,.0f}</text>'
    )
