"""What coordinators write to an internal topic, read from its leaders by a thread of its own."""

from collections.abc import Mapping
from typing import Any, Final, Self

from harrow.cluster_model import errors, protocol
from harrow.live_cluster.names import SAME, Names
from harrow.live_cluster.watches.activity import Activity
from harrow.live_cluster.watches.repeated_look import RepeatedLook
from harrow.live_cluster.wire.codec import fetched_batches
from harrow.live_cluster.wire.connection import BrokerConnection, ConnectionLostError
from harrow.live_cluster.wire.metadata import broker_metadata
from harrow.live_cluster.wire.stored_batches import next_offset

_BYTES: Final = 1 << 20


class InternalTopicWatch:
    """Follows a topic at its leaders, up to what all of their replicas have.

    The connections, one to each broker, are the watch's own, and end with it.
    """

    def __init__(
        self,
        topic: str,
        connections: Mapping[int, BrokerConnection],
        activity: Activity,
        names: Names = SAME,
    ) -> None:
        self._topic = topic
        self._connections = connections
        self._names = names
        self._leaders: dict[str, int] = {}
        self._offsets: dict[str, int] = {}
        self._watch = RepeatedLook(f"watch {topic}", self._look, activity)

    def __enter__(self) -> Self:
        self._watch.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._watch.close(self._connections.values())

    def _look(self) -> None:
        if not self._read():
            self._find_leaders()
            self._read()

    def take(self, coordinator: int, partition: str, batch: Any) -> None:
        """Take note of a batch of kafka-python, which a coordinator's log has got."""
        raise NotImplementedError

    def _find_leaders(self) -> None:
        """Ask any broker who leads, until the topic is there."""
        for connection in self._connections.values():
            try:
                found = broker_metadata(connection, [self._topic], self._names).partitions
            except ConnectionLostError:
                continue
            self._leaders = {name: leader for name, (leader, _, _) in found.items()}
            for name in found:
                self._offsets.setdefault(name, 0)
            if found:
                return

    def _read(self) -> bool:
        """Read what is new; return whether all leaders were there."""
        by_leader: dict[int, list[str]] = {}
        for name, leader in self._leaders.items():
            by_leader.setdefault(leader, []).append(name)
        answered = [self._read_of(leader, names) for leader, names in by_leader.items()]
        return bool(answered) and all(answered)

    def _read_of(self, leader: int, partitions: list[str]) -> bool:
        connection = self._connections.get(leader)
        if connection is None:
            return False
        try:
            places = {name: (self._offsets[name], protocol.NO_EPOCH) for name in partitions}
            fetch = protocol.FetchRequest(protocol.CONSUMER_REPLICA_ID, 0, _BYTES, places)
            answer = fetched_batches(connection, fetch)
        except ConnectionLostError:
            return False
        for name, (_, batches) in answer.items():
            for batch in batches if name in self._offsets else ():
                # A batch comes whole, also where it begins before what was asked for.
                if next_offset(batch) > self._offsets[name]:
                    self._offsets[name] = next_offset(batch)
                    self.take(leader, name, batch)
        return all(error == errors.NONE for error, _ in answer.values())
