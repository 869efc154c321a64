"""What `harrow conform` can be asked."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

import typer

from harrow.cli import options
from harrow.cli.requests.request import WrittenRequest


@dataclass(frozen=True, slots=True, kw_only=True)
class ConformRequest(WrittenRequest):
    """Compare what real brokers do with what the model allows.

    Each campaign runs on brokers and on the model. What happened on brokers has to be among what the model comes to with many seeds: the verdict of each rule, lost and doubled
    values, the replicas' logs and the ISR at the end.

    With --requests no campaign runs: one broker and the model's get the same requests, in sequences that Hypothesis draws, with elections between them. Their answers have to
    be the same; what differs is shortened. --of groups and --of transactions ask brokers as coordinators.
    """

    campaigns: Annotated[list[str] | None, options.CAMPAIGN] = None
    target: Annotated[
        str,
        typer.Option(
            metavar="kafka:RELEASE|FILE",
            help="The brokers to start, such as kafka:2.4.1, or the file of a cluster of yours.",
        ),
    ]
    requests: Annotated[
        int | None,
        typer.Option(metavar="N", min=1, help="Compare N single requests, in place of campaigns."),
    ] = None
    of: Annotated[
        Literal["brokers", "groups", "transactions"],
        typer.Option(help="What the requests are about: logs and their leaders, groups, or transactions."),
    ] = "brokers"
    seed: Annotated[int | None, options.seed("The seed of the requests; 0 by default.")] = None
    times: Annotated[
        int, typer.Option(metavar="N", min=1, help="How often each campaign runs on brokers.")
    ] = 1
    seeds: Annotated[
        range | None,
        typer.Option(
            metavar="A..B",
            parser=options.parse_seeds,
            help="The seeds that the model runs it with; 0..50 by default.",
        ),
    ] = None
    overrides: options.Overrides = None
    variants: options.Variants = None
    kafka_home: options.KafkaHome = None
    consent: options.Consent = False
    results: Annotated[Path, options.folder("Where the files of each run on brokers go.")] = (
        options.DEFAULT_RESULTS
    )
    no_results: Annotated[bool, typer.Option("--no-results", help="Write no files of runs.")] = False
    output_format: Annotated[Literal["table", "json", "markdown"], options.FORMAT] = "table"
