"""The options of `harrow assess`."""

from pathlib import Path
from typing import Annotated

from harrow.cli import completion, options
from harrow.cli.options import argument, option, repeatable_option
from harrow.cli.requests.request import WrittenRequest
from harrow.cluster_model.lazy_dataclass import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class AssessRequest(WrittenRequest):
    """Show what production would do to a cluster with its settings.

    Fault models, such as a dying broker or a rack without power, strike the cluster at random
    times. A table shows how many records they lost, doubled and reordered, how long producers had
    to wait, and which settings permit that. CLUSTER is a cluster file, or whatever `harrow import`
    reads. Exits with 1 if a run broke a promise or an --expect, and with 3 if no run decided
    anything, or if time ran out before a fault model had a run.
    """

    sources: Annotated[
        list[Path], argument("CLUSTER", "A cluster file, or files that describe a cluster (`harrow import`).")
    ]
    shown: Annotated[
        str | None,
        option(
            "--show",
            "MODEL",
            "Try only this fault model, and open its worst run: its causes, and the replicas at its end.",
            autocompletion=completion.fault_models,
        ),
    ] = None
    limits: Annotated[
        list[str] | None,
        repeatable_option(
            "--expect",
            "KEY=MAX",
            "Exit with 1 if a fault model exceeds this, such as lost=0, doubled=0, reordered=0, uncommitted=0, outage=10s, "
            "violated=0 or inconclusive=0.",
        ),
    ] = None
    fault_models: Annotated[
        list[Path] | None,
        repeatable_option("--fault-model", "FILE", "Also try the fault model in this file.", dir_okay=False),
    ] = None
    runs: Annotated[int, option("--runs", "N", "How many runs of each fault model.", min=1)] = 20
    time_max_s: options.TimeMax = None
    overrides: options.Overrides = None
    engine: options.Engine = "process"
    master: options.Master = None
    remote: options.Remote = None
    jobs: options.Jobs = None
    results: Annotated[
        Path, options.folder("--results", "The folder for the run of --show and for an imported cluster.")
    ] = options.DEFAULT_RESULTS
    output_format: Annotated[options.SweepFormat, options.FORMAT] = "table"
    junit: options.Junit = None
    verbose: options.Verbose = False
