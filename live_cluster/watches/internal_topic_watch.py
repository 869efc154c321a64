"""Follows an internal topic, which coordinators write to, in its own thread."""

from collections.abc import Mapping
from typing import Any, Final, Self

from harrow.cluster_model import errors, protocol
from harrow.live_cluster.names import SAME_NAMES, Names
from harrow.live_cluster.watches.activity import Activity
from harrow.live_cluster.watches.polling_thread import PollingThread
from harrow.live_cluster.wire.codec import fetched_batches
from harrow.live_cluster.wire.connection import BrokerConnection, ConnectionLostError
from harrow.live_cluster.wire.metadata import broker_metadata
from harrow.live_cluster.wire.stored_batches import next_offset

_BYTES: Final = 1 << 20


class InternalTopicWatch:
    """Reads a topic from its leaders up to the high watermarks.

    The watch closes its *connections*, one to each broker, at the end.
    """

    def __init__(
        self,
        topic: str,
        connections: Mapping[int, BrokerConnection],
        activity: Activity,
        names: Names = SAME_NAMES,
    ) -> None:
        self._topic = topic
        self._connections = connections
        self._names = names
        self._leaders: dict[str, int] = {}
        self._offsets: dict[str, int] = {}
        self._watch = PollingThread(f"watch {topic}", self._poll, activity)

    def __enter__(self) -> Self:
        self._watch.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._watch.close(self._connections.values())

    def _poll(self) -> None:
        if not self._read():
            self._find_leaders()
            self._read()

    def handle_batch(self, coordinator: int, partition: str, batch: Any) -> None:
        """Handle a batch that a coordinator has written, in the form that kafka-python decodes."""
        raise NotImplementedError

    def _find_leaders(self) -> None:
        """Find the leaders through any broker, once the topic exists."""
        for connection in self._connections.values():
            try:
                partitions = broker_metadata(connection, [self._topic], self._names).partitions
            except ConnectionLostError:
                continue
            self._leaders = {name: leader for name, (leader, _, _) in partitions.items()}
            for name in partitions:
                self._offsets.setdefault(name, 0)
            if partitions:
                return

    def _read(self) -> bool:
        """Read new batches; return whether all leaders answered."""
        by_leader: dict[int, list[str]] = {}
        for name, leader in self._leaders.items():
            by_leader.setdefault(leader, []).append(name)
        answered = [self._read_from_leader(leader, names) for leader, names in by_leader.items()]
        return bool(answered) and all(answered)

    def _read_from_leader(self, leader: int, partitions: list[str]) -> bool:
        connection = self._connections.get(leader)
        if connection is None:
            return False
        try:
            positions = {
                name: protocol.PartitionData(self._offsets[name], protocol.NO_EPOCH) for name in partitions
            }
            fetch = protocol.FetchRequest(protocol.CONSUMER_REPLICA_ID, 0, _BYTES, positions)
            answer = fetched_batches(connection, fetch)
        except ConnectionLostError:
            return False
        for name, (_, batches) in answer.items():
            for batch in batches if name in self._offsets else ():
                # The first batch may begin before the requested offset, as brokers return whole
                # batches.
                if next_offset(batch) > self._offsets[name]:
                    self._offsets[name] = next_offset(batch)
                    self.handle_batch(leader, name, batch)
        return all(error == errors.NONE for error, _ in answer.values())
