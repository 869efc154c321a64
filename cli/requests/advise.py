"""The options of `harrow advise`."""

from pathlib import Path
from typing import Annotated

from harrow.cli import completion, options
from harrow.cli.options import argument, option, repeatable_option
from harrow.cli.requests.request import WrittenRequest
from harrow.cluster_model.lazy_dataclass import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class AdviseRequest(WrittenRequest):
    """Find the cheapest settings with which a cluster survives faults.

    harrow tries settings of brokers, topics and clients, with each fault model again and again at
    random times, and measures their costs in the same runs. It prints the changes to your settings,
    and for each of them a run that shows why a cheaper value does not survive. To survive, no
    acknowledged record may be lost or reordered in any run. Exits with 1 if no settings survive.
    """

    sources: Annotated[
        list[Path], argument("CLUSTER", "A cluster file, or files that describe a cluster (`harrow import`).")
    ]
    survive: Annotated[
        list[str] | None,
        repeatable_option(
            "--survive",
            "FAULTS",
            "The fault model to survive, such as `power of one rack` or rack-power.",
            autocompletion=completion.fault_models,
        ),
    ] = None
    fault_models: Annotated[
        list[Path] | None,
        repeatable_option(
            "--fault-model", "FILE", "Survive the fault model in this file as well.", dir_okay=False
        ),
    ] = None
    outage: Annotated[
        str | None,
        option("--outage", "BOUND", 'The longest time without an ack in any run, such as "< 10s".'),
    ] = None
    never: Annotated[
        list[str] | None,
        repeatable_option(
            "--never",
            "HARM",
            "Also survive without this harm: `doubled` records, `uncommitted` records that a consumer "
            "receives, or `failed` sends.",
        ),
    ] = None
    allowed: Annotated[
        list[str] | None,
        repeatable_option("--allow", "HARM", "Accept this harm: `lost` or `reordered` records."),
    ] = None
    changeable: Annotated[
        list[str] | None,
        repeatable_option("--change", "SETTING", "Change only this setting; by default all that matter."),
    ] = None
    releases: Annotated[
        str | None,
        option(
            "--kafka",
            "RELEASE,RELEASE",
            "Try the same on these releases instead of the cluster's, and say where the answers differ.",
        ),
    ] = None
    runs: Annotated[
        int, option("--runs", "N", "How many runs of each fault model the advised settings survive.", min=1)
    ] = 300
    shrink_runs: Annotated[
        int,
        option("--shrink-runs", "N", "How many runs may shrink each counter-example; with 0 none is.", min=0),
    ] = 150
    overrides: options.Overrides = None
    engine: options.Engine = "process"
    master: options.Master = None
    remote: options.Remote = None
    jobs: options.Jobs = None
    results: Annotated[
        Path, options.folder("--results", "The folder for shrunk runs and an imported cluster.")
    ] = options.DEFAULT_RESULTS
    output_format: Annotated[options.ListFormat, options.FORMAT] = "table"
