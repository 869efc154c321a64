"""The commands as they are typed: the arguments and options of each, which are the fields of its request.

A command's docstring is its help, and `harrow.cli.commands` has a module of its name that does what is asked
for. Nothing here imports that: `harrow --help` and completion stay quick.
"""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Final

import typer

from harrow.cli import completion, options


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """How to print. A command without one of these options has the value that stands here."""

    output_format: str = field(init=False, default="table")
    output: Path | None = field(init=False, default=None)
    quiet: bool = field(init=False, default=False)
    verbose: bool = field(init=False, default=False)
    no_color: bool = field(init=False, default=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class WrittenRequest(Request):
    """What a command prints can go to a file instead, and be less."""

    output: options.Output = None
    quiet: options.Quiet = False
    no_color: options.NoColor = False


@dataclass(frozen=True, slots=True, kw_only=True)
class RunRequest(WrittenRequest):
    """Run campaigns and judge what clients saw.

    Each variant of a campaign runs with each seed. A run fails when a promise is broken or
    an expectation is missed; a loss that the campaign expects is not a failure.
    """

    campaigns: Annotated[list[str], options.CAMPAIGN]
    seed: options.Seed = None
    seeds: options.Seeds = None
    overrides: options.Overrides = None
    variants: options.Variants = None
    results: Annotated[Path, options.folder("Where the files of each run go.")] = options.DEFAULT_RESULTS
    no_results: Annotated[bool, typer.Option("--no-results", help="Write no files of runs.")] = False
    failures_max: options.FailuresMax = None
    time_max_s: options.TimeMax = None
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


@dataclass(frozen=True, slots=True, kw_only=True)
class SweepRequest(WrittenRequest):
    """Run campaigns for many seeds and settings.

    A sweep runs on Spark, or on all cores of this machine. Every run leaves a row in Parquet files.
    The report groups the failures, says how often each setting showed an anomaly, with the 95%
    interval, and lists the rare states that no run reached.
    """

    campaigns: Annotated[
        list[str] | None,
        options.named(
            "CAMPAIGN", completion.campaigns, "A file, a folder, or the name of a campaign of the library."
        ),
    ] = None
    seeds: options.Seeds = None
    varies: Annotated[
        list[str] | None,
        typer.Option(
            "--vary",
            metavar="KEY=V1,V2",
            help="Run everything with each of these values, as --set would set them; several make a grid.",
        ),
    ] = None
    overrides: options.Overrides = None
    variants: options.Variants = None
    engine: Annotated[
        options.SweepEngine,
        typer.Option(help="What runs it; `auto` is Spark if PySpark and Java are there, else processes."),
    ] = "auto"
    master: Annotated[
        str | None, typer.Option(metavar="URL", help="The Spark master; by default local[*], embedded.")
    ] = None
    remote: Annotated[
        str | None, typer.Option(metavar="URL", help="A Spark Connect server, such as sc://host:15002.")
    ] = None
    workers: Annotated[
        int | None,
        typer.Option(metavar="N", min=1, help="How many tasks run at once; by default one for each core."),
    ] = None
    out: Annotated[
        Path | None,
        options.folder("The folder of the sweep; by default one below --results, named after its contents."),
    ] = None
    results: Annotated[Path, options.folder("Where sweeps without --out go.")] = options.DEFAULT_RESULTS
    resume: Annotated[
        bool, typer.Option("--resume", help="Go on with a sweep: run only what its folder lacks.")
    ] = False
    failures_max: options.FailuresMax = None
    time_max_s: options.TimeMax = None
    shrink: Annotated[
        bool, typer.Option("--shrink", help="Then shrink the shortest failure of each kind.")
    ] = False
    shrink_time: Annotated[
        str, typer.Option("--shrink-time", metavar="DURATION", help="How long each shrink may take.")
    ] = "60s"
    report: Annotated[Path | None, options.folder("Run nothing: print the report of this sweep.")] = None
    watch: Annotated[
        bool,
        typer.Option(
            "--watch",
            help="Show the results on the terminal while it runs: the grid, each kind of failure with its earliest "
            "seed, the rarest states. Standard error has to be a terminal.",
        ),
    ] = False
    output_format: Annotated[options.ReportFormat, options.FORMAT] = "table"
    verbose: options.Verbose = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ShrinkRequest(Request):
    """Find the smallest campaign that fails like a run.

    It breaks the same promise for the same cause. harrow leaves out faults, records, brokers and settings
    and rounds times as long as the campaign still fails; it runs each candidate. The result fails by itself:
    `harrow run` ends with 1. Ctrl-C keeps the best so far. A run that breaks no promise cannot be shrunk
    (exit code 2; 3 if inconclusive), but with `--rule` an anomaly that the settings permit can: the result
    expects it.
    """

    campaign: Annotated[
        str,
        options.named("CAMPAIGN", completion.campaigns, "A file, or the name of a campaign of the library."),
    ]
    seed: Annotated[int, options.seed("The seed that fails.")]
    overrides: options.Overrides = None
    variant: Annotated[
        str | None,
        options.variant("This variant (`base`, the default, for the campaign itself)."),
    ] = None
    rule: Annotated[
        str | None,
        typer.Option(
            metavar="RULE",
            autocompletion=completion.rules,
            callback=options.check_rule,
            help="Shrink this anomaly, even if the settings permit it.",
        ),
    ] = None
    time_max: Annotated[
        str, typer.Option("--max-time", metavar="DURATION", help="Take the best so far after this time.")
    ] = "5m"
    output: Annotated[
        Path | None,
        typer.Option(
            "--output", "-o", metavar="FILE", help="Also write the campaign to a file.", dir_okay=False
        ),
    ] = None
    quiet: options.NoMessages = False
    no_color: options.NoColor = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplayRequest(WrittenRequest):
    """Run a recorded run again and compare it, event by event.

    Ends with 0 if the traces are the same, with 1 if they differ, and with 2 if the record is
    damaged. If they differ, both sides are shown from there.
    """

    run: Annotated[str, options.RUN]
    results: options.RunsFolder = options.DEFAULT_RESULTS
    output_format: Annotated[options.ReportFormat, options.FORMAT] = "table"


@dataclass(frozen=True, slots=True, kw_only=True)
class DiffRequest(Request):
    """Show replica logs side by side, or compare two runs.

    For one run: a row for each offset, a column for each broker, whether the record was acked and who read
    it; below, what became of the lost records, and the moments that decided it.

    For two runs: how their plans differ, the first event that differs, and what became of the logs.

    Ends with 0, or with 2 if there is no such run, moment or partition.
    """

    runs: Annotated[
        list[str],
        options.named(
            "RUN", completion.runs, "A folder of results, such as results/latest, or the id of a run; or two."
        ),
    ]
    at: Annotated[
        str,
        typer.Option(
            metavar="TIME|EVENT",
            help="Which moment: 12.5s or -1s, the number of an event of trace.jsonl, or end.",
        ),
    ] = "end"
    partitions: Annotated[
        list[str] | None,
        typer.Option(
            "--partition",
            metavar="PARTITION",
            help="Only this one; may be repeated. By default those with a finding, else all.",
        ),
    ] = None
    only_different: Annotated[
        bool, typer.Option("--only-different", help="Fold the rows in which all replicas agree.")
    ] = False
    results: options.RunsFolder = options.DEFAULT_RESULTS
    output_format: Annotated[options.ListFormat, options.FORMAT] = "table"
    output: options.Output = None
    no_color: options.NoColor = False


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


@dataclass(frozen=True, slots=True, kw_only=True)
class RegressRequest(WrittenRequest):
    """Run the corpus of campaigns that failed once.

    Each entry is STILL FAILING, FIXED, CHANGED or ERROR. Ends with 0 if each entry matches its
    status: `open` is still failing, `fixed` is fixed. Otherwise it ends with 1, with 2 if a file
    cannot be run, and with 3 if the corpus is empty.
    """

    corpus: Annotated[
        Path, typer.Argument(metavar="DIR", help="The corpus: a folder of campaigns, or one of them.")
    ] = Path("tests/regressions")
    added: Annotated[
        str | None,
        typer.Option(
            "--add",
            metavar="CAMPAIGN",
            autocompletion=completion.campaigns,
            help="Instead, add a failing campaign to the corpus.",
        ),
    ] = None
    seed: Annotated[int | None, options.seed("With --add: the seed that fails; 0 by default.")] = None
    variant: Annotated[str | None, options.variant("With --add: the variant that fails.")] = None
    name: Annotated[str | None, typer.Option(metavar="NAME", help="With --add: the name of the entry.")] = (
        None
    )
    overrides: options.Overrides = None
    output_format: Annotated[options.ReportFormat, options.FORMAT] = "table"


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckRequest(WrittenRequest):
    """Judge a recorded history of any cluster.

    A history is what clients invoked, and what came back. It may come from harrow's model, a Jepsen test or
    your own cluster, with one operation a line, as docs/history.md says. harrow takes everything as promised
    that --set does not state: acks=all, idempotence, transactions, read_committed, no unclean election,
    nothing unflushed.
    """

    history: Annotated[
        str,
        typer.Argument(
            metavar="HISTORY",
            help="A file of JSON lines, plain or gzipped, a folder of results, or - for standard input.",
        ),
    ]
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


@dataclass(frozen=True, slots=True, kw_only=True)
class ValidateRequest(Request):
    """Check campaign files, and report all mistakes at once."""

    paths: Annotated[
        list[str],
        options.named("PATH", completion.campaigns, "Files, folders, or names of campaigns of the library."),
    ]
    overrides: options.Overrides = None
    output_format: Annotated[options.ReportFormat, options.FORMAT] = "table"
    quiet: options.Quiet = False
    no_color: options.NoColor = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ListRequest(Request):
    """List faults, rules, settings, campaigns and more."""

    kind: Annotated[options.Kind, typer.Argument(metavar="KIND", help="Which catalogue.")]
    output_format: Annotated[options.ListFormat, options.FORMAT] = "table"
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Only the names, one a line.")] = False
    no_color: options.NoColor = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ExplainRequest(Request):
    """Explain anything that `harrow list` shows."""

    name: Annotated[
        str,
        options.named(
            "NAME",
            completion.names,
            "A fault, rule, setting, release, behaviour, mutant, probe, campaign ...",
        ),
    ]
    output_format: Annotated[options.ListFormat, options.FORMAT] = "table"
    no_color: options.NoColor = False


@dataclass(frozen=True, slots=True, kw_only=True)
class NewRequest(Request):
    """Write a commented campaign to start from.

    NAME becomes NAME.yaml in this folder; an existing file stays as it is.
    """

    name: Annotated[str, typer.Argument(metavar="NAME", help="The campaign's name, or the file to write.")]


@dataclass(frozen=True, slots=True, kw_only=True)
class SchemaRequest(Request):
    """Print the JSON Schema of campaign files, for editors.

    With the YAML language server: `harrow schema > campaign.schema.json`, and as first line
    of a campaign `# yaml-language-server: $schema=campaign.schema.json`.
    """


@dataclass(frozen=True, slots=True, kw_only=True)
class CleanRequest(Request):
    """Remove old runs; the newest of each campaign stay.

    The newest are the last ones written. harrow removes only folders of runs, which have a run.json and
    nothing that harrow did not write; it does not follow symbolic links. The run that results/latest
    points to stays, unless --keep is 0.
    """

    keep: Annotated[
        int, typer.Option(metavar="N", min=0, help="How many runs of each campaign stay, the newest.")
    ] = 20
    results: Annotated[Path, options.folder("Where the files of runs are.")] = options.DEFAULT_RESULTS
    sweeps: Annotated[bool, typer.Option("--sweeps", help="Sweeps too: the newest N complete ones stay.")] = (
        False
    )
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Remove nothing; print what would go.")] = False
    output_format: Annotated[options.ListFormat, options.FORMAT] = "table"
    quiet: options.NoMessages = False
    no_color: options.NoColor = False


COMMANDS: Final[dict[str, type[Request]]] = {
    "run": RunRequest,
    "sweep": SweepRequest,
    "shrink": ShrinkRequest,
    "replay": ReplayRequest,
    "diff": DiffRequest,
    "trace": TraceRequest,
    "regress": RegressRequest,
    "check": CheckRequest,
    "validate": ValidateRequest,
    "list": ListRequest,
    "explain": ExplainRequest,
    "new": NewRequest,
    "schema": SchemaRequest,
    "clean": CleanRequest,
}
