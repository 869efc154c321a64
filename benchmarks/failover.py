"""How long nobody can write to a partition after its leader, the active controller, or both are killed or stopped.

Run ``python -m benchmarks.failover [SEEDS]``; the table is that of docs/model.md. Settings are the defaults, with min.insync.replicas of
two. What dies comes back after half a minute, but where a case says otherwise.
"""

import argparse
import statistics
from typing import Final

from harrow.campaigns.language.loader import load_text
from harrow.campaigns.run.runner import run_plan

RELEASES: Final = (("2.4", ""), ("3.9", "metadata: zookeeper"), ("3.9", ""), ("4.3", ""))
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


def campaign(release: str, cluster: str, faults: tuple[str, ...], at_ms: int) -> str:
    """Return a campaign in which a producer writes to one partition of three replicas, on four brokers of which another is controller."""
    steps = "".join(f"\n      - {{{fault}}}" for fault in faults)
    extra = f", {cluster}" if cluster else ", controller: 3" if release == "2.4" else ""
    if cluster:
        extra += ", controller: 3"
    return f"""
name: failover
kafka: "{release}"
settings: {{acks: all, min.insync.replicas: 2}}
cluster: {{brokers: 4{extra}, topics: [{{name: t, assignment: [[0, 1, 2]]}}]}}
script:
  - at: {at_ms}ms
    do:{steps}
workload: {{duration: 60s, producers: [{{name: producer-0, rate: 50/s}}]}}
"""


def outages_s(release: str, cluster: str, faults: tuple[str, ...], seeds: int) -> list[float]:
    """Return the longest time without an ack of each seed, in seconds.

    Heartbeats come every two seconds, so each seed strikes at another moment of that.
    """
    lengths = []
    for seed in range(seeds):
        text = campaign(release, cluster, faults, 10_000 + seed * 2_000 // seeds)
        (plan,) = load_text(text, "failover.yaml").plans
        lengths.append(run_plan(plan, seed).service.longest_us / 1e6)
    return lengths


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("seeds", nargs="?", type=int, default=20)
    seeds = parser.parse_args().seeds
    names = [
        f"{release} {'ZooKeeper' if cluster or release == '2.4' else 'KRaft'}"
        for release, cluster in RELEASES
    ]
    print(f"| | {' | '.join(names)} |")
    print(f"| --- |{' ---: |' * len(names)}")
    for case, faults in CASES.items():
        cells = []
        for release, cluster in RELEASES:
            lengths = outages_s(release, cluster, faults, seeds)
            cells.append(f"{statistics.median(lengths):.1f} s, {max(lengths):.1f} s")
        print(f"| {case} | {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main()
