"""The watch of metadata combines reports of brokers and controllers."""

import threading
from collections.abc import Mapping
from types import SimpleNamespace
from typing import Any, cast

import pytest

from harrow.live_cluster.broker_logs.broker_log import LoggedPartition
from harrow.live_cluster.names import Names
from harrow.live_cluster.watches import metadata_watch
from harrow.live_cluster.watches.activity import Activity
from harrow.live_cluster.watches.metadata_watch import MetadataWatch
from harrow.live_cluster.watches.observed_metadata import ObservedMetadata, ObservedPartition
from harrow.live_cluster.wire.connection import BrokerConnection
from harrow.live_cluster.wire.metadata import BrokerMetadata

NAMES = Names({0: 7, 1: 5}, {"t": "harrow-x-t"})


def metadata(leader: int, epoch: int, isr: tuple[int, ...]) -> BrokerMetadata:
    return BrokerMetadata(
        frozenset({0, 1}),
        {"t-0": (leader, epoch, isr), "u-0": (0, 0, (0,))},
        {},
        under_replicated=frozenset({"t-0"} if len(isr) < 2 else ()),
    )


def test_eligible_leaders_are_requested_with_the_names_on_the_cluster(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """KIP-966 on any KRaft cluster."""
    events: list[tuple[Any, ...]] = []
    requested: list[tuple[list[str], Names]] = []
    states = [metadata(0, 4, (0, 1)), metadata(0, 4, (0,)), metadata(1, 6, (1, 0))]
    newest: list[BrokerMetadata] = []
    was_taken = threading.Event()

    def broker_metadata(_: BrokerConnection, topics: Any, names: Names) -> BrokerMetadata:
        assert (tuple(topics), names) == (("t", "u"), NAMES)
        if states:
            newest.append(states.pop(0))
        else:
            # The watch has processed the previous report by now.
            was_taken.set()
        return newest[-1]

    def eligible_leaders(_: BrokerConnection, topics: list[str], names: Names) -> Mapping[str, Any]:
        requested.append((topics, names))
        return {"t-0": (1,)}

    monkeypatch.setattr(metadata_watch, "broker_metadata", broker_metadata)
    monkeypatch.setattr(metadata_watch, "eligible_leaders", eligible_leaders)
    observed = ObservedMetadata(lambda kind, *fields: events.append((kind.name, *fields)))
    watch = MetadataWatch(observed, ["t", "u"], Activity(), NAMES)
    watch.start({0: cast("Any", SimpleNamespace(close=lambda: None))}, lambda _: True)
    assert was_taken.wait(60)
    watch.close()
    assert requested == [(["t"], NAMES)]
    assert ("election", -1, "t-0", 1, 6, (1, 0), False, "") in events


def test_the_controller_log_is_used_without_running_brokers() -> None:
    events: list[tuple[Any, ...]] = []
    was_requested = threading.Event()

    def logged_partitions() -> Mapping[str, LoggedPartition]:
        if ("isr_reduced", -1, "t-0", -1, 3, ()) in events:
            was_requested.set()
        return {"t-0": LoggedPartition(-1, 3, (), (1,)), "other-0": LoggedPartition(0, 0, (0,), ())}

    observed = ObservedMetadata(
        lambda kind, *fields: events.append((kind.name, *fields)), logged_partitions=logged_partitions
    )
    observed.set_partition("t-0", ObservedPartition(0, 2, (0,)))
    watch = MetadataWatch(observed, ["t"], Activity())
    watch.start({0: cast("Any", SimpleNamespace(close=lambda: None))}, lambda _: False)
    assert was_requested.wait(60)
    watch.close()
    assert (observed.partition_state("t-0"), observed.electable("t-0")) == (
        ObservedPartition(-1, 3, ()),
        (1,),
    )
    assert observed.partition_state("other-0") is None


def test_an_older_state_in_the_controller_log_is_ignored() -> None:
    observed = ObservedMetadata(
        lambda *_: None, logged_partitions=lambda: {"t-0": LoggedPartition(-1, 3, (), ())}
    )
    observed.set_partition("t-0", ObservedPartition(0, 4, (0,)))
    observed.update_from_log()
    assert observed.partition_state("t-0") == ObservedPartition(0, 4, (0,))
