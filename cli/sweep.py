"""``harrow sweep``: run campaigns for many seeds and settings."""

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from cli import completion
from cli.options import (
    DEFAULT_RESULTS,
    NoColor,
    Overrides,
    Quiet,
    ReportFormat,
    Variants,
    Verbose,
    need_terminal,
    parse_seeds,
    parse_time_s,
)

_SHRINK_TIME = "60s"


class SweepEngine(StrEnum):
    """What runs a sweep."""

    AUTO = "auto"
    SPARK = "spark"
    PROCESS = "process"


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("sweep", short_help="Run campaigns for many seeds and settings.")(sweep)


def sweep(
    campaigns: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="CAMPAIGN...",
            autocompletion=completion.campaigns,
            help="A file, a folder, or the name of a campaign of the library.",
        ),
    ] = None,
    seeds: Annotated[str | None, typer.Option(metavar="A..B", help="The seeds, from A to before B.")] = None,
    varies: Annotated[
        list[str] | None,
        typer.Option(
            "--vary",
            metavar="KEY=V1,V2",
            help="Run everything with each of these values, as --set would set them; several make a grid.",
        ),
    ] = None,
    overrides: Overrides = None,
    variants: Variants = None,
    engine: Annotated[
        SweepEngine,
        typer.Option(
            help="What runs it; `auto` takes Spark when PySpark and Java are there, else processes."
        ),
    ] = SweepEngine.AUTO,
    master: Annotated[
        str | None, typer.Option(metavar="URL", help="The Spark master; by default local[*], embedded.")
    ] = None,
    remote: Annotated[
        str | None, typer.Option(metavar="URL", help="A Spark Connect server, as sc://host:15002.")
    ] = None,
    workers: Annotated[
        int | None,
        typer.Option(
            metavar="N", min=1, help="How many tasks at once; by default as many as there are cores."
        ),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR",
            file_okay=False,
            help="The sweep's folder; by default one below --results, named by what it is of.",
        ),
    ] = None,
    results: Annotated[
        Path, typer.Option(metavar="DIR", file_okay=False, help="Where sweeps without --out are written.")
    ] = DEFAULT_RESULTS,
    resume: Annotated[
        bool, typer.Option("--resume", help="Go on with a sweep: run only what is missing in its folder.")
    ] = False,
    failures_max: Annotated[
        int | None, typer.Option("--max-failures", metavar="N", min=1, help="Stop after N runs that failed.")
    ] = None,
    time_max: Annotated[
        str | None,
        typer.Option("--max-time", metavar="DURATION", help="Hand out no run after this time, as 30s or 5m."),
    ] = None,
    shrink: Annotated[
        bool, typer.Option("--shrink", help="Shrink the shortest failure of each kind afterwards.")
    ] = False,
    shrink_time: Annotated[
        str, typer.Option("--shrink-time", metavar="DURATION", help="How long each may take.")
    ] = _SHRINK_TIME,
    report: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR", file_okay=False, help="Run nothing: print the report of the sweep in a folder."
        ),
    ] = None,
    watch: Annotated[
        bool,
        typer.Option(
            "--watch",
            help="Show on the terminal what comes out while it runs: the grid, each kind of failure with its "
            "earliest seed, the rarest states. Drawn on standard error, which has to be a terminal.",
        ),
    ] = False,
    output_format: Annotated[
        ReportFormat, typer.Option("--format", help="How to print.")
    ] = ReportFormat.TABLE,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", metavar="FILE", help="Print to a file.", dir_okay=False)
    ] = None,
    quiet: Quiet = False,
    verbose: Verbose = False,
    no_color: NoColor = False,
) -> None:
    """Run campaigns for many seeds and settings, on Spark or on all cores of this machine.

    Every run leaves a row in Parquet files. The report groups what failed, says for each setting how
    often an anomaly was seen, with its 95% interval, and which rare states were never reached.

    \b
    How often does acks=1 lose records that acks=all keeps?
      harrow sweep swarm --seeds 0..2000 --vary acks=1,all --set enable.idempotence=false
    On a cluster, and on with it after an interrupt:
      harrow sweep swarm --seeds 0..1000000 --master spark://host:7077 --resume
    What a sweep found, once more, and its failures shrunk:
      harrow sweep --report results/sweep-1f0c35ab-0.1.0 --shrink
    """  # noqa: D301 - to Click, that character says that lines are to stay as they are
    if master is not None and remote is not None:
        raise typer.BadParameter("give --master or --remote, not both", param_hint="--remote")
    if engine is SweepEngine.PROCESS and (master or remote):
        raise typer.BadParameter(
            "has no meaning with --engine process", param_hint="--master" if master else "--remote"
        )
    if watch and report is not None:
        raise typer.BadParameter("has no meaning with --report: nothing runs", param_hint="--watch")
    if watch:
        need_terminal()
    from cli.sweep_session import SweepRequest, sweep_session

    if report is None:
        if not campaigns:
            raise typer.BadParameter(
                "name a campaign, as in `harrow sweep swarm --seeds 0..1000`", param_hint="CAMPAIGN"
            )
        if seeds is None:
            raise typer.BadParameter("say which seeds, as --seeds 0..1000", param_hint="--seeds")
    elif campaigns or seeds is not None or varies or overrides or variants or out is not None or resume:
        raise typer.BadParameter(
            "the folder says what the sweep is of; give nothing else", param_hint="--report"
        )
    request = SweepRequest(
        arguments=tuple(campaigns or ()),
        seeds=None if seeds is None else parse_seeds(seeds),
        varies=tuple(varies or ()),
        overrides=tuple(overrides or ()),
        variants=tuple(variants or ()),
        engine=engine,
        master=master,
        remote=remote,
        workers=workers,
        out=out,
        results=results,
        resume=resume,
        failures_max=failures_max,
        time_max_s=None if time_max is None else parse_time_s(time_max),
        shrink_s=parse_time_s(shrink_time) if shrink else None,
        report=report,
        watch=watch,
        output_format=output_format,
        output=output,
        quiet=quiet,
        verbose=verbose,
        no_color=no_color,
    )
    raise typer.Exit(sweep_session(request))
