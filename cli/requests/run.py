"""What `harrow run` can be asked."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from harrow.cli import options
from harrow.cli.requests.request import WrittenRequest


@dataclass(frozen=True, slots=True, kw_only=True)
class RunRequest(WrittenRequest):
    """Run campaigns and judge what clients saw.

    Each variant of a campaign runs with each seed. A run fails when a promise is broken or
    an expectation is missed; a loss that the campaign expects is not a failure.
    """

    campaigns: Annotated[list[str], options.CAMPAIGN]
    seed: options.Seed = None
    seeds: options.Seeds = None
    jobs: options.Jobs = None
    overrides: options.Overrides = None
    then: options.Then = None
    variants: options.Variants = None
    results: Annotated[Path, options.folder("Where the files of each run go.")] = options.DEFAULT_RESULTS
    no_results: Annotated[bool, typer.Option("--no-results", help="Write no files of runs.")] = False
    failures_max: options.FailuresMax = None
    time_max_s: options.TimeMax = None
    target: Annotated[
        str,
        typer.Option(
            metavar="model|kafka:RELEASE|FILE",
            help="What to run on: the model, or brokers of a release that are started on this machine, such as "
            "kafka:2.4.1 (`harrow kafka list` tells which there are), or the file of a cluster of yours.",
        ),
    ] = "model"
    kafka_home: options.KafkaHome = None
    consent: options.Consent = False
    engine: Annotated[
        options.RunEngine,
        typer.Option(
            help="What makes the choices that a campaign leaves open (`swarm`): the seed, or Hypothesis, which "
            "also shrinks the campaign that fails. Then --output names the file for that campaign."
        ),
    ] = "seeds"
    examples_max: Annotated[
        int | None,
        typer.Option(
            "--max-examples",
            metavar="N",
            min=1,
            help="With Hypothesis: how many campaigns to try; 100 by default.",
        ),
    ] = None
    watch: Annotated[
        bool,
        typer.Option(
            "--watch",
            help="Play each run on the terminal: brokers, leaders, ISR, LEO and HW of each replica, active faults. "
            "A run takes milliseconds, so it plays once it is over. Standard error has to be a terminal; standard "
            "output stays the same.",
        ),
    ] = False
    speed: Annotated[
        float | None,
        typer.Option(
            metavar="N|max",
            parser=options.parse_speed,
            help="With --watch: seconds of cluster time in a second, 5 by default; `max` shows only how runs end. "
            "Bursts play slower, idle stretches faster.",
        ),
    ] = None
    output_format: Annotated[options.RunFormat, options.FORMAT] = "table"
    verbose: options.Verbose = False
