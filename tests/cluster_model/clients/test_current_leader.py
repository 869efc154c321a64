"""Since 3.7 a refusal names the current leader, and the client goes there at once (KIP-951)."""

import pytest

from harrow.campaigns.language.loader import load_text
from harrow.campaigns.run.runner import run_plan
from harrow.cluster_model import errors
from harrow.cluster_model.events import RequestRejected, SendFailed, SentAgain
from harrow.cluster_model.protocol import ProduceResponse
from harrow.cluster_model.trace import select
from tests.cluster_model.clients.test_producer import App, P
from tests.cluster_model.fakes import MS

REFUSALS = (errors.NOT_LEADER_FOR_PARTITION, errors.FENCED_LEADER_EPOCH)


def refuse(app: App, error: str, current_leader: tuple[int, int]) -> None:
    app.ready = False  # No other answer names the leader.
    sent = app.host.take("Produce")
    sent.answer(ProduceResponse({P: (error, -1)}, {P: current_leader}))


@pytest.mark.parametrize("error", REFUSALS)
def test_a_batch_goes_to_the_new_leader_without_a_backoff(error: str) -> None:
    app = App("3.9", enable_idempotence=False)
    app.send("a")
    app.pause(5 * MS)
    former = app.host.requests("Produce")[0].connection
    refuse(app, error, (1, app.epoch + 1))
    (sent,) = app.host.requests("Produce")
    assert sent.connection is not former


@pytest.mark.parametrize("epoch", [0, -1])
def test_a_client_ignores_a_leader_with_an_older_epoch(epoch: int) -> None:
    app = App("3.9", enable_idempotence=False)
    app.send("a")
    app.pause(5 * MS)
    refuse(app, errors.NOT_LEADER_FOR_PARTITION, (1, app.epoch + epoch))
    assert app.in_flight() == []


MOVED = """
name: moved
kafka: "{release}"
settings: {{acks: all, enable.idempotence: true}}
cluster: {{brokers: 3, topics: [{{name: t, assignment: [[0, 1, 2]]}}]}}
workload: {{duration: 10s, producers: [{{name: p, rate: 100/s}}], consumers: [{{}}]}}
script:
  - at: 3s
    do: {{reassign_partition: {{partition: t-0, replicas: [1, 0, 2]}}}}
  - after: 1s
    do: elect_preferred_leaders
  - when: {{leader: {{t-0: 1}}}}
expect: {{verdict: held}}
"""


@pytest.mark.parametrize(("release", "is_named"), [("3.6", False), ("3.9", True)])
def test_since_3_7_a_refusal_names_the_new_leader(release: str, is_named: bool) -> None:
    (plan,) = load_text(MOVED.format(release=release), "moved.yaml").plans
    result = run_plan(plan, 0)
    assert result.expected
    trace = result.evidence.trace
    assert any(rejected.sender.startswith("consumer") for rejected in select(trace, RequestRejected))
    failures = {event.values: event.at_us for event in select(trace, SendFailed)}
    assert failures
    waits = [event.at_us - failures[event.values] for event in select(trace, SentAgain)]
    assert all(wait < 2 * MS for wait in waits) == is_named
