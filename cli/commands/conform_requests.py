"""`harrow conform --requests`: compares a real broker's responses with a model broker's."""

from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import typer
from rich.console import Console

from harrow.campaigns.language.spelling import counted
from harrow.campaigns.record.markdown import table, text
from harrow.campaigns.temporary_folder import temporary_folder
from harrow.campaigns.version import version
from harrow.cli import exit_code
from harrow.cli.commands.brokers import TERMINATION_SIGNALS, is_target_file, started_brokers
from harrow.cli.console import message_console, say, show
from harrow.cli.extras import need
from harrow.cli.interrupts import Interrupts
from harrow.cli.progress import ProgressLine
from harrow.cli.render.layout import DIM, FAILED, indented
from harrow.cli.requests.real_brokers import ConformRequest
from harrow.cli.session import data, write_json
from harrow.cli.text import Text
from harrow.live_cluster.errors import LiveError
from harrow.live_cluster.target.conformity import AGREED, DIFFERS

if TYPE_CHECKING:
    from harrow.live_cluster.local.started_brokers import StartedBrokers
    from harrow.live_cluster.requests.comparison import ComparedSequence
    from harrow.live_cluster.requests.measures.measure import Measure

_SCHEMA: Final = "harrow.conform-requests/1"
_INDENT: Final = 2


def requests_session(request: ConformRequest) -> int:
    """Compare ``--requests`` requests, print the differences, and return the exit code."""
    assert request.requests is not None
    if is_target_file(request.target):
        raise typer.BadParameter(
            "single requests go to a broker that harrow starts: give a release such as kafka:2.4.1",
            param_hint="--target",
        )
    messages = message_console(no_color=request.no_color)
    need("hypothesis", "live")
    brokers = started_brokers(request)
    brokers.get()
    from harrow.live_cluster.requests.brokers.real_broker import RealBrokers
    from harrow.live_cluster.requests.coordinators.real_coordinator import RealCoordinators
    from harrow.live_cluster.requests.measures.measure import (
        SETTINGS,
        Measure,
        measure,
        measure_coordinators,
        real_coordinator_settings,
    )

    progress = ProgressLine(messages, total=request.requests, enabled=not request.quiet)
    measured = Measure()

    def on_sequence() -> None:
        interrupts.check()
        progress.update(measured.requests, f"{counted(measured.sequences, 'sequence')} compared")

    def compare(folder: Path) -> None:
        assert request.requests is not None
        arguments = request.requests, request.seed or 0, measured, on_sequence
        if request.of == "brokers":
            with RealBrokers(brokers, folder, SETTINGS) as real:
                measure(brokers.release, real, *arguments)
        else:
            settings = real_coordinator_settings(brokers.release)
            with RealCoordinators(brokers, folder, settings) as coordinators:
                measure_coordinators(brokers.release, coordinators, request.of, *arguments)

    with Interrupts() as interrupts, data(request) as console:
        interrupts.handle_also(*TERMINATION_SIGNALS)
        try:
            progress.update(0, "starting a broker")
            with temporary_folder() as folder:
                compare(folder)
        except KeyboardInterrupt:
            progress.clear()
            _print(request, console, measured, brokers)
            return exit_code.INTERRUPTED
        except LiveError as error:
            progress.clear()
            say(messages, str(error), style="red")
            _print(request, console, measured, brokers)
            return exit_code.BROKEN if measured.differing else exit_code.INCONCLUSIVE
        finally:
            progress.clear()
        _print(request, console, measured, brokers)
    return exit_code.BROKEN if measured.differing else exit_code.OK


def _print(request: ConformRequest, console: Console, measured: "Measure", brokers: "StartedBrokers") -> None:
    if request.output_format == "json":
        write_json(console, _document(request, measured))
    elif request.output_format == "markdown":
        heads = (f"Kafka {brokers.release.name}", "requests", "sequences", "differ")
        rows = [
            (f"{brokers.metadata}, {subject}", tally.requests, tally.sequences, tally.differing)
            for subject, tally in measured.tallies.items()
        ]
        console.file.write(table(heads, [tuple(text(str(value)) for value in row) for row in rows]) + "\n")
    else:
        for kind, shortest in measured.shortest.items():
            show(console, *_lines(measured.differing[kind], shortest))
        if measured.ended_in is not None:
            show(console, Text("the last requests before the broker failed:"), *_requests(measured.ended_in))
        result = AGREED if measured.requests else "nothing compared"
        if measured.differing:
            result = f"{counted(sum(measured.differing.values()), 'sequence')} differ"
        counts = f"{counted(measured.requests, 'request')} in {counted(measured.sequences, 'sequence')}"
        show(console, Text(f"{counts} on {request.target}: {result}"))


def _lines(count: int, shortest: "ComparedSequence") -> Iterator[Any]:
    """Yield lines about a difference: its count, the shortest sequence, and both responses."""
    from harrow.live_cluster.requests.comparison import difference_text

    last = shortest.exchanges[-1]
    yield Text.assemble((DIFFERS, FAILED), f"  {difference_text(last)}  ({counted(count, 'sequence')})")
    yield from _requests(shortest)
    yield indented(f"model:  {last.modelled}", _INDENT)
    yield indented(f"broker: {last.real}", _INDENT)


def _requests(sequence: "ComparedSequence") -> Iterator[Any]:
    for exchange in sequence.exchanges:
        yield indented(str(exchange.request or exchange.step), _INDENT, DIM)


def _document(request: ConformRequest, measured: "Measure") -> dict[str, Any]:
    from harrow.live_cluster.requests.measures.recording import recording

    return {
        "schema": _SCHEMA,
        "version": version(),
        "target": request.target,
        "seed": request.seed or 0,
        "requests": measured.requests,
        "sequences": measured.sequences,
        "asked": {subject: asdict(tally) for subject, tally in measured.tallies.items()},
        "differences": [
            {
                "count": measured.differing[kind],
                "kind": "; ".join(map(str, kind)),
                "parts": [part._asdict() for part in kind],
                "shortest": recording(shortest),
            }
            for kind, shortest in measured.shortest.items()
        ],
        "ended_in": None if measured.ended_in is None else recording(measured.ended_in),
    }
