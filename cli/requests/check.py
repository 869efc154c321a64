"""What `harrow check` can be asked."""

from dataclasses import dataclass
from typing import Annotated

import typer

from harrow.cli import options
from harrow.cli.requests.request import WrittenRequest


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckRequest(WrittenRequest):
    """Judge a recorded history of any cluster.

    A history is what clients invoked, and what came back. It may come from harrow's model, a Jepsen test or
    your own cluster, with one operation a line, as docs/how-to/history.md says. Or --sent has what a producer logged, and
    --read what `kcat -J` read afterwards. harrow takes everything as promised
    that --set does not state: acks=all, idempotence, transactions, read_committed, no unclean election,
    nothing unflushed.
    """

    history: Annotated[
        str | None,
        typer.Argument(
            metavar="[HISTORY]",
            help="A file of lines of JSON or EDN, plain or gzipped, a folder of results, or - for standard input.",
        ),
    ] = None
    sent: Annotated[
        list[str] | None,
        typer.Option(
            metavar="FILE",
            help="In place of a history: what producers sent, a JSON object for each record; may be repeated.",
        ),
    ] = None
    read: Annotated[
        list[str] | None,
        typer.Option(
            metavar="FILE",
            help="With --sent: what was read back, as `kcat -J` prints it; may be repeated.",
        ),
    ] = None
    allowed: Annotated[
        list[str] | None,
        options.anomaly("--allow", "Permit an anomaly; may be repeated."),
    ] = None
    demanded: Annotated[
        list[str] | None,
        options.anomaly("--demand", "Never permit an anomaly, whatever Kafka promises; may be repeated."),
    ] = None
    line_max_mib: Annotated[
        int, typer.Option("--max-line", metavar="MIB", min=1, help="Refuse a history with a longer line.")
    ] = 8
    memory_max_mib: Annotated[
        int,
        typer.Option(
            "--max-memory",
            metavar="MIB",
            min=256,
            help="Refuse a history whose records and their judgement take more memory.",
        ),
    ] = 1024
    findings_max: Annotated[
        int,
        typer.Option(
            "--max-findings",
            metavar="N",
            min=1,
            help="How many anomalies of a kind are listed; the others are counted.",
        ),
    ] = 1000
    unpacked_max_mib: Annotated[
        int,
        typer.Option(
            "--max-unpacked",
            metavar="MIB",
            min=1,
            help="Refuse a compressed history that unpacks to more, and to more than 64 times its size.",
        ),
    ] = 64
    settings: Annotated[
        list[str] | None,
        typer.Option(
            "--set",
            metavar="KEY=VALUE",
            help="State a Kafka setting of the clients or the cluster, such as acks=1; may be repeated.",
        ),
    ] = None
    output_format: Annotated[options.ReportFormat, options.FORMAT] = "table"
    verbose: options.Verbose = False
