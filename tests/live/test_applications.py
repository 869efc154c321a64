"""Applications on real brokers write as often as promised if they are killed at a step."""

from pathlib import Path

import pytest

from harrow.campaigns.language.loader import load_text
from harrow.checks.finding import HELD, PERMITTED
from harrow.cluster_model.events import ClientStopped
from harrow.cluster_model.history import origin_of
from harrow.live_cluster.local.started_brokers import StartedBrokers
from harrow.live_cluster.target.conformity import AGREED, compare_runs, run_on_model

# The last step waits for the restart, because on real brokers a commit during the previous step
# would count for it.
APPLICATIONS = """
name: applications
kafka: "{release}"
settings:
  acks: all
  min.insync.replicas: 2
  retries: 1000
  auto.offset.reset: earliest
  isolation.level: read_committed
  offsets.topic.num.partitions: 1
  transaction.state.log.num.partitions: 1
  session.timeout.ms: 6s
cluster:
  brokers: 3
  topics: [{{name: t, replication_factor: 3}}, {{name: once, replication_factor: 3}}, {{name: again, replication_factor: 3}}]
workload:
  producers: [{{name: p, settings: {{linger.ms: 50ms}}}}]
  applications:
    - {{name: exact, from: t, to: once}}
    - {{name: repeating, from: t, to: again, delivery: at_least_once}}
script:
  - at: 4s
    do: [{{application_crash: {{client: repeating, step: commit, restart_after: 1s}}}}, {{send: {{value: a, count: 2, partition: t-0}}}}]
  - when: {{event: [{{client_stopped: {{client: repeating}}}}, {{offsets_committed: {{group: repeating}}}}]}}
    do: [{{application_crash: {{client: exact, step: commit, restart_after: 1s}}}}, {{send: {{value: b, count: 2, partition: t-0}}}}]
  - when: {{event: [{{client_stopped: {{client: exact}}}}, {{offsets_committed: {{group: exact}}}}]}}
    after: 4s
"""


def test_an_application_killed_before_its_commit_repeats_work_only_without_transactions(
    brokers: StartedBrokers, tmp_path: Path
) -> None:
    release = brokers.release.model_release
    if release == "0.10.2":
        pytest.skip("transactions came with 0.11")
    (plan,) = load_text(APPLICATIONS.format(release=release), "applications.yaml").plans
    result = brokers.run(plan, 0, tmp_path)
    rules = result.verdict.rules
    assert (result.verdict.status, result.verdict.reasons) == (PERMITTED, ())
    assert (rules["lost-effect"].status, rules["doubled-effect"].status) == (HELD, PERMITTED)
    # The doubled records are the uncommitted ones of the application without transactions.
    doubled = sorted(str(finding.value) for finding in rules["doubled-effect"].findings)
    assert doubled == ["a-0", "a-1"]
    stopped = [event[2] for event in result.evidence.trace if event[1] == ClientStopped.name]
    assert stopped == ["repeating", "exact"]
    log = next(iter(result.evidence.replicas["again-0"].values()))
    assert [origin_of(str(value)) for value in log.values()] == ["a-0", "a-1", "a-0", "a-1", "b-0", "b-1"]
    comparison = compare_runs(
        plan, [result], (run_on_model(brokers.modelled_plan(plan), seed) for seed in range(5))
    )
    assert (comparison.status, comparison.reasons) == (AGREED, ())
