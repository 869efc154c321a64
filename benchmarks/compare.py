"""The cost of a run in the work tree relative to a commit, for clusters of many sizes.

Run ``python -m benchmarks.compare COMMIT``; ``--list`` shows the clusters, ``--only`` chooses some
of them. Work tree and commit take turns, so that other work on the machine slows both. The spread
shows the remaining noise. ``--growth`` measures only the work tree, at growing sizes, and draws
docs/pictures/speed.svg. docs/evidence/speed.md explains the columns.
"""

import argparse
import json
import signal
import sys
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import NoReturn

from benchmarks.speed.clusters import (
    CAMPAIGNS,
    GROWTHS,
    HOUR_S,
    MINUTE_S,
    TABLE,
    WORK_TREE,
    LibraryCampaign,
    MeasuredCluster,
)
from benchmarks.speed.comparison import COLUMNS, CostComparison
from benchmarks.speed.growth import GROWTH_COLUMNS, SizeCost, growth_picture
from benchmarks.speed.measurement import (
    CommitError,
    UnrunnableCodeError,
    checked_out,
    compile_core,
    git,
    how_it_runs,
    instructions,
    measure,
    resolved,
)

_CLUSTERS = (*TABLE, *CAMPAIGNS)
_COUNTED_MAX_S = 5
"""Instructions are not counted if the seeds take more CPU time than this, because valgrind takes 50
times as long."""
_PICTURE = WORK_TREE / "docs" / "pictures" / "speed.svg"


def main() -> None:
    """Print the comparison, the costs by size, or the list of clusters."""
    signal.signal(signal.SIGTERM, _terminated)
    signal.signal(
        signal.SIGINT, signal.default_int_handler
    )  # a shell makes background processes ignore SIGINT
    parser = _parser()
    options = parser.parse_args()
    if not options.growth and not options.list and options.commit is None:
        parser.error("name a COMMIT to compare with, for example HEAD; or --growth or --list")
    clusters = [cluster for cluster in _CLUSTERS if options.only is None or cluster.name in options.only]
    try:
        if options.list:
            for cluster in clusters:
                print(f"{cluster.name:<22}  {described(cluster)}")
        elif options.growth:
            _grow(options.limit, as_json=options.json, picture=options.picture)
        else:
            compare(
                options.commit,
                clusters,
                rounds=options.rounds,
                limit_s=options.limit,
                as_json=options.json,
                compiled=options.compiled,
            )
    except (CommitError, UnrunnableCodeError) as error:
        sys.exit(f"{error}")
    except KeyboardInterrupt:
        sys.exit(130)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.compare",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "commit", nargs="?", metavar="COMMIT", help="the commit to compare the work tree with"
    )
    parser.add_argument("--rounds", type=_positive, default=5, help="the number of runs of each; default 5")
    parser.add_argument(
        "--limit",
        type=_positive,
        default=60,
        metavar="SECONDS",
        help="CPU time that a measurement may take; default 60",
    )
    parser.add_argument(
        "--only",
        nargs="+",
        metavar="NAME",
        choices=[cluster.name for cluster in _CLUSTERS],
        help="only these clusters",
    )
    parser.add_argument(
        "--compiled", action="store_true", help="compile the commit, in minutes; after `make compiled`"
    )
    parser.add_argument("--list", action="store_true", help="show the clusters")
    parser.add_argument("--json", action="store_true", help="print every measurement, as JSON")
    parser.add_argument("--growth", action="store_true", help="measure the work tree at growing sizes")
    parser.add_argument(
        "--picture", type=Path, default=_PICTURE, help="the picture that --growth draws; default %(default)s"
    )
    return parser


def _positive(text: str) -> int:
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError("at least 1")
    return number


def _terminated(_signal: int, _frame: object) -> NoReturn:
    """Exit by an exception, so that `finally` removes the checkout."""
    sys.exit(128 + signal.SIGTERM)


def described(cluster: MeasuredCluster) -> str:
    """Describe a cluster in one line."""
    if isinstance(cluster, LibraryCampaign):
        return f"campaigns/library/{cluster.name}.yaml, {cluster.seeds} seeds"
    return (
        f"{cluster.brokers} brokers, {cluster.partitions} partitions, "
        f"{cluster.records_per_s} record{'' if cluster.records_per_s == 1 else 's'}/s by "
        f"{cluster.producers} producer{'' if cluster.producers == 1 else 's'}, {_duration_text(cluster.duration_s)}, "
        f"{'' if cluster.faults else 'no '}faults"
        f"{f', {cluster.seeds} seeds' if cluster.seeds > 1 else ''}"
    )


def _duration_text(length_s: int) -> str:
    if length_s % HOUR_S == 0:
        return f"{length_s // HOUR_S} h"
    return f"{length_s // MINUTE_S} min" if length_s > MINUTE_S else f"{length_s} s"


def compare(
    commit: str,
    clusters: Sequence[MeasuredCluster],
    *,
    rounds: int,
    limit_s: int,
    as_json: bool = False,
    compiled: bool = False,
) -> None:
    """Measure clusters in the work tree and in a commit, and print a line for each."""
    name = resolved(commit)[:7]
    changed = " and what is not committed" if git("status", "--porcelain", "--untracked-files=no") else ""
    rows: list[CostComparison] = []
    with checked_out(commit) as root:
        if compiled:
            compile_core(root)
        sides = [how_it_runs(side, compiled=compiled) for side in (WORK_TREE, root)]
        if not as_json:
            head = git("rev-parse", "--short=7", "HEAD")
            print(f"work tree ({head}{changed}, {sides[0]}) / {name} ({sides[1]})\n")
            _print_row(COLUMNS, is_head=True)
        for cluster in clusters:
            row = CostComparison(cluster=cluster, limit_s=limit_s)
            try:
                _run_rounds(row, root, rounds, compiled=compiled)
            except UnrunnableCodeError as error:
                print(error, file=sys.stderr)
                continue
            rows.append(row)
            if not as_json:
                _print_row(row.cells())
    if as_json:
        print(json.dumps({"commit": name, "clusters": [row.as_json() for row in rows]}, indent=2))
        return
    for row in rows:
        for note in row.notes():
            print(f"\n{note}")


def _run_rounds(row: CostComparison, root: Path, rounds: int, *, compiled: bool) -> None:
    for number in range(rounds):
        for side in (row.work_tree, row.commit)[:: -1 if number % 2 else 1]:
            checkout = WORK_TREE if side is row.work_tree else root
            side.append(measure(checkout, row.cluster, row.limit_s, compiled=compiled))
        if row.is_over():
            return  # every further round would reach the same limit
    if max(row.work_tree[0].cpu_s, row.commit[0].cpu_s) <= _COUNTED_MAX_S:
        counts = [instructions(checkout, row.cluster, compiled=compiled) for checkout in (WORK_TREE, root)]
        row.instructions.extend(count for count in counts if count is not None)


def _grow(limit_s: int, *, as_json: bool, picture: Path) -> None:
    steps: list[SizeCost] = []
    if not as_json:
        _print_row(GROWTH_COLUMNS, is_head=True)
    for growth in GROWTHS:
        for size, cluster in growth.sizes:
            step = SizeCost(growth=growth, size=size, cost=measure(WORK_TREE, cluster, limit_s))
            steps.append(step)
            if not as_json:
                _print_row(step.cells(limit_s))
    picture.write_text(growth_picture(steps), encoding="utf-8")
    if as_json:
        found = [{"of": step.growth.name, "size": step.size, **asdict(step.cost)} for step in steps]
        print(json.dumps(found, indent=2))


def _print_row(cells: Sequence[str], *, is_head: bool = False) -> None:
    print(f"| {' | '.join(cells)} |", flush=True)
    if is_head:
        print(f"| --- |{' ---: |' * (len(cells) - 1)}", flush=True)


if __name__ == "__main__":
    main()
