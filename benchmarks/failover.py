"""How long a partition accepts no writes after its leader or the active controller fails.

One of them is killed or stopped, or both are killed at once.

Run ``python -m benchmarks.failover [SEEDS]`` for the model; the table is that of
docs/evidence/failover.md. With ``--target kafka:RELEASE``, real brokers run the same cases equally
often, and the table has both. Settings are the defaults, with min.insync.replicas of two. A process
comes back half a minute after its end, unless the case says otherwise. The start of real brokers
takes longer than a failover, so with ``--strikes N`` each run has N failovers, a minute apart; the
table counts each separately.
"""

import argparse
import statistics
import sys
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from harrow.campaigns.language.loader import load_text
from harrow.campaigns.language.plan import Plan
from harrow.campaigns.run.run_result import RunResult
from harrow.campaigns.run.runner import run_plan
from harrow.cli.commands.brokers import started_brokers
from harrow.cli.requests.run import RunRequest
from harrow.cluster_model.sim.virtual_time import US_PER_MS, US_PER_SECOND

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
_FIRST_MS: Final = 10_000
_BETWEEN_MS: Final = 60_000
_HEARTBEAT_MS: Final = 2_000


def campaign(release: str, metadata: str, faults: tuple[str, ...], at_ms: Sequence[int]) -> str:
    """Return a campaign with a producer, one partition of three replicas, and four brokers.

    A broker without a replica is the controller.
    """
    steps = "".join(f"\n      - {{{fault}}}" for fault in faults)
    script = "".join(f"\n  - at: {at}ms\n    do:{steps}" for at in at_ms)
    controller = ", controller: 3" if metadata == "zookeeper" else ""
    return f"""
name: failover
kafka: "{release}"
settings: {{acks: all, min.insync.replicas: 2}}
cluster: {{brokers: 4, metadata: {metadata}{controller}, topics: [{{name: t, assignment: [[0, 1, 2]]}}]}}
script:{script}
workload: {{duration: {len(at_ms) * _BETWEEN_MS}ms, producers: [{{name: producer-0, rate: 50/s}}]}}
"""


def strikes_of(runs: int, strikes: int) -> Iterator[list[int]]:
    """Yield the times of strikes for each run, each at a different moment between two heartbeats.

    Heartbeats come every two seconds.
    """
    for run in range(runs):
        yield [
            _FIRST_MS + strike * _BETWEEN_MS + (run * strikes + strike) * _HEARTBEAT_MS // (runs * strikes)
            for strike in range(strikes)
        ]


def plan_of(release: str, metadata: str, faults: tuple[str, ...], at_ms: Sequence[int]) -> Plan:
    """Return the plan of a run that is struck at these times."""
    return load_text(campaign(release, metadata, faults, at_ms), "failover.yaml").plans[0]


def outages_s(result: RunResult, at_ms: Sequence[int]) -> list[float]:
    """Return the longest time without an ack after each strike and before the next, in seconds.

    If there are several strikes, times of less than a second count as 0.

    Raises:
        SystemExit: the run did not end, or a fault had no target.

    """
    if result.verdict.reasons:
        raise SystemExit("; ".join(result.verdict.reasons))
    if len(result.faults) != sum(len(step.actions) for step in result.plan.script):
        raise SystemExit("a fault had no target")
    if len(at_ms) == 1:
        return [result.service.longest_us / US_PER_SECOND]
    found = []
    for strike in at_ms:
        since_us, until_us = strike * US_PER_MS, (strike + _BETWEEN_MS) * US_PER_MS
        lengths = [
            outage.length_us
            for outage in result.service.outages
            if outage.end_us > since_us and outage.start_us < until_us
        ]
        found.append(max(lengths, default=0) / US_PER_SECOND)
    return found


def cell(lengths: Sequence[float]) -> str:
    """Return the median and the maximum as a cell of the table."""
    return f"{statistics.median(lengths):.1f} s, {max(lengths):.1f} s"


def modelled(seeds: int) -> None:
    """Print the table of the model's releases."""
    print(f"| | {' | '.join(f'{release} {NAMES[metadata]}' for release, metadata in RELEASES)} |")
    print(f"| --- |{' ---: |' * len(RELEASES)}")
    for case, faults in CASES.items():
        cells = [
            cell(
                [
                    length
                    for seed, at_ms in enumerate(strikes_of(seeds, 1))
                    for length in outages_s(run_plan(plan_of(*release, faults, at_ms), seed), at_ms)
                ]
            )
            for release in RELEASES
        ]
        print(f"| {case} | {' | '.join(cells)} |", flush=True)


def beside_real(target: str, cases: Mapping[str, tuple[str, ...]], runs: int, strikes: int) -> None:
    """Print a table of a release's brokers and of the model, with the ratio of their medians.

    The outcome of each run goes to standard error.
    """
    brokers = started_brokers(RunRequest(campaigns=[], target=target))
    release, metadata = brokers.release.model_release, brokers.metadata
    print(f"| {brokers.release.name} {NAMES[metadata]} | brokers | model | model / brokers |")
    print("| --- | ---: | ---: | ---: |")
    for case, faults in cases.items():
        real: list[float] = []
        model: list[float] = []
        for seed, at_ms in enumerate(strikes_of(runs, strikes)):
            plan = plan_of(release, metadata, faults, at_ms)
            real += outages_s(brokers.run(plan, seed, None), at_ms)
            lengths_text = ", ".join(f"{length:.1f} s" for length in real[-strikes:])
            print(f"{case}: {lengths_text}", file=sys.stderr, flush=True)
            model += outages_s(run_plan(brokers.modelled_plan(plan), seed), at_ms)
        medians = statistics.median(model), statistics.median(real)
        ratio = f"{medians[0] / medians[1]:.2f}" if medians[1] else ""
        print(f"| {case} | {cell(real)} | {cell(model)} | {ratio} |", flush=True)


def main() -> None:
    """Print a table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("seeds", nargs="?", type=int, default=20)
    parser.add_argument("--target", help="kafka:RELEASE")
    parser.add_argument("--strikes", type=int, default=1, help="failovers in each run on real brokers")
    parser.add_argument("--case", action="append", choices=CASES, help="only this case; may be repeated")
    arguments = parser.parse_args()
    if arguments.target is None:
        modelled(arguments.seeds)
    else:
        cases = {case: CASES[case] for case in arguments.case or CASES}
        beside_real(arguments.target, cases, arguments.seeds, arguments.strikes)


if __name__ == "__main__":
    main()
