"""The help of the commands: in which group each stands, and examples of its use.

Plain text: the same on a terminal, in a pipe and in a log, and quick.
"""

from collections.abc import Iterable
from typing import Final

GROUPS: Final = {
    "Run campaigns": ("run", "sweep", "regress", "replay"),
    "Understand what was found": ("diff", "trace", "shrink", "check"),
    "Write campaigns": ("new", "validate", "schema"),
    "Look up": ("list", "explain"),
    "Real brokers": ("conform", "target", "heal", "kafka"),
    "Tidy up": ("clean",),
}
"""The commands by what one wants, in the order of the help."""

OTHERS: Final = "Other commands"

EXAMPLES: Final = {
    "run": (
        ("harrow run loss-by-hw-truncation --verbose", "a campaign of the library, with its whole story"),
        ("harrow run unclean-election --watch", "look at the cluster while the run is played"),
        ("harrow run mine.yaml --seeds 0..200", "your own, with 200 seeds"),
        ("harrow run swarm --seed 7 --set acks=1", "another setting, release or field"),
        ("harrow run ack-lost --target kafka:2.4.1", "on real brokers, started for it"),
        ("harrow run mine.yaml --target cluster.yaml", "on a cluster of yours (docs/how-to/your-cluster.md)"),
        ("harrow run campaigns/ --format junit -o report.xml", "a folder, for a CI system"),
    ),
    "sweep": (
        ("harrow sweep standard --seeds 0..1000", "a thousand seeds, on all cores or on Spark"),
        ("harrow sweep swarm --seeds 0..500 --vary acks=1,all", "what a setting changes, with intervals"),
        ("harrow sweep swarm --seeds 0..5000 --watch", "see failures by kind while it runs"),
        ("harrow sweep swarm --seeds 0..1000000 --master spark://host:7077 --resume", "on a cluster; go on"),
        ("harrow sweep --report results/sweep-1f0c35ab-5d07c3e1 --shrink", "its report, failures shrunk"),
    ),
    "shrink": (
        ("harrow shrink mine.yaml --seed 17 -o small.yaml", "the smallest campaign that fails like it"),
        ("harrow shrink acks-0 --seed 0 --rule lost-write", "an anomaly that the settings permit"),
    ),
    "replay": (
        ("harrow replay results/latest", "the newest run"),
        ("harrow replay 1f0c35ab-7", "a run by its id, or by how that begins"),
    ),
    "diff": (
        ("harrow diff results/latest", "the replicas' logs at the end of the newest run"),
        ("harrow diff results/latest --at 12.5s", "at another moment"),
        ("harrow diff 1f0c35ab-7 1f0c35ab-8", "where two runs part, and what became of them"),
        ("harrow diff 3.9 4.0", "what changed from one release to another"),
    ),
    "trace": (
        ("harrow trace results/latest --around lost-write", "what led to a finding"),
        ("harrow trace results/latest --record m1", "one record, from its send to its end"),
        ("harrow trace results/latest --from 25s --to 41s --all", "every event of a while"),
        ("harrow trace results/latest --format html -o run.html", "one page to scroll and filter"),
    ),
    "regress": (
        ("harrow regress", "the corpus in tests/regressions"),
        ("harrow regress --format github", "with annotations, in GitHub Actions"),
        ("harrow regress --add mine.yaml --seed 17", "keep what was found"),
    ),
    "check": (
        ("harrow check results/latest", "the history of a run"),
        ("harrow check history.jsonl.gz --set acks=1", "of your cluster, with its settings"),
        ("harrow check history.jsonl --allow duplicate", "but for one anomaly"),
    ),
    "validate": (
        ("harrow validate mine.yaml", "one file"),
        ("harrow validate campaigns/ --format github", "a folder, with annotations in GitHub Actions"),
    ),
    "list": (
        ("harrow list faults", "what can strike"),
        ("harrow list campaigns", "what ships with harrow"),
        ("harrow list settings --format json", "for programs"),
    ),
    "explain": (
        ("harrow explain broker_crash", "a fault, with all its fields"),
        ("harrow explain lost-write", "a rule: what promises it, what permits it"),
        ("harrow explain min.insync.replicas", "a setting, with the defaults of each release"),
    ),
    "new": (
        ("harrow new my-first", "writes my-first.yaml"),
        ("harrow new ours --from cluster.yaml", "about a cluster of yours, for the model"),
    ),
    "schema": (("harrow schema > campaign.schema.json", "for the YAML support of an editor"),),
    "conform": (
        ("harrow conform ack-lost --target kafka:2.4.1", "does a real cluster do what the model allows?"),
        ("harrow conform mine.yaml --target kafka:4.3.1 --times 5", "five runs on brokers"),
        (
            "harrow conform --requests 1000 --target kafka:3.9.2-zookeeper",
            "single requests, answer by answer",
        ),
    ),
    "target": (
        ("harrow target check cluster.yaml", "what can run on a cluster of yours; nothing is changed"),
        ("harrow target schema > cluster.schema.json", "for the YAML support of an editor"),
    ),
    "heal": (
        ("harrow heal", "undo what killed runs have left"),
        ("harrow heal cluster.yaml", "on one cluster"),
    ),
    "kafka": (
        ("harrow kafka get 3.9.2", "get a release, by Maven"),
        ("harrow kafka get 2.4.1 --repository https://maven.example.org", "without Maven"),
        ("harrow kafka list", "which releases there are, and which are here"),
    ),
    "clean": (
        ("harrow clean --dry-run", "say what would be removed"),
        ("harrow clean --keep 5", "five runs of each campaign stay"),
    ),
}
"""Command lines by command, each with what it is for."""


def epilog(command: str) -> str | None:
    """Return what stands below the help of a command."""
    examples = EXAMPLES.get(command)
    if examples is None:
        return None
    # A paragraph that begins with \b keeps its lines.
    lines = [line for typed, meaning in examples for line in (f"  {typed}", f"      {meaning}")]
    return "\n".join(["\b", "Examples:", *lines])


def grouped(commands: Iterable[str]) -> list[tuple[str, list[str]]]:
    """Return commands by group; those that no group has come last."""
    rest = list(commands)
    found = []
    for heading, members in GROUPS.items():
        here = [name for name in members if name in rest]
        rest = [name for name in rest if name not in here]
        found.append((heading, here))
    return [(heading, names) for heading, names in [*found, (OTHERS, rest)] if names]
