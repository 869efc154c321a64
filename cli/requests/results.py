"""The options of commands that read recorded runs and histories."""

from pathlib import Path
from typing import Annotated

import typer

from harrow.cli import completion, options
from harrow.cli.options import argument, flag, option, repeatable_option
from harrow.cli.requests.request import CommandRequest, WrittenRequest
from harrow.cluster_model.lazy_dataclass import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplayRequest(WrittenRequest):
    """Run a recorded run again and compare the two, event by event.

    Exits with 0 if the traces are the same, with 1 if they differ, and with 2 if the recorded run
    is damaged. Shows both traces from the first event that differs.
    """

    run: Annotated[str, options.RUN]
    results: options.RunsFolder = options.DEFAULT_RESULTS
    output_format: Annotated[options.ReportFormat, options.FORMAT] = "table"


@dataclass(frozen=True, slots=True, kw_only=True)
class DiffRequest(CommandRequest):
    """Show replica logs, or compare two runs or two releases.

    For one run, shows the findings and what led to them; the logs, with a row for each offset and a
    column for each broker, whether each record was acked and who read it; and the decisive moments.

    For two runs, shows how their plans differ, the first event that differs, and the logs at the
    end.

    For two releases, such as 3.9 4.0, shows the behaviours and defaults that differ.

    Exits with 0, or with 2 if there is no such run, moment or partition.
    """

    runs: Annotated[
        list[str],
        argument(
            "RUN",
            "One run or two: a results folder, such as results/latest, or an id; or two releases.",
            completion.runs,
        ),
    ]
    at: Annotated[
        str,
        option(
            "--at",
            "TIME|EVENT",
            "The moment: 12.5s, 12.5 or -1s, the number of an event in trace.jsonl, or end.",
        ),
    ] = "end"
    partitions: Annotated[
        list[str] | None,
        repeatable_option(
            "--partition", "PARTITION", "Show this partition; by default those with a finding, else all."
        ),
    ] = None
    only_different: Annotated[bool, flag("--only-different", "Fold rows in which all replicas agree.")] = (
        False
    )
    stages: Annotated[
        bool,
        flag("--stages", "Show a table for each change of a LEO, remote LEO or high watermark, up to --at."),
    ] = False
    results: options.RunsFolder = options.DEFAULT_RESULTS
    output_format: Annotated[options.ListFormat, options.FORMAT] = "table"
    output: options.Output = None
    no_color: options.NoColor = False


@dataclass(frozen=True, slots=True, kw_only=True)
class TraceRequest(WrittenRequest):
    """Show the story of a recorded run.

    Shows what brokers and clients did, in order of time, each in a lane of its own. Routine events
    are only counted. `--format html` writes a page that you can search and scroll without a
    network; `--format mermaid` writes a sequence diagram.
    """

    run: Annotated[str, options.RUN]
    record: Annotated[
        str | None, option("--record", "VALUE", "Follow one record from its send to its end.")
    ] = None
    around: Annotated[
        str | None,
        option("--around", "FINDING", "Show what led to a finding: its rule, its number, or RULE:VALUE."),
    ] = None
    begin: Annotated[
        str | None, option("--from", "TIME", "Show events from this time on, such as 12.5s.")
    ] = None
    end: Annotated[str | None, option("--to", "TIME", "Show events up to this time.")] = None
    everything: Annotated[
        bool, flag("--all", "Show every event, including fetches, flushes and checkpoints.")
    ] = False
    quiet: options.NoMessages = False
    results: options.RunsFolder = options.DEFAULT_RESULTS
    output_format: Annotated[options.TraceFormat, options.FORMAT] = "table"


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckRequest(WrittenRequest):
    """Judge a recorded history of any cluster.

    A history lists what clients invoked and what came back, one operation per line
    (docs/how-to/history.md). It may come from harrow's model, from a Jepsen test or from your own
    cluster. Instead, give --sent what a producer logged and --read what `kcat -J` read later, or
    the output of VerifiableProducer and VerifiableConsumer.
    Several files are one history, ordered by the `index` of its operations.
    Unless --set says otherwise, harrow assumes the strictest settings: acks=all, idempotence,
    transactions, read_committed, no unclean election, and all data flushed.
    """

    histories: Annotated[
        list[str] | None,
        argument(
            "HISTORY",
            "Files of JSON or EDN lines, plain or gzipped, a results folder, or - for standard input; paths or URIs.",
        ),
    ] = None
    sent: Annotated[
        list[str] | None,
        repeatable_option(
            "--sent", "FILE", "Instead of a history: what producers sent, a JSON object per record."
        ),
    ] = None
    read: Annotated[
        list[str] | None,
        repeatable_option("--read", "FILE", "With --sent: what was read back, as `kcat -J` prints it."),
    ] = None
    allowed: Annotated[list[str] | None, options.anomaly("--allow", "Permit an anomaly.")] = None
    demanded: Annotated[
        list[str] | None, options.anomaly("--demand", "Never permit an anomaly, whatever Kafka promises.")
    ] = None
    engine: Annotated[
        options.CheckEngine,
        typer.Option(help="What reads the history: this process, or Spark for histories of any size."),
    ] = "process"
    master: Annotated[
        str | None, option("--master", "URL", "The Spark master; by default local[*], in this process.")
    ] = None
    remote: Annotated[
        str | None, option("--remote", "URL", "A Spark Connect server, such as sc://host:15002.")
    ] = None
    line_max_mib: Annotated[
        int, option("--max-line", "MIB", "Refuse a history with a line longer than this.", min=1)
    ] = 8
    memory_max_mib: Annotated[
        int,
        option("--max-memory", "MIB", "Refuse a history that takes more memory than this.", min=256),
    ] = 1024
    findings_max: Annotated[
        int, option("--max-findings", "N", "List at most N anomalies of a kind; count the others.", min=1)
    ] = 1000
    unpacked_max_mib: Annotated[
        int,
        option(
            "--max-unpacked",
            "MIB",
            "Refuse a compressed history that unpacks to more than this and to more than 64 times its size.",
            min=1,
        ),
    ] = 64
    settings: Annotated[
        list[str] | None,
        repeatable_option(
            "--set", "KEY=VALUE", "State a Kafka setting of the clients or the cluster, such as acks=1."
        ),
    ] = None
    output_format: Annotated[options.ReportFormat, options.FORMAT] = "table"
    verbose: options.Verbose = False


@dataclass(frozen=True, slots=True, kw_only=True)
class CleanRequest(CommandRequest):
    """Remove old runs, and keep the newest of each campaign.

    The newest runs are those written last. harrow removes only folders that have a run.json and no
    file that harrow did not write; it does not follow symbolic links. The run of results/latest
    stays, unless --keep is 0.
    """

    keep: Annotated[int, option("--keep", "N", "Keep the newest N runs of each campaign.", min=0)] = 20
    results: Annotated[Path, options.folder("--results", "The folder with the result files.")] = (
        options.DEFAULT_RESULTS
    )
    sweeps: Annotated[bool, flag("--sweeps", "Remove sweeps too, except the newest N complete ones.")] = False
    dry_run: Annotated[bool, flag("--dry-run", "Remove nothing; print what harrow would remove.")] = False
    output_format: Annotated[options.ListFormat, options.FORMAT] = "table"
    quiet: options.NoMessages = False
    no_color: options.NoColor = False
