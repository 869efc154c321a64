"""The options of commands that read recorded runs and histories."""

from pathlib import Path
from typing import Annotated

from harrow.cli import completion, options
from harrow.cli.options import argument, flag, many, option
from harrow.cli.requests.request import CommandRequest, WrittenRequest
from harrow.cluster_model.lazy_dataclass import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplayRequest(WrittenRequest):
    """Run a recorded run again and compare the two, event by event.

    Exits with 0 if the traces are the same, with 1 if they differ, and with 2 if the record is
    damaged. If they differ, both are shown from the first difference on.
    """

    run: Annotated[str, options.RUN]
    results: options.RunsFolder = options.DEFAULT_RESULTS
    output_format: Annotated[options.ReportFormat, options.FORMAT] = "table"


@dataclass(frozen=True, slots=True, kw_only=True)
class DiffRequest(CommandRequest):
    """Show replica logs, or compare two runs or two releases.

    For one run: what the judge found, and how it came about; a row for each offset and a column for
    each broker, whether the record was acked and who read it; and the moments that decided it.

    For two runs: how their plans differ, the first event that differs, and how the logs ended.

    For two releases, such as 3.9 4.0: the behaviours and defaults that differ.

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
        many("--partition", "PARTITION", "Show this partition; by default those with a finding, else all."),
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
    """Tell the story of a recorded run.

    Shows in lanes, in order of time, what brokers and clients did. Routine events are folded and
    counted. `--format html` writes one page to search and scroll, which needs no network;
    `--format mermaid` writes a sequence diagram.
    """

    run: Annotated[str, options.RUN]
    record: Annotated[
        str | None, option("--record", "VALUE", "Follow one record from its send to its end.")
    ] = None
    around: Annotated[
        str | None,
        option("--around", "FINDING", "Show what led to a finding: its rule, its number, or RULE:VALUE."),
    ] = None
    begin: Annotated[str | None, option("--from", "TIME", "From this time on, such as 12.5s.")] = None
    end: Annotated[str | None, option("--to", "TIME", "Up to this time.")] = None
    everything: Annotated[bool, flag("--all", "Show every event, fetches, flushes and checkpoints too.")] = (
        False
    )
    quiet: options.NoMessages = False
    results: options.RunsFolder = options.DEFAULT_RESULTS
    output_format: Annotated[options.TraceFormat, options.FORMAT] = "table"


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckRequest(WrittenRequest):
    """Judge a recorded history of any cluster.

    A history lists what clients invoked and what came back, one operation per line
    (docs/how-to/history.md). It may come from harrow's model, from a Jepsen test or from your own
    cluster. Or give --sent what a producer logged and --read what `kcat -J` read afterwards. Unless
    --set says otherwise, harrow assumes the strictest settings: acks=all, idempotence,
    transactions, read_committed, no unclean election, and all data flushed.
    """

    history: Annotated[
        str | None,
        argument(
            "[HISTORY]",
            "A file of JSON or EDN lines, plain or gzipped, a results folder, or - for standard input.",
        ),
    ] = None
    sent: Annotated[
        list[str] | None,
        many("--sent", "FILE", "Instead of a history: what producers sent, a JSON object per record."),
    ] = None
    read: Annotated[
        list[str] | None, many("--read", "FILE", "With --sent: what was read back, as `kcat -J` prints it.")
    ] = None
    allowed: Annotated[list[str] | None, options.anomaly("--allow", "Permit an anomaly.")] = None
    demanded: Annotated[
        list[str] | None, options.anomaly("--demand", "Never permit an anomaly, whatever Kafka promises.")
    ] = None
    line_max_mib: Annotated[
        int, option("--max-line", "MIB", "Refuse a history with a longer line.", min=1)
    ] = 8
    memory_max_mib: Annotated[
        int,
        option("--max-memory", "MIB", "Refuse a history that takes more memory to read and judge.", min=256),
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
        many("--set", "KEY=VALUE", "State a Kafka setting of the clients or the cluster, such as acks=1."),
    ] = None
    output_format: Annotated[options.ReportFormat, options.FORMAT] = "table"
    verbose: options.Verbose = False


@dataclass(frozen=True, slots=True, kw_only=True)
class CleanRequest(CommandRequest):
    """Remove old runs, and keep the newest of each campaign.

    The newest are those written last. harrow removes only folders of runs, which have a run.json
    and nothing that harrow did not write; it does not follow symbolic links. The run that
    results/latest points to stays, unless --keep is 0.
    """

    keep: Annotated[int, option("--keep", "N", "Keep the newest N runs of each campaign.", min=0)] = 20
    results: Annotated[Path, options.folder("--results", "Where the result files are.")] = (
        options.DEFAULT_RESULTS
    )
    sweeps: Annotated[bool, flag("--sweeps", "Remove sweeps too, except the newest N complete ones.")] = False
    dry_run: Annotated[bool, flag("--dry-run", "Remove nothing; print what would be removed.")] = False
    output_format: Annotated[options.ListFormat, options.FORMAT] = "table"
    quiet: options.NoMessages = False
    no_color: options.NoColor = False
