"""The cost of a campaign is estimated before it runs; too much is refused at its position."""

import tracemalloc
from dataclasses import replace

import pytest

from harrow.campaigns.language.loader import load_text
from harrow.campaigns.language.plan import Plan
from harrow.campaigns.language.plan_cost import memory_bytes
from harrow.campaigns.language.problem import CampaignError
from harrow.campaigns.run.runner import CostlyPlan, run_plan

FAULTS = "workload: {duration: 10s}\nfaults:\n  - at: 1s\n"
LIMITED = "limits: {faults: 30}\n"


def plan_of(text: str) -> Plan:
    (plan,) = load_text(text, "c.yaml").plans
    return plan


def reported_problems(text: str) -> list[tuple[int, int, str]]:
    with pytest.raises(CampaignError) as caught:
        load_text(text, "c.yaml")
    return [(problem.line, problem.column, problem.message) for problem in caught.value.problems]


@pytest.mark.parametrize(
    ("text", "place", "most"),
    [
        (
            "cluster:\n  brokers: 100\n  topics:\n    - {name: t, partitions: 10000, replication_factor: 100}\n",
            (4, 7),
            "10000 partitions of t with 100 replicas each",
        ),
        (
            "cluster: {topics: [{name: t, partitions: 10000}]}\n"
             "workload:\n  duration: 1s\n  producers: ["
            + "{rate: 1/s}, " * 100
            + "]\n",
            (4, 14),
            "100 clients that know 10000 partitions",
        ),
        (
            "swarm:\n  actions:\n    count: 0..1000000000\n    any_of: [{wait: {}}]\nworkload: {duration: 1s}\n",
            (3, 12),
            "1000000000 actions",
        ),
        (
            "cluster: {topics: [{name: t}]}\nswarm:\n  partitions: 1..10000\n  brokers: 3..100\n  replication_factor: 1..100\n",
            (1, 20),
            "10000 partitions of t with 100 replicas each",
        ),
        (
            ("cluster: {brokers: 100, topics: [{name: t, replication_factor: 100}]}\nscript:\n  - do:\n"
            "      add_partitions: {topic: t, partitions: 10000}\n"),
            (1, 34),
            "10000 partitions of t with 100 replicas each",
        ),
    ],
)  # fmt: skip
def test_a_plan_that_needs_too_much_memory_is_refused_at_its_position_before_it_is_built(
    text: str, place: tuple[int, int], most: str
) -> None:
    tracemalloc.start()
    ((line, column, message),) = reported_problems(text)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert (line, column) == place
    assert f"most of it for {most}, and may take 1.0 GiB; `limits.memory` raises that" in message
    assert peak < 50_000_000


def test_too_many_records_of_a_script_are_refused_before_they_are_expanded() -> None:
    text = "workload: {producers: [{}]}\nscript:\n" + "  - do: [{send: {value: v, count: 10000}}]\n" * 200
    tracemalloc.start()
    assert reported_problems(f"limits: {{memory: 100}}\n{text}") == [
        (9, 17, "a script may send 52428 records in all; `limits.memory` raises that")
    ]
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 60_000_000


def test_a_campaign_may_raise_the_memory_limit() -> None:
    large = "cluster: {brokers: 100, topics: [{name: t, partitions: 1000, replication_factor: 100}]}\n"
    assert reported_problems(large)
    assert memory_bytes(plan_of(large + "limits: {memory: 4096}\n")) > 2 << 30


def test_a_plan_built_in_python_has_to_respect_its_limits() -> None:
    plan = plan_of(f"cluster: {{topics: [{{name: t}}]}}\n{FAULTS}    do: {{broker_pause: {{broker: any}}}}\n")
    (topic,), (fault,) = plan.cluster.topics, plan.faults
    large = replace(plan, cluster=replace(plan.cluster, topics=(replace(topic, partitions=10_000_000),)))
    with pytest.raises(CostlyPlan, match=r"10000000 partitions of t .*`limits.memory` raises that"):
        run_plan(large, 0)
    with pytest.raises(CostlyPlan, match=r"1000000 faults may strike at once.*`limits.faults` raises that"):
        run_plan(replace(plan, faults=(replace(fault, together=1_000_000),)), 0)


@pytest.mark.parametrize(
    "text",
    [
        "cluster: {brokers: 100, topics: [{name: t, partitions: 10000}]}\n",
        "cluster: {brokers: 50, topics: [{name: t, partitions: 500, replication_factor: 50}]}\n",
        "cluster: {topics: [{name: t, partitions: 500}]}\nworkload:\n  duration: 24h\n  producers: ["
        + "{rate: 1/s}, " * 100
        + "]\n  consumers: ["
        + "{}, " * 100
        + "]\n",
        (
            "workload: {duration: 24h, producers: [{rate: 1000/s}]}\n"
            "faults: [{rate: 1/s, together: 3, any_of: [{broker_pause: {broker: any}}]}]\n"
        ),
    ],
)
def test_large_clusters_many_clients_and_long_runs_are_allowed(text: str) -> None:
    assert memory_bytes(plan_of(text)) < 1 << 30


@pytest.mark.parametrize(
    ("entry", "at_once"),
    [
        ("together: 1000000000\n    any_of: [{broker_pause: {broker: 0}}]\n", 1_000_000_000),
        ("repeat: 1000000000\n    any_of: [{broker_pause: {broker: 0}}]\n", 1_000_000_000),
        (
            "repeat: 200000\n    serial: [{broker_pause: {broker: 0}}, {broker_resume: {broker: 0}}]\n",
            400_000,
        ),
    ],
)
def test_more_simultaneous_faults_than_the_limit_are_refused(entry: str, at_once: int) -> None:
    assert reported_problems(f"{FAULTS}    {entry}") == [
        (4, entry.index(":") + 7, f"{at_once} faults may strike at once, and a run may have 200000; `limits.faults` raises that")
    ]  # fmt: skip


@pytest.mark.parametrize(
    "entry",
    [
        (
            "    together: 20\n    any_of: [{broker_pause: {broker: 0, duration: 1ms}}]\n  - at: 1s\n"
            "    together: 20\n    any_of: [{broker_pause: {broker: 1, duration: 1ms}}]\n"
        ),
        # A fault that finds nothing to strike takes time too.
        "    repeat: 20\n    any_of: [{broker_resume: {broker: 0}}]\n  - at: 2s\n    repeat: 20\n    any_of: [{broker_resume: {broker: 0}}]\n",
    ],
)
def test_a_run_is_given_up_when_its_limit_of_faults_is_exceeded(entry: str) -> None:
    result = run_plan(plan_of(FAULTS + entry + LIMITED), 0)
    assert result.given_up == "the run was given up after more than 30 faults"
    assert len(result.faults) <= 30


def test_repeated_faults_are_not_expanded() -> None:
    plan = plan_of(
        f"{FAULTS}    repeat: 900000\n    pause: 1h\n    any_of: [{{broker_pause: {{broker: 0}}}}]\nlimits: {{faults: 1000000}}\n"
    )
    tracemalloc.start()
    run_plan(plan, 0)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 8 * 900_000


def test_a_run_that_is_given_up_before_its_cluster_is_ready_has_no_duration() -> None:
    assert run_plan(plan_of("workload: {duration: 1s}\nlimits: {events: 3}\n"), 0).simulated_us == 0
