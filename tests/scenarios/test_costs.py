"""Flushes, bytes and replicas cost time: the order of ack latencies by settings."""

from typing import Any

import pytest

from harrow.campaigns.language.loader import load_text
from harrow.campaigns.record.report import run_as_mapping
from harrow.campaigns.run.run_result import RunResult
from harrow.campaigns.run.runner import run_plan
from harrow.cluster_model.events import BatchAppended
from harrow.cluster_model.trace import select

NEVER = 2**63 - 1


def run(
    acks: str = "all", *, flush: int = NEVER, cluster: str = "", producer: str = "", rate: str = "50/s"
) -> RunResult:
    text = f"""
    kafka: 3.9
    settings: {{acks: {acks}, enable.idempotence: false, log.flush.interval.messages: {flush}}}
    cluster:
      brokers: 3
      topics: [{{name: t, replication_factor: 3}}]
      {cluster}
    workload: {{duration: 10s, producers: [{{rate: {rate}, record_bytes: 1000, settings: {{{producer}}}}}]}}
    """
    (plan,) = load_text(text, "costs.yaml").plans
    return run_plan(plan, 1)


def ack_ms(result: RunResult, percentile: str = "p50") -> float:
    service: Any = run_as_mapping(result, "harrow run")["service"]
    return float(service["ack_ms"][percentile])


def test_each_broker_that_must_have_a_record_adds_its_flush_to_the_ack() -> None:
    slow = "disk: {flush: 20ms}"
    for acks, flushes in (("0", 0), ("1", 1), ("all", 2)):
        free, flushed = (ack_ms(run(acks, flush=flush, cluster=slow, rate="5/s")) for flush in (NEVER, 1))
        assert flushed - free == pytest.approx(20 * flushes, abs=1), acks


def test_a_flush_of_every_tenth_record_costs_one_ack_in_ten() -> None:
    result = run("1", flush=10, cluster="disk: {flush: 20ms}")
    assert ack_ms(result, "p50") < 5
    assert ack_ms(result, "p99") > 20


def test_a_flush_costs_what_the_kind_of_disk_costs_and_never_nothing() -> None:
    free = ack_ms(run("1"))
    costs = {
        kind: ack_ms(run("1", flush=1, cluster=f"disk: {{kind: {kind}}}")) for kind in ("nvme", "ssd", "hdd")
    }
    assert free < costs["nvme"] < costs["ssd"] < costs["hdd"]
    assert ack_ms(run("1", flush=1)) == pytest.approx(costs["ssd"], abs=0.1)


def test_a_campaign_that_never_flushes_on_append_is_the_same_on_every_disk() -> None:
    digests = {run(cluster=f"disk: {{flush: {flush}}}").trace_digest for flush in ("0s", "2s")}
    assert len(digests) == 1


def test_records_that_come_faster_than_flushes_share_batches() -> None:
    result = run("1", flush=1, cluster="disk: {flush: 100ms}")
    assert 100 < ack_ms(result, "p99") < 1_000
    batches = [*select(result.evidence.trace, BatchAppended)]
    assert all(len(batch.values) > 1 for batch in batches[10:])


def test_records_that_exceed_the_disks_bandwidth_wait_once_the_page_cache_is_full() -> None:
    free, limited = (
        run("1", cluster=f"disk: {{write: 40KB/s, page_cache: {size}}}", rate="50/s")
        for size in (1_000_000, 1_000)
    )
    assert ack_ms(free, "max") < 5
    assert ack_ms(limited, "max") > 1_000


def test_a_network_makes_acks_of_all_replicas_wait_for_every_copy() -> None:
    wide, narrow = (
        {acks: ack_ms(run(acks, cluster=network)) for acks in ("1", "all")}
        for network in ("", "network: {bandwidth: 200KB/s}")
    )
    assert 4 < narrow["1"] - wide["1"] < narrow["all"] - wide["all"]
