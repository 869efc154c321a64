"""Faults of links affect all traffic: no process of harrow bypasses a proxy."""

import os
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import pytest

from harrow.campaigns.language.loader import load_text
from harrow.cluster_model.events import ControllerElected
from harrow.live_cluster.local.started_brokers import StartedBrokers
from harrow.live_cluster.releases.kafka_release import KRAFT
from tests.live.sockets import command_of, connections_among, count_connections, descendants

_POLL_INTERVAL_S: Final = 0.1

# After a cut or without an answer a process tries another route; Kafka 4.3 does after two seconds.
DISTURBED: Final = """
name: disturbed
kafka: "{release}"
settings: {{acks: all, min.insync.replicas: 2, retries: 1000, auto.leader.rebalance.enable: false}}
cluster: {{brokers: 3, topics: [{{name: t, assignment: [[1, 0, 2]]}}]}}
script:
  - at: 1s
    do: {{send: m0}}
  - when: {{acked: m0}}
    do: {{broker_isolation: {{broker: 1, from: zookeeper, duration: 25s}}}}
  - note: the others have elected broker 0, and broker 1 does not hear of it
    when: {{leader: {{t-0: 0}}, event: {{leader: {{broker: 0}}}}}}
  - after: 4s
    do: {{expect: {{replicas: {{t-0: {{1: {{role: leader, leader_epoch: 0}}}}}}}}}}
  - note: the cut is over
    when: {{event: {{follower: {{broker: 1, leader: 0}}}}}}
    do:
      - link_slow: {{between: [0], and: [zookeeper], latency: 200ms, duration: 3s}}
      - broker_isolation: {{broker: 2, duration: 3s}}
  - after: 4s
{quorum}  - do: {{send: m1}}
  - when: {{acked: m1}}
"""
OF_QUORUM: Final = """\
    do:
      - message: {action: hold, api: Fetch, kind: response, from: quorum, to: 2, id: news}
      - partition: {between: leader of quorum, and: followers of quorum, duration: 6s}
  - when: {event: {controller_elected: {}}}
  - after: 6s
    do: {release: {id: news}}
"""


@pytest.mark.skipif(sys.platform != "linux", reason="/proc tells whose sockets there are")
def test_no_process_of_harrow_bypasses_a_proxy(brokers: StartedBrokers, tmp_path: Path) -> None:
    quorum = OF_QUORUM if brokers.metadata == KRAFT else ""
    text = DISTURBED.format(release=brokers.release.model_release, quorum=quorum)
    (plan,) = load_text(text, "disturbed.yaml").plans
    with watched_sockets() as watched:
        result = brokers.run(plan, 0, tmp_path)
    assert watched.past == {}
    assert watched.most >= 2 * len(plan.cluster.brokers), "it has looked at the wrong processes"
    assert (result.verdict.reasons, result.missed, result.unseen) == ((), (), ())
    if quorum:
        elected = [event for event in result.evidence.trace if event[1] == ControllerElected.name]
        assert len(elected) > 1


class WatchedSockets:
    """The observed connections ``past`` the proxies, and ``most``, the peak of all connections."""

    def __init__(self) -> None:
        self.past: dict[str, str] = {}
        self.most = 0

    def look(self) -> None:
        """Inspect the sockets of all children of this process."""
        started = descendants(os.getpid())
        self.most = max(self.most, count_connections(started))
        for connection in connections_among(started):
            self.past.setdefault(
                f"{command_of(connection.one)} (port {connection.one_port})",
                f"{command_of(connection.other)} (port {connection.other_port})",
            )


@contextmanager
def watched_sockets() -> Iterator[WatchedSockets]:
    """Inspect the sockets of all processes of this context repeatedly, in a separate thread."""
    watched, over = WatchedSockets(), threading.Event()

    def repeat() -> None:
        while not over.wait(_POLL_INTERVAL_S):
            watched.look()

    thread = threading.Thread(target=repeat, name="sockets")
    thread.start()
    try:
        yield watched
    finally:
        over.set()
        thread.join()
