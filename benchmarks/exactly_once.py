"""The outcome of each record if a consume-transform-produce loop crashes at any step.

Meanwhile, a fault strikes: each fault of the catalogue in turn.

Run ``python -m benchmarks.exactly_once [SEEDS] [--release R] [--protocol consumer]``. Each pair of
a step and a fault runs with each seed, first with the offsets in the transaction, then with
automatic commits. An application takes the step `abort` only after a failure, so for this step each
application first gets records that it cannot deliver. A run counts if an application died at the
step. It doubled effects if a record of the input has more of them than it should, and lost effects
if a record has fewer. Rates are shares of the runs that count, with 95% intervals.
"""

import argparse
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final

from harrow.campaigns.language.loader import load_text
from harrow.campaigns.language.plan import Plan
from harrow.campaigns.run.run_result import RunResult
from harrow.campaigns.run.runner import run_plan
from harrow.campaigns.sweep.confidence import wilson
from harrow.checks.finding import INCONCLUSIVE
from harrow.checks.promise import DOUBLED_EFFECT, LOST_EFFECT
from harrow.cluster_model.clients.programs import ABORT, APPLICATIONS
from harrow.cluster_model.events import ApplicationStep, ClientStopped
from harrow.cluster_model.topology import AUTO_COMMITTED, EXACTLY_ONCE
from harrow.cluster_model.trace import select

FAULTS: Final[Mapping[str, str]] = {
    "broker_crash": "broker_crash: {broker: leader of in-0, restart_after: 3s}",
    "broker_restart": "broker_crash: {broker: 1}; broker_restart: {broker: 1}",
    "broker_stop": "broker_stop: {broker: leader of in-0, restart_after: 3s}",
    "broker_bounce": "broker_bounce: {broker: leader of in-0}",
    "rolling_restart": "rolling_restart: {}",
    "broker_pause": "broker_pause: {broker: leader of in-0, duration: 12s}",
    "broker_resume": "broker_pause: {broker: 1}; broker_resume: {broker: 1}",
    "broker_slow": "broker_slow: {broker: any, duration: 5s}",
    "broker_isolation": "broker_isolation: {broker: leader of in-0, duration: 12s}",
    "disk_loss": "broker_crash: {broker: 1}; disk_loss: {broker: 1}; broker_restart: {broker: 1}",
    "torn_write": "torn_write: {broker: any, restart_after: 3s}",
    "bit_rot": "bit_rot: {broker: follower of in-0, partition: in-0}",
    "log_dir_failure": "log_dir_failure: {broker: any, duration: 5s}",
    "disk_full": "disk_full: {broker: any, room: 200, duration: 5s}",
    "disk_slow": "disk_slow: {broker: any, duration: 5s}",
    "stale_checkpoint": "broker_crash: {broker: 1}; stale_checkpoint: {broker: 1}; broker_restart: {broker: 1}",
    "clock_skew": "clock_skew: {of: any, by: 20s, duration: 5s}",
    "controller_failover": "controller_failover: {how: crash, restart_after: 3s}",
    "session_expiry": "session_expiry: {broker: any}",
    "network_ack_loss": "network_ack_loss: {probability: 0.5, duration: 5s}",
    "slow_follower": "slow_follower: {broker: any, mode: stuck, duration: 12s}",
    "partition": "partition: {between: one, and: leader of in-0, duration: 12s}",
    "network_split": "network_split: {duration: 12s}",
    "link_slow": "link_slow: {between: one, and: brokers, latency: 300ms, duration: 5s}",
    "link_reset": "link_reset: {between: one, and: brokers}",
    "client_crash": "client_crash: {client: two, restart_after: 1s}",
    "client_pause": "client_pause: {client: two, duration: 12s}",
    "client_zombie": "client_zombie: {client: two, duration: 12s}",
    "application_crash": "application_crash: {client: two, restart_after: 1s}",
    "application_pause": "application_pause: {client: two, duration: 12s}",
    "slow_poll": "slow_poll: {client: two, by: 3s, duration: 5s}",
    "rebalance_storm": "rebalance_storm: {rounds: 2}",
    "message": "message: {action: drop, api: EndTxn, kind: response, from: one, count: 1}",
    "release": "message: {action: hold, api: Produce, kind: request, from: one, id: held}; release: {id: held}",
}
"""How each fault strikes: one after the other, half a second apart."""

_CAMPAIGN: Final = """
name: exactly-once
kafka: "{release}"
settings:
  acks: all
  min.insync.replicas: 2
  group.id: app
  auto.offset.reset: earliest
  isolation.level: read_committed
  offsets.topic.num.partitions: 1
  transaction.state.log.num.partitions: 1
  {sessions}
  transaction.timeout.ms: 10s
  max.poll.records: 10
cluster:
  brokers: 3
  topics: [{{name: in, replication_factor: 3}}, {{name: out, replication_factor: 3}}]
workload:
  duration: 24s
  producers: [{{rate: 8/s, partitions: [in-0], settings: {{enable.idempotence: true}}}}]
  applications:
    - {{name: one, from: in, to: out, delivery: {delivery}, work: 20ms{producer}}}
    - {{name: two, from: in, to: out, delivery: {delivery}, work: 20ms{producer}}}
survivable: true
faults:
  - {{at: 9s..10s, do: {{application_crash: {{client: all, step: {step}, restart_after: 1s}}}}}}
{faults}
"""


SESSIONS: Final = {
    "classic": "session.timeout.ms: 8s",
    "consumer": "group.protocol: consumer\n  group.consumer.min.session.timeout.ms: 8s\n  group.consumer.session.timeout.ms: 8s",
}
"""How soon a group considers a member dead, by the group's protocol."""
_UNDELIVERED: Final = ", producer: {request.timeout.ms: 500, delivery.timeout.ms: 2s}"
_DROPPED: Final = """
  - {{at: 8900ms, do: {{message: {{action: drop, api: Produce, kind: request, from: {client}, count: 6}}}}}}"""
"""So many lost requests that the delivery of a record fails, and with it the transaction."""


def was_struck(result: RunResult, step: str) -> bool:
    """Return whether an application died at a step."""
    at: dict[str, str] = {}
    for event in select(result.evidence.trace, ApplicationStep, ClientStopped):
        if isinstance(event, ApplicationStep):
            at[event.client] = event.step
        elif at.pop(event.client, "") == step:
            return True
    return False


@dataclass(slots=True)
class EffectTally:
    """The results of runs. Runs that are ``not_struck`` do not count."""

    runs: int = 0
    not_struck: int = 0
    undecided: int = 0
    lost: int = 0
    doubled: int = 0
    records: int = 0
    lost_records: int = 0
    doubled_records: int = 0
    failed: list[str] = field(default_factory=list)

    def add(self, result: RunResult, label: str, step: str) -> None:
        if not was_struck(result, step):
            self.not_struck += 1
            return
        self.runs += 1
        rules = result.verdict.rules
        lost, doubled = len(rules[LOST_EFFECT].findings), len(rules[DOUBLED_EFFECT].findings)
        self.undecided += result.verdict.status == INCONCLUSIVE
        self.lost += lost > 0
        self.doubled += doubled > 0
        self.lost_records += lost
        self.doubled_records += doubled
        self.records += len(
            {
                value
                for operation in result.evidence.operations
                for part, _, value in operation.sends()
                if part == "in-0"
            }
        )
        if lost or doubled:
            self.failed.append(label)


def plan_of(fault: str, step: str, delivery: str, release: str, protocol: str = "classic") -> Plan:
    """Return the campaign of a step and a fault."""
    strikes = [
        f"  - {{at: {8500 + 500 * index}ms..{8900 + 500 * index}ms, do: {{{strike.strip()}}}}}"
        for index, strike in enumerate(FAULTS[fault].split(";"))
    ]
    fails = step == ABORT
    text = _CAMPAIGN.format(
        delivery=delivery,
        step=step,
        release=release,
        sessions=SESSIONS[protocol],
        producer=_UNDELIVERED if fails else "",
        faults="\n".join(strikes)
        + "".join(_DROPPED.format(client=client) for client in ("one", "two") if fails),
    )
    return load_text(text, f"{fault}-{step}.yaml").plans[0]


def runs_of(
    delivery: str, seeds: range, release: str, protocol: str, faults: list[str], steps: list[str]
) -> Iterator[tuple[str, str, RunResult]]:
    """Run each pair of a step and a fault."""
    for fault in faults or FAULTS:
        for step in steps or APPLICATIONS[delivery].steps:
            if step in APPLICATIONS[delivery].steps:
                for seed in seeds:
                    plan = plan_of(fault, step, delivery, release, protocol)
                    yield f"{fault} at {step}, seed {seed}", step, run_plan(plan, seed)


def main() -> None:
    """Print the share of runs with lost and doubled effects."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("seeds", nargs="?", type=int, default=1)
    parser.add_argument("--release", default="3.9")
    parser.add_argument("--protocol", choices=list(SESSIONS), default="classic")
    parser.add_argument("--faults", nargs="*", default=[])
    parser.add_argument("--steps", nargs="*", default=[])
    parser.add_argument("--deliveries", nargs="*", default=[EXACTLY_ONCE, AUTO_COMMITTED])
    arguments = parser.parse_args()
    for delivery in arguments.deliveries:
        tally, start_s = EffectTally(), time.process_time()
        for label, step, result in runs_of(
            delivery,
            range(arguments.seeds),
            arguments.release,
            arguments.protocol,
            arguments.faults,
            arguments.steps,
        ):
            tally.add(result, label, step)
            if delivery == EXACTLY_ONCE and tally.failed and tally.failed[-1] == label:
                print(f"  {label}: {result.verdict.status}", flush=True)
        took_s = time.process_time() - start_s
        print(
            f"{delivery}: {tally.runs} runs, {tally.not_struck} more in which no application died there, {tally.records} records, "
            f"{tally.undecided} undecided ({took_s:.0f} s)"
        )
        for word, runs, records in (
            ("doubled", tally.doubled, tally.doubled_records),
            ("lost", tally.lost, tally.lost_records),
        ):
            low, high = wilson(runs, tally.runs)
            print(
                f"  {word}: {runs} of {tally.runs} runs, {runs / max(tally.runs, 1):.1%} ({low:.1%} to {high:.1%}), "
                f"{records} of {tally.records} records"
            )


if __name__ == "__main__":
    main()
