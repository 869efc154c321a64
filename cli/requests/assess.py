"""The options of `harrow assess`."""

from pathlib import Path
from typing import Annotated

from harrow.cli import options
from harrow.cli.options import argument, option, repeatable_option
from harrow.cli.requests.request import OnCluster, WrittenRequest
from harrow.cluster_model.lazy_dataclass import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class AssessRequest(WrittenRequest, OnCluster):
    """Show what production would do to a cluster with its settings.

    Each fault model, such as a dying broker or a rack without power, strikes the cluster again and
    again at random times. The table shows how many records were lost, doubled and reordered, for
    how long producers had to wait, and which settings permit that. `harrow run MODEL --cluster
    CLUSTER --seed N` repeats any trial.
    """

    cluster: Annotated[
        Path, argument("CLUSTER", "A cluster file, as `harrow import` writes it.", dir_okay=False)
    ]
    fault_models: Annotated[
        list[Path] | None,
        repeatable_option("--fault-model", "FILE", "Also try this fault model.", dir_okay=False),
    ] = None
    runs: Annotated[int, option("--runs", "N", "How many runs of each fault model.", min=1)] = 20
    overrides: options.Overrides = None
    jobs: options.Jobs = None
    output_format: Annotated[options.ListFormat, options.FORMAT] = "table"
