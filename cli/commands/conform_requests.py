"""`harrow conform --requests`: the same requests to a real broker and to the model's."""

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
from harrow.cli.commands.brokers import ENDING, is_cluster_file, started_brokers
from harrow.cli.console import message_console, say, show
from harrow.cli.extras import need
from harrow.cli.interrupts import Interrupts
from harrow.cli.progress import ProgressLine
from harrow.cli.render.layout import DIM, FAILED, indented
from harrow.cli.requests.conform import ConformRequest
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
    """Compare as many requests as were asked for, print what differs, and return the exit code."""
    assert request.requests is not None
    if is_cluster_file(request.target):
        raise typer.BadParameter(
            "single requests go to a broker that harrow starts: give a release such as kafka:2.4.1",
            param_hint="--target",
        )
    messages = message_console(no_color=request.no_color)
    need("hypothesis")
    need("live")
    brokers = started_brokers(request.target, request.kafka_home, messages, quiet=request.quiet)
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

    def compared() -> None:
        interrupts.check()
        progress.update(measured.requests, f"{counted(measured.sequences, 'sequence')} compared")

    def compare(folder: Path) -> None:
        assert request.requests is not None
        asked = request.requests, request.seed or 0, measured, compared
        if request.of == "brokers":
            with RealBrokers(brokers, folder, SETTINGS) as real:
                measure(brokers.release, real, *asked)
        else:
            with RealCoordinators(
                brokers, folder, real_coordinator_settings(brokers.release)
            ) as coordinators:
                measure_coordinators(brokers.release, coordinators, request.of, *asked)

    with Interrupts() as interrupts, data(request) as console:
        interrupts.heed(*ENDING)
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
            (f"{brokers.metadata}, {asked}", tally.requests, tally.sequences, tally.differing)
            for asked, tally in measured.tallies.items()
        ]
        console.file.write(table(heads, [tuple(text(str(value)) for value in row) for row in rows]) + "\n")
    else:
        for kind, found in measured.shortest.items():
            show(console, *_lines(measured.differing[kind], found))
        if measured.ended_in is not None:
            show(console, *_last_requests(measured.ended_in))
        said = AGREED if measured.requests else "nothing compared"
        if measured.differing:
            said = f"{counted(sum(measured.differing.values()), 'sequence')} differ"
        show(
            console,
            Text(
                f"{counted(measured.requests, 'request')} in {counted(measured.sequences, 'sequence')} "
                f"on {request.target}: {said}"
            ),
        )


def _lines(count: int, found: "ComparedSequence") -> Iterator[Any]:
    """Yield a difference: how often it came up, the shortest way to it, and what the two brokers answered."""
    from harrow.live_cluster.requests.comparison import difference_text

    last = found.exchanges[-1]
    yield Text.assemble((DIFFERS, FAILED), f"  {difference_text(last)}  ({counted(count, 'sequence')})")
    for exchange in found.exchanges:
        yield indented(str(exchange.request or exchange.step), _INDENT, DIM)
    yield indented(f"model:  {last.modelled}", _INDENT)
    yield indented(f"broker: {last.real}", _INDENT)


def _last_requests(ended_in: "ComparedSequence") -> Iterator[Any]:
    """Yield the sequence in which the broker did not hold out."""
    yield Text("the last that it was asked:")
    for exchange in ended_in.exchanges:
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
        "asked": {asked: asdict(tally) for asked, tally in measured.tallies.items()},
        "differences": [
            {
                "count": measured.differing[kind],
                "kind": "; ".join(map(str, kind)),
                "parts": [part._asdict() for part in kind],
                "shortest": recording(found),
            }
            for kind, found in measured.shortest.items()
        ],
        "ended_in": None if measured.ended_in is None else recording(measured.ended_in),
    }
