"""How long nobody can write to a partition after its leader, the active controller, or both are killed or stopped.

Run ``python -m benchmarks.failover [SEEDS]`` for the model; the table is that of docs/model.md. With ``--target kafka:RELEASE`` real
brokers do the same as often, and the table has both. Settings are the defaults, with min.insync.replicas of two. What dies comes back
after half a minute, but where a case says otherwise.
"""

import argparse
import statistics
import sys
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from rich.console import Console

from harrow.campaigns.language.loader import load_text
from harrow.campaigns.language.plan import Plan
from harrow.campaigns.run.run_result import RunResult
from harrow.campaigns.run.runner import run_plan
from harrow.cli.commands.brokers import started_brokers
from harrow.cluster_model.sim.virtual_time import US_PER_SECOND

RELEASES: Final = (("2.4", "zookeeper"), ("3.9", "zookeeper"), ("3.9", "kraft"), ("4.3", "kraft"))
NAMES: Final = {"zookeeper": "ZooKeeper", "kraft": "KRaft"}
CASES: Final = {
    "leader killed": ("broker_crash: {broker: leader of t-0, restart_after: 30s}",),
    "leader killed, back after a second": ("broker_crash: {broker: leader of t-0, restart_after: 1s}",),
    "controller killed": ("broker_crash: {broker: controller, restart_after: 30s}",),
    "controller killed, and the leader with it": (
        "broker_crash: {broker: controller, restart_after: 30s}",
        "broker_crash: {broker: leader of t-0, restart_after: 30s}",
    ),
    "leader stopped": ("broker_stop: {broker: leader of t-0, restart_after: 30s}",),
    "controller stopped": ("broker_stop: {broker: controller, restart_after: 30s}",),
}


def campaign(release: str, metadata: str, faults: tuple[str, ...], at_ms: int) -> str:
    """Return a campaign in which a producer writes to one partition of three replicas, on four brokers of which another is controller."""
    steps = "".join(f"\n      - {{{fault}}}" for fault in faults)
    controller = ", controller: 3" if metadata == "zookeeper" else ""
    return f"""
name: failover
kafka: "{release}"
settings: {{acks: all, min.insync.replicas: 2}}
cluster: {{brokers: 4, metadata: {metadata}{controller}, topics: [{{name: t, assignment: [[0, 1, 2]]}}]}}
script:
  - at: {at_ms}ms
    do:{steps}
workload: {{duration: 60s, producers: [{{name: producer-0, rate: 50/s}}]}}
"""


def plans(release: str, metadata: str, faults: tuple[str, ...], seeds: int) -> Iterator[Plan]:
    """Yield a plan for each seed: heartbeats come every two seconds, so each strikes at another moment of that."""
    for seed in range(seeds):
        text = campaign(release, metadata, faults, 10_000 + seed * 2_000 // seeds)
        yield load_text(text, "failover.yaml").plans[0]


def outage_s(result: RunResult) -> float:
    """Return the longest time without an ack of a run, in seconds.

    Raises:
        SystemExit: the run came to no end.

    """
    if result.verdict.reasons:
        raise SystemExit("; ".join(result.verdict.reasons))
    return result.service.longest_us / US_PER_SECOND


def cell(lengths: Sequence[float]) -> str:
    """Return the median and the worst, as the table has them."""
    return f"{statistics.median(lengths):.1f} s, {max(lengths):.1f} s"


def modelled(seeds: int) -> None:
    """Print the table of the model's releases."""
    print(f"| | {' | '.join(f'{release} {NAMES[metadata]}' for release, metadata in RELEASES)} |")
    print(f"| --- |{' ---: |' * len(RELEASES)}")
    for case, faults in CASES.items():
        cells = [
            cell([outage_s(run_plan(plan, seed)) for seed, plan in enumerate(plans(*release, faults, seeds))])
            for release in RELEASES
        ]
        print(f"| {case} | {' | '.join(cells)} |", flush=True)


def beside_real(target: str, cases: Mapping[str, tuple[str, ...]], seeds: int) -> None:
    """Print the table of a release's brokers and of the model, with the ratio of the medians."""
    brokers = started_brokers(target, None, Console(stderr=True), quiet=False)
    release, metadata = brokers.release.model_release, brokers.metadata
    print(f"| {brokers.release.name} {NAMES[metadata]} | brokers | model | model / brokers |")
    print("| --- | ---: | ---: | ---: |")
    for case, faults in cases.items():
        given = list(plans(release, metadata, faults, seeds))
        real = []
        for seed, plan in enumerate(given):
            real.append(outage_s(brokers.run(plan, seed, None)))
            print(f"{case}: {real[-1]:.1f} s", file=sys.stderr, flush=True)
        model = [outage_s(run_plan(brokers.as_modelled(plan), seed)) for seed, plan in enumerate(given)]
        ratio = statistics.median(model) / statistics.median(real)
        print(f"| {case} | {cell(real)} | {cell(model)} | {ratio:.2f} |", flush=True)


def main() -> None:
    """Print a table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("seeds", nargs="?", type=int, default=20)
    parser.add_argument("--target", help="kafka:RELEASE")
    parser.add_argument("--case", action="append", choices=CASES, help="this case alone; may be repeated")
    given = parser.parse_args()
    if given.target is None:
        modelled(given.seeds)
    else:
        cases = {case: CASES[case] for case in given.case or CASES}
        beside_real(given.target, cases, given.seeds)


if __name__ == "__main__":
    main()
