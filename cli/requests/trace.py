"""What `harrow trace` can be asked."""

from dataclasses import dataclass
from typing import Annotated

import typer

from harrow.cli import options
from harrow.cli.requests.request import WrittenRequest


@dataclass(frozen=True, slots=True, kw_only=True)
class TraceRequest(WrittenRequest):
    """Tell the story of a recorded run.

    It shows in lanes, in the order of time, what brokers and clients did; what is routine is folded and
    counted. `--format html` writes one page to search and scroll, which needs no network;
    `--format mermaid` a sequence diagram.
    """

    run: Annotated[str, options.RUN]
    record: Annotated[
        str | None, typer.Option(metavar="VALUE", help="Follow one record from its send to its end.")
    ] = None
    around: Annotated[
        str | None,
        typer.Option(metavar="FINDING", help="What led to a finding: its rule, its number, or RULE:VALUE."),
    ] = None
    begin: Annotated[
        str | None, typer.Option("--from", metavar="TIME", help="From this time on, such as 12.5s.")
    ] = None
    end: Annotated[str | None, typer.Option("--to", metavar="TIME", help="Up to this time.")] = None
    everything: Annotated[
        bool, typer.Option("--all", help="Every event: fetches, flushes and checkpoints too.")
    ] = False
    quiet: options.NoMessages = False
    results: options.RunsFolder = options.DEFAULT_RESULTS
    output_format: Annotated[options.TraceFormat, options.FORMAT] = "table"
