"""Renders service levels for people: latencies, acks over time, and outages with their causes."""

from collections.abc import Iterator, Sequence
from typing import Final

from rich.console import Console, ConsoleOptions, RenderableType, RenderResult

from harrow.campaigns.language.spelling import counted
from harrow.campaigns.language.units import rough_duration_text
from harrow.campaigns.record.service_report import (
    consumer_text,
    coordination_rows,
    latency_text,
    outage_rows,
    sends_text,
)
from harrow.checks.service.levels import ServiceLevels, percentile
from harrow.cli.console import is_unicode
from harrow.cli.render.layout import DIM, columns, terms
from harrow.cli.text import Text

OUTAGES_SHOWN: Final = 5
_BARS: Final = "▁▂▃▄▅▆▇█"
_ASCII_BARS: Final = ".:-=+*#%"
_BLANK: Final = " "
_USUAL_PERCENT: Final = 90


class AcksOverTime:
    """Acks over time: a sign for each time step, and a line with its length and the maximum.

    If the line has no room for all time steps, several of them share a sign.
    """

    def __init__(self, counts: Sequence[int], bucket_us: int) -> None:
        self._counts = counts
        self._bucket_us = bucket_us

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        steps_per_sign = -(-len(self._counts) // max(1, options.max_width))
        sums = [
            sum(self._counts[start : start + steps_per_sign])
            for start in range(0, len(self._counts), steps_per_sign)
        ]
        yield Text(sparkline(sums, _BARS if is_unicode(console) else _ASCII_BARS))
        yield Text(
            f"each {rough_duration_text(steps_per_sign * self._bucket_us)}, at most {max(sums)} in one", DIM
        )


def sparkline(counts: Sequence[int], bars: str) -> str:
    """Return a sign for each count, a blank for zero."""
    # If the highest bar stood for the maximum, a burst after an outage would hide everything else.
    usual = percentile(sorted(filter(None, counts)) or [1], _USUAL_PERCENT)
    return "".join(_BLANK if n == 0 else bars[min(len(bars), -(-n * len(bars) // usual)) - 1] for n in counts)


def service_lines(levels: ServiceLevels) -> Iterator[RenderableType]:
    if not levels.total.sent and not levels.consumers:
        return
    rows = terms(style=DIM, gap=2)
    rows.add_row("sends", Text(sends_text(levels.total)))
    rows.add_row("time to ack", Text(latency_text(levels.total.ack_latency)))
    if levels.end_to_end is not None:
        rows.add_row("end to end", Text(latency_text(levels.end_to_end)))
    for noun, text in coordination_rows(levels):
        rows.add_row(noun, Text(text))
    for name, level in levels.consumers.items():
        rows.add_row(name, Text(consumer_text(level)))
    if len(levels.acks) > 1:
        rows.add_row("acks", AcksOverTime(levels.acks, levels.bucket_us))
    yield rows
    outages = levels.outages
    if outages:
        yield Text()
        yield columns("no acks of", "from", "for", "because", rows=outage_rows(levels, OUTAGES_SHOWN))
        if len(outages) > OUTAGES_SHOWN:
            yield Text(f"and {counted(len(outages) - OUTAGES_SHOWN, 'shorter outage')}", DIM)
