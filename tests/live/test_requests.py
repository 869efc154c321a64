"""Real brokers perform an administrator's requests, and harrow observes the effects."""

from pathlib import Path

import pytest

from harrow.campaigns.language.loader import load_text
from harrow.checks.finding import PERMITTED
from harrow.cluster_model.events import DeleteRecordsAnswered, LogDeleted, LogStartRaised
from harrow.faults.actions import ReassignPartition
from harrow.live_cluster.local.started_brokers import StartedBrokers
from harrow.live_cluster.target.conformity import AGREED, compare_runs, run_on_model

REQUESTS = """
name: requests
kafka: "{release}"
settings: {{acks: all, min.insync.replicas: 2, retries: 1000}}
cluster: {{brokers: 4, controller: 3, topics: [{{name: t, assignment: [[0, 1, 2]]}}]}}
script:
  - at: 1s
    do: {{send: m0}}
  - when: {{acked: m0}}
    do: {{send: m1}}
  - when: {{acked: m1}}
    do: {{delete_records: {{partition: t-0, offset: 1}}}}
  - when:
      event: {{delete_records_answered: {{partition: t-0, error: NONE}}}}
      replicas: {{t-0: {{0: {{log: [m1]}}, 1: {{log: [m1]}}, 2: {{log: [m1]}}}}}}
    do: {{add_partitions: {{topic: t, partitions: 2}}}}
  - when: {{assignment: {{t-1: [1, 2, 3]}}, isr: {{t-1: [1, 2, 3]}}}}
    do: {{send: {{value: m2, partition: t-1}}}}
  - when: {{acked: m2}}
    do: {{reassign_partition: {{partition: t-1, replicas: [0, 2, 3]}}}}
  - when: {{assignment: {{t-1: [0, 2, 3]}}, isr: {{t-1: [0, 2, 3]}}, event: {{log_deleted: {{broker: 1, partition: t-1}}}}}}
    do: {{send: {{value: m3, partition: t-1}}}}
  - when: {{acked: m3}}
"""


def test_requests_of_administrators_have_the_same_outcome_as_in_the_model(
    brokers: StartedBrokers, tmp_path: Path
) -> None:
    release = brokers.release.model_release
    if not ReassignPartition.exists_in(release):
        pytest.skip("reassignments came with 2.4")
    (plan,) = load_text(REQUESTS.format(release=release), "requests.yaml").plans
    result = brokers.run(plan, 0, tmp_path)
    assert (result.verdict.status, result.verdict.reasons) == (PERMITTED, ())
    events = [event[1:] for event in result.evidence.trace]
    assert [event[4] for event in events if event[0] == DeleteRecordsAnswered.name] == ["NONE"]
    assert {event[1] for event in events if event[0] == LogStartRaised.name} == {0, 1, 2}
    assert (LogDeleted.name, 1, "t-1") in {event[:3] for event in events}
    comparison = compare_runs(plan, [result], (run_on_model(plan, seed) for seed in range(5)))
    assert (comparison.status, comparison.reasons) == (AGREED, ())
