"""Handmade run results for tests of reports."""

from dataclasses import replace
from typing import Any

from harrow.campaigns.language.plan import Expectation, Plan
from harrow.campaigns.run.run_result import InjectedFault, MissedExpectation, RunResult
from harrow.checks.causes.catalogue import committed_record_lost
from harrow.checks.causes.links import acked, truncated
from harrow.checks.evidence import Evidence, FinalLog, PartitionSettings, ProducerSettings
from harrow.checks.finding import HELD, PERMITTED, VIOLATED, Finding, RuleResult, Verdict
from harrow.checks.prevention import KIP_101, KIP_320, REFUTED, TRIED_HELD, Prevention, Trial
from harrow.cluster_model.history import History
from harrow.cluster_model.log.record_batch import RecordBatch
from harrow.cluster_model.log.unified_log import HIGH_WATERMARK_TRUNCATION
from harrow.cluster_model.topology import BrokerSpec, ClusterSpec, TopicSpec

CHAIN = (
    acked(1_200_000, 0, value="m1", acks=-1, offset=1),
    truncated(1_400_500, 1, leo=1, reason=HIGH_WATERMARK_TRUNCATION, offset=1, value="m1"),
    committed_record_lost.conclude(value="m1"),
)
TEXTS = (
    "1.200s broker 0 acked m1",
    "1.401s broker 1 truncated to its own high watermark, 1, removing m1",
    "m1 was committed, and no setting permits its loss",
)


def plan(**changes: Any) -> Plan:
    """Return a plan of two brokers and one partition."""
    cluster = ClusterSpec(
        brokers=(BrokerSpec(id=0), BrokerSpec(id=1)),
        topics=(TopicSpec(name="t", replication_factor=2),),
    )
    fields: dict[str, Any] = {"campaign": "loss", "cluster": cluster, "kafka": "0.10.2", **changes}
    return Plan(**fields)


def with_trial(way: Prevention, outcome: str) -> Prevention:
    """Return a prevention with a trial of this outcome."""
    return replace(way, trial=Trial(outcome=outcome, verdict=HELD, struck=("broker_crash",)))


def lost_record(value: str, permitted_by: str | None = None, offset: int = 1) -> Finding:
    """Return the finding that a record is lost."""
    return Finding(
        partition="t-0",
        offset=offset,
        value=value,
        chain=CHAIN,
        permitted_by=permitted_by,
        prevented_by=(with_trial(KIP_101, TRIED_HELD), with_trial(KIP_320, REFUTED)),
        details=(("offsets", [1, 2]),),
    )


def verdict(*findings: Finding, status: str | None = None, reasons: tuple[str, ...] = ()) -> Verdict:
    """Return the verdict of a run that lost some records."""
    judged = HELD
    if findings:
        judged = VIOLATED if any(finding.permitted_by is None for finding in findings) else PERMITTED
    rules = {
        "lost-write": RuleResult(status=judged, promise="acks=all", findings=findings),
        "duplicate": RuleResult(status=HELD, promise="enable.idempotence=true"),
    }
    return Verdict(status=status or judged, rules=rules, reasons=reasons)


def evidence() -> Evidence:
    """Return the evidence of a run that kept m0 and lost m1."""
    history = History()
    process = history.new_process("producer-0")
    history.record_send(process, "t-0", "m0", 1_000_000)
    history.record_ack(process, "t-0", 0, "m0", 1_002_500)
    batch = RecordBatch(base_offset=0, leader_epoch=0, producer_id=-1, base_sequence=-1, values=("m0",))
    log = FinalLog(leo=1, hw=1, flushed=0, epochs=((0, 0),), batches=(batch,))
    return Evidence(
        release="0.10.2",
        operations=history.operations,
        trace=[
            (1_001_000, "append", 0, "t-0", 0, 0, -1, -1, ("m0",)),
            (1_400_000, "truncate", 1, "t-0", 2, 1, HIGH_WATERMARK_TRUNCATION),
        ],
        process_names=history.process_names,
        producers={
            process: ProducerSettings(
                name="producer-0", acks="all", idempotence=False, max_in_flight=5, retries=0
            )
        },
        partitions={
            "t-0": PartitionSettings(
                replicas=(0, 1),
                min_insync_replicas=1,
                unclean_leader_election=False,
                flush_messages=2**63 - 1,
            )
        },
        replicas={"t-0": {1: log, 0: log}},
        read_back=frozenset({"t-0"}),
    )


def run_result(*findings: Finding, **changes: Any) -> RunResult:
    """Return a run with these findings that meets its expectations unless fields say otherwise."""
    fields: dict[str, Any] = {
        "plan": plan(expect=Expectation(verdict=verdict(*findings).status)),
        "seed": 0,
        "verdict": verdict(*findings),
        "expected": True,
        "missed": (),
        "evidence": evidence(),
        "faults": (
            InjectedFault(
                at_us=1_200_500, fault="broker_crash", details=(("broker", 1), ("restart_after", None))
            ),
        ),
        "probes": {"truncated-below-hw": 1, "isr-shrank-to-one": 0},
        "events": 118,
        "simulated_us": 9_000_400,
        "wall_ms": 4,
        **changes,
    }
    return RunResult(**fields)


def failed_run(**changes: Any) -> RunResult:
    """Return a run that lost a record against its expectations."""
    missed = (
        MissedExpectation(line=0, message="verdict is violated, expected held"),
        MissedExpectation(line=42, message="m1 is not acked"),
    )
    fields: dict[str, Any] = {
        "plan": plan(expect=Expectation(verdict=HELD)),
        "expected": False,
        "missed": missed,
        **changes,
    }
    return run_result(lost_record("m1"), **fields)
