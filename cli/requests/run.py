"""The options of `harrow run`."""

from typing import Annotated

import typer

from harrow.campaigns.storage.location import LocalLocation, Location
from harrow.cli import options
from harrow.cli.options import flag, option
from harrow.cli.requests.request import OnCluster, WrittenRequest
from harrow.cluster_model.lazy_dataclass import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class RunRequest(WrittenRequest, OnCluster):
    """Run campaigns and judge what clients saw.

    Each variant of a campaign runs with each seed. A run fails when it breaks a promise or
    misses an expectation; a loss that the campaign expects is not a failure.
    """

    campaigns: Annotated[list[str], options.CAMPAIGN]
    seed: options.Seed = None
    seeds: options.Seeds = None
    jobs: options.Jobs = None
    cluster: options.Cluster = None
    overrides: options.Overrides = None
    then: options.Then = None
    variants: options.Variants = None
    results: Annotated[Location, options.folder_or_uri("--results", "The folder for result files.")] = (
        LocalLocation(options.DEFAULT_RESULTS)
    )
    no_results: options.NoResults = False
    failures_max: options.FailuresMax = None
    time_max_s: options.TimeMax = None
    target: Annotated[
        str,
        option(
            "--target",
            "model|kafka:RELEASE|FILE",
            "Where to run: on the model, on brokers that harrow starts on this machine, such as kafka:2.4.1 "
            "(`harrow kafka list` shows the releases), or on the cluster that a file describes.",
        ),
    ] = "model"
    kafka_home: options.KafkaHome = None
    consent: options.Consent = False
    engine: Annotated[
        options.RunEngine,
        typer.Option(
            help="What makes the choices that a campaign leaves open (`swarm`): the seed, or Hypothesis, which "
            "also shrinks a failing campaign. With Hypothesis, --output is the file for the shrunk campaign."
        ),
    ] = "seeds"
    examples_max: Annotated[
        int | None, option("--max-examples", "N", "With Hypothesis: try N campaigns; 100 by default.", min=1)
    ] = None
    watch: Annotated[
        bool,
        flag(
            "--watch",
            "Play each run on the terminal: brokers, leaders, ISRs, the LEO and HW of each replica, active faults. "
            "A run takes milliseconds, so harrow plays it after it has finished. Standard error must be a "
            "terminal; standard output stays the same.",
        ),
    ] = False
    speed: Annotated[
        float | None,
        option(
            "--speed",
            "N|max",
            "With --watch: play N seconds of cluster time per second, 5 by default. Bursts play slower and idle "
            "time plays faster. `max` shows only the end of each run.",
            parser=options.parse_speed,
        ),
    ] = None
    output_format: Annotated[options.RunFormat, options.FORMAT] = "table"
    junit: options.Junit = None
    verbose: options.Verbose = False
