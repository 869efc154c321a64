"""How the cost of a run grows with one thing at a time: lines of a table, and a picture."""

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from benchmarks.speed.clusters import GROWTHS, Growth
from benchmarks.speed.measurement import Cost

GROWTH_COLUMNS: Final = (
    "what grows",
    "size",
    "events",
    "CPU s",
    "bare events an event",
    "bare events a simulated ms",
    "judging",
    "peak MiB",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class SizeCost:
    """The cost of one size of a growing dimension."""

    growth: Growth
    size: int
    cost: Cost

    def cells(self, limit_s: int) -> list[str]:
        cost = self.cost
        head = [self.growth.unit, f"{self.size}"]
        if cost.over:
            return [*head, "", f"over {limit_s}", "", "", "", f"{cost.peak_mib:.0f}"]
        return [
            *head,
            f"{cost.events}",
            f"{cost.cpu_s:.2f}",
            f"{cost.bare_events_per_event:.0f}",
            f"{bare_events_per_simulated_ms(cost):.0f}",
            f"{cost.judge_s / cost.cpu_s:.0%}",
            f"{cost.peak_mib:.0f}",
        ]


def bare_events_per_simulated_ms(cost: Cost) -> float:
    """Return how many events of the barest loop take as long as a simulated millisecond."""
    return cost.cpu_s * cost.bare_events_per_s / (cost.simulated_s * 1e3)


# The picture: two panels with logarithmic axes, drawn with only the standard library.

_WIDTH: Final = 960
_HEIGHT: Final = 430
_PANEL: Final = 330
_TOP: Final = 60
_LEFTS: Final = (70, 470)
_COLOURS: Final = ("#0072b2", "#d55e00", "#009e73", "#aa4499")
"""From the palettes of Okabe and Ito, and of Tol, which colour-blind readers can distinguish."""
_STYLE: Final = (
    "text { font: 13px sans-serif; fill: #777 } .title { font-weight: bold }"
    " .grid { stroke: #7774 } .trend { stroke: #777; stroke-dasharray: 4 4 } .cost { fill: none; stroke-width: 2 }"
)


def growth_picture(steps: Sequence[SizeCost]) -> str:
    """Return an SVG that shows the cost of each size as a multiple of the smallest size's cost."""
    known = [step for step in steps if not step.cost.over]
    panels: tuple[tuple[str, Callable[[Cost], float]], ...] = (
        ("CPU time an event", lambda cost: cost.bare_events_per_event),
        ("CPU time a simulated second", bare_events_per_simulated_ms),
    )
    lines = [
        f'<svg viewBox="0 0 {_WIDTH} {_HEIGHT}" xmlns="http://www.w3.org/2000/svg" role="img">',
        f"<style>{_STYLE}</style>",
    ]
    for left, (title, cost_of) in zip(_LEFTS, panels, strict=True):
        lines += _panel(left, title, cost_of, known)
    for number, growth in enumerate(GROWTHS):
        y = _TOP + 20 + 22 * number
        lines.append(
            f'<path class="cost" stroke="{_COLOURS[number]}" d="M 820 {y} h 20"/><text x="846" y="{y + 4}">{growth.name}</text>'
        )
    lines.append(f'<text x="846" y="{_TOP + 112}">in proportion</text>')
    lines.append(f'<path class="trend" d="M 820 {_TOP + 108} h 20"/>')
    return "".join(f"{line}\n" for line in (*lines, "</svg>"))


def _panel(
    left: int, title: str, cost_of: Callable[[Cost], float], steps: Sequence[SizeCost]
) -> Iterator[str]:
    series = [_relative([step for step in steps if step.growth is growth], cost_of) for growth in GROWTHS]
    x_decades = max((math.log10(x) for line in series for x, _ in line), default=1)
    y_logs = [math.log10(y) for line in series for _, y in line]
    y_low = math.floor(min(y_logs, default=0))
    y_high = max(y_low + 1, math.ceil(max(y_logs, default=1)))
    x_high = max(1, math.ceil(x_decades))

    def x_of(value: float) -> float:
        return left + _PANEL * math.log10(value) / x_high

    def y_of(value: float) -> float:
        return _TOP + _PANEL * (y_high - math.log10(value)) / (y_high - y_low)

    yield f'<text class="title" x="{left}" y="24">{title}</text>'
    yield f'<text x="{left}" y="44">as a multiple of the smallest size</text>'
    for decade in range(x_high + 1):
        x = x_of(10**decade)
        yield f'<path class="grid" d="M {x:.1f} {_TOP} v {_PANEL}"/>'
        yield f'<text text-anchor="middle" x="{x:.1f}" y="{_TOP + _PANEL + 18}">{10**decade}</text>'
    for decade in range(y_low, y_high + 1):
        y = y_of(10**decade)
        yield f'<path class="grid" d="M {left} {y:.1f} h {_PANEL}"/>'
        yield f'<text text-anchor="end" x="{left - 6}" y="{y + 4:.1f}">{10.0**decade:g}</text>'
    end = 10 ** min(x_high, y_high)
    yield f'<path class="trend" d="M {x_of(1):.1f} {y_of(1):.1f} L {x_of(end):.1f} {y_of(end):.1f}"/>'
    for number, line in enumerate(series):
        points = " L ".join(f"{x_of(x):.1f} {y_of(y):.1f}" for x, y in line)
        if points:
            yield f'<path class="cost" stroke="{_COLOURS[number]}" d="M {points}"/>'
        for x, y in line:
            yield f'<circle r="3" fill="{_COLOURS[number]}" cx="{x_of(x):.1f}" cy="{y_of(y):.1f}"/>'
    yield f'<text x="{left}" y="{_TOP + _PANEL + 36}">size, as a multiple of the smallest</text>'


def _relative(steps: Sequence[SizeCost], cost_of: Callable[[Cost], float]) -> list[tuple[float, float]]:
    """Return sizes and costs as multiples of the first."""
    return [(step.size / steps[0].size, cost_of(step.cost) / cost_of(steps[0].cost)) for step in steps]
