"""``harrow run``: run campaigns."""

from collections.abc import Mapping
from enum import StrEnum
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated

import typer

from cli import completion
from cli.options import (
    DEFAULT_RESULTS,
    NoColor,
    Output,
    Overrides,
    Quiet,
    RunFormat,
    Variants,
    Verbose,
    check_seed,
    need_terminal,
    parse_seeds,
    parse_speed,
    parse_time_s,
)

_DEFAULT_SEED = 0
_DEFAULT_EXAMPLES = 100
_DEFAULT_SPEED = "5"


class Engine(StrEnum):
    """Who decides what a campaign leaves open."""

    SEEDS = "seeds"
    HYPOTHESIS = "hypothesis"


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("run")(run)


def run(
    campaigns: Annotated[
        list[str],
        typer.Argument(
            metavar="CAMPAIGN",
            autocompletion=completion.campaigns,
            help="A file, a folder, or the name of a campaign of the library.",
        ),
    ],
    seed: Annotated[int | None, typer.Option(metavar="N", help="The seed; 0 by default.")] = None,
    seeds: Annotated[
        str | None, typer.Option(metavar="A..B", help="Several seeds, from A to before B.")
    ] = None,
    overrides: Overrides = None,
    variants: Variants = None,
    output_format: Annotated[RunFormat, typer.Option("--format", help="How to print.")] = RunFormat.TABLE,
    output: Output = None,
    results: Annotated[
        Path, typer.Option(metavar="DIR", help="Where the files of each run go.", file_okay=False)
    ] = DEFAULT_RESULTS,
    no_results: Annotated[bool, typer.Option("--no-results", help="Write no files of runs.")] = False,
    failures_max: Annotated[
        int | None, typer.Option("--max-failures", metavar="N", min=1, help="Stop after N runs that failed.")
    ] = None,
    time_max: Annotated[
        str | None,
        typer.Option("--max-time", metavar="DURATION", help="Start no run after this time, as 30s or 5m."),
    ] = None,
    engine: Annotated[
        Engine,
        typer.Option(
            help="Who decides what a campaign leaves open (`swarm`): each seed by itself, or Hypothesis, which "
            "also makes the campaign smaller that failed. Then --output names the campaign file of that one."
        ),
    ] = Engine.SEEDS,
    examples_max: Annotated[
        int | None,
        typer.Option(
            "--max-examples", metavar="N", min=1, help="With Hypothesis: how many campaigns; 100 by default."
        ),
    ] = None,
    watch: Annotated[
        bool,
        typer.Option(
            "--watch",
            help="Play each run on the terminal: brokers, leaders, ISR, LEO and HW of each replica, faults in "
            "force. A run takes milliseconds, so it is played when it is over. Drawn on standard error, which has "
            "to be a terminal; what is printed stays as it is, in any --format.",
        ),
    ] = False,
    speed: Annotated[
        str | None,
        typer.Option(
            metavar="N|max",
            help="With --watch: seconds of the cluster in a second, 5 by default; `max` shows where runs end. "
            "Bursts are played slower, idle stretches faster.",
        ),
    ] = None,
    quiet: Quiet = False,
    verbose: Verbose = False,
    no_color: NoColor = False,
) -> None:
    """Run campaigns and judge what clients saw.

    Each variant of a campaign is run with each seed. A run fails when a promise is broken or
    an expectation is missed; a loss that the campaign expects is no failure.
    """
    if seed is not None and seeds is not None:
        raise typer.BadParameter("give --seed or --seeds, not both", param_hint="--seeds")
    one_seed = check_seed(_DEFAULT_SEED if seed is None else seed)
    if not watch:
        _refuse({"--speed": speed}, "without --watch")
    if engine is Engine.HYPOTHESIS:
        refused = {"--seeds": seeds, "--max-failures": failures_max, "--max-time": time_max}
        _refuse({**refused, "--watch": watch or None}, "with Hypothesis")
        _need_hypothesis()
        from cli.run_hypothesis import SearchRequest, search_session

        search_request = SearchRequest(
            arguments=tuple(campaigns),
            seed=one_seed,
            examples_max=_DEFAULT_EXAMPLES if examples_max is None else examples_max,
            overrides=tuple(overrides or ()),
            variants=tuple(variants or ()),
            results=None if no_results else results,
            output=output,
        )
        raise typer.Exit(
            search_session(
                search_request, output_format=output_format, quiet=quiet, verbose=verbose, no_color=no_color
            )
        )
    from cli.run_session import RunRequest, run_session

    _refuse({"--max-examples": examples_max}, "without --engine hypothesis")
    play_speed = parse_speed(_DEFAULT_SPEED if speed is None else speed) if watch else None
    if watch:
        need_terminal()
    request = RunRequest(
        arguments=tuple(campaigns),
        seeds=range(one_seed, one_seed + 1) if seeds is None else parse_seeds(seeds),
        overrides=tuple(overrides or ()),
        variants=tuple(variants or ()),
        results=None if no_results else results,
        failures_max=failures_max,
        time_max_s=None if time_max is None else parse_time_s(time_max),
        play_speed=play_speed,
    )
    raise typer.Exit(
        run_session(
            request,
            output_format=output_format,
            output=output,
            quiet=quiet,
            verbose=verbose,
            no_color=no_color,
        )
    )


def _refuse(options: Mapping[str, object], when: str) -> None:
    for option, value in options.items():
        if value is not None:
            raise typer.BadParameter(f"has no meaning {when}", param_hint=option)


def _need_hypothesis() -> None:
    try:
        found = find_spec("hypothesis")
    except ValueError:  # Something has taken it out of `sys.modules`.
        found = None
    if found is None:
        message = "Hypothesis is not installed: pip install 'kafka-harrow[hypothesis]'"
        raise typer.BadParameter(message, param_hint="--engine")
