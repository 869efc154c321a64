"""A run keeps no memory except for its result."""

import gc
import weakref
from dataclasses import replace

import pytest

from harrow.campaigns.language.library_index import resolve
from harrow.campaigns.language.loader import load_campaign, load_text
from harrow.campaigns.run import runner
from harrow.campaigns.run.collector import collect_rarely
from harrow.campaigns.run.runner import run_plan
from harrow.checks.causes.story import Story
from harrow.checks.evidence import Evidence
from harrow.checks.finding import Verdict
from harrow.checks.history.records import PartitionHistory
from harrow.checks.history.version_order import VersionOrder
from harrow.checks.index import Index
from harrow.checks.judge import judge
from harrow.checks.replay.partition_state import PartitionState
from harrow.cluster_model.broker.broker import Broker
from harrow.cluster_model.broker.partition import Partition
from harrow.cluster_model.cluster import Cluster
from harrow.cluster_model.invariants.watched_replica import WatchedPartition
from harrow.cluster_model.kraft.metadata_log import MetadataSnapshot
from harrow.cluster_model.log.disk import LogFile
from harrow.cluster_model.packed_log import PackedLog
from harrow.cluster_model.zookeeper.service.data_tree import Znode

_CRASHES = """
name: crashes
kafka: "2.4"
cluster:
  brokers: 3
  topics: [{name: t, partitions: 1, replication_factor: 3}]
workload:
  duration: 20m
  producers: [{name: producer-0, rate: 1/s}]
faults:
  - rate: 6/m
    do: {broker_crash: {broker: any, restart_after: 1s..3s}}
"""


def _count(kind: type) -> int:
    return sum(isinstance(thing, kind) for thing in gc.get_objects())


def test_a_collection_of_young_objects_frees_the_clusters_of_finished_runs() -> None:
    plan = load_campaign(resolve("ack-lost")[0]).plans[0]
    gc.collect()
    before = _count(Cluster)
    results = [run_plan(plan, seed) for seed in range(3)]
    gc.collect(0)
    assert _count(Cluster) <= before
    assert len(results) == 3


@pytest.mark.parametrize("kafka", ["2.4", "4.0"])
def test_the_partitions_of_a_finished_run_are_freed_without_the_collector(kafka: str) -> None:
    quiet = _CRASHES.partition("faults:")[0].replace("20m", "10s").replace("2.4", kafka)
    plan = load_text(quiet, "quiet.yaml").plans[0]
    kinds = (Partition, LogFile, WatchedPartition, Znode, MetadataSnapshot, PartitionHistory, VersionOrder)
    gc.collect()
    before = [_count(kind) for kind in kinds]
    with runner.collector_off():
        assert run_plan(plan, 0).expected
        assert [_count(kind) for kind in kinds] == before


def test_a_command_does_not_scan_the_result_of_a_run() -> None:
    plan = load_campaign(resolve("ack-lost")[0]).plans[0]
    thresholds = gc.get_threshold()
    collect_rarely()
    try:
        gc.collect()
        collections = gc.get_stats()[0]["collections"]
        kept = run_plan(plan, 0)
        assert kept.events
        assert gc.get_stats()[0]["collections"] == collections
    finally:
        gc.unfreeze()
        gc.set_threshold(*thresholds)


@pytest.mark.parametrize("name", ["crashes", "standard-eos"])
def test_a_finished_run_frees_the_logs_of_brokers_that_died_without_the_collector(name: str) -> None:
    text = _CRASHES.replace("20m", "20s") if name == "crashes" else resolve(name)[0].read_text("utf-8")
    plan = load_text(text, f"{name}.yaml").plans[0]
    gc.collect()
    before = _count(Partition), _count(LogFile)
    with runner.collector_off():
        assert run_plan(plan, 0).expected
        assert (_count(Partition), _count(LogFile)) == before


def test_only_the_result_keeps_the_rows_of_its_trace_and_its_history() -> None:
    evidence = run_plan(load_campaign(resolve("ack-lost")[0]).plans[0], 0).evidence
    for log in (evidence.trace, evidence.operations):
        assert isinstance(log, PackedLog)
        assert gc.get_referrers(log.newest[-1]) == [log.newest]


def test_an_index_is_freed_without_the_collector() -> None:
    evidence = run_plan(load_campaign(resolve("standard-eos")[0]).plans[0], 0).evidence
    with runner.collector_off():
        index = Index(evidence)
        judge(evidence, index)
        alive = weakref.ref(index)
        del index
        assert alive() is None


@pytest.mark.parametrize(("name", "variant"), [("swarm", None), ("isolated-from-controllers", "acks-1")])
def test_a_result_keeps_no_index_if_its_chains_are_built(name: str, variant: str | None) -> None:
    (plan, *_) = (each for each in load_campaign(resolve(name)[0]).plans if each.variant == variant)
    kinds = (Index, Story, PartitionState)
    gc.collect()
    before = [_count(kind) for kind in kinds]
    with runner.collector_off():
        result = run_plan(plan, 0)
        assert any(finding.chain for rule in result.verdict.rules.values() for finding in rule.findings)
        assert [_count(kind) for kind in kinds] == before


def test_chains_that_nobody_reads_are_freed_without_the_collector() -> None:
    plan = load_campaign(resolve("swarm")[0]).plans[0]
    kinds = (Story, PartitionHistory, PartitionState)
    gc.collect()
    before = [_count(kind) for kind in kinds]
    with runner.collector_off():
        result = run_plan(plan, 0, chains_later=True)
        assert _count(Story) > before[0]
        del result
        assert [_count(kind) for kind in kinds] == before


def test_the_collector_stays_off_while_a_caller_keeps_it_off() -> None:
    plan = load_campaign(resolve("ack-lost")[0]).plans[0]
    with runner.collector_off():
        assert run_plan(plan, 0).expected
        assert not gc.isenabled()
    assert gc.isenabled()


def test_a_long_run_frees_the_objects_of_dead_brokers(monkeypatch: pytest.MonkeyPatch) -> None:
    plan = load_text(_CRASHES, "crashes.yaml").plans[0]
    alive: list[int] = []

    def counting(evidence: Evidence, index: Index) -> Verdict:
        alive.append(_count(Broker))
        return judge(evidence, index)

    monkeypatch.setattr(runner, "judge", counting)
    gc.collect()
    kept = run_plan(plan, 1)
    gc.collect()
    monkeypatch.setattr(runner, "_EVENTS_PER_COLLECTION", kept.events // 30)
    before = _count(Cluster)
    later = run_plan(plan, 1)
    assert _count(Cluster) <= before
    assert alive[1] < alive[0] // 2
    assert replace(later, evidence=kept.evidence) == kept
