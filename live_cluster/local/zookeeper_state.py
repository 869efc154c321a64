"""What the ZooKeeper of a real cluster says: the controller, who is registered, leaders and ISRs."""

import contextlib
import json
import logging
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final, TypeVar

from kazoo.client import KazooClient
from kazoo.exceptions import KazooException, NodeExistsError, NoNodeError
from kazoo.handlers.threading import KazooTimeoutError
from kazoo.recipe.watchers import ChildrenWatch, DataWatch

from harrow.cluster_model.zookeeper.service import protocol as zk
from harrow.live_cluster.errors import LiveError
from harrow.live_cluster.watches.metadata_seen import MetadataSeen, SeenPartition
from harrow.live_cluster.wire.administration import Assignment

T = TypeVar("T")

_START_S: Final = 60.0
_NO_EPOCH: Final = -1
_NOWHERE: Final = ("127.0.0.1", 1)
"""An address whose port is not given away (tcpmux), so that connections to it are refused at once."""

_SILENT = logging.getLogger("harrow.zookeeper")
_SILENT.addHandler(logging.NullHandler())
_SILENT.propagate = False


class ZooKeeperError(LiveError):
    """ZooKeeper does not answer."""


class ControllerTermsSeen:
    """Who is controller, of which epoch, as two znodes have it.

    Up to 2.1 a broker writes that it is controller before it raises the epoch; both are one transaction since (KAFKA-6082). So a controller
    with the epoch of the one before it is none yet. The two are read one after the other, so that where there is no controller
    the epoch may be that of the one that comes.
    """

    def __init__(self, set_controller: Callable[[int | None, int], None]) -> None:
        self._set_controller = set_controller
        self._controller: int | None = None
        self._epoch = _NO_EPOCH

    def look(self, controller: int | None, epoch: int) -> None:
        """Tell of a term that has begun, or of one that is over."""
        is_another = controller not in (None, self._controller)
        if is_another and epoch <= self._epoch:
            return
        self._controller = controller
        if controller is not None:
            self._epoch = epoch
        self._set_controller(controller, epoch)


def assignments_in(topic: str, znode: Mapping[str, Any]) -> dict[str, Assignment]:
    """Return the assignments of a topic's partitions, as its znode has them; reassignments stand there from 2.4 on (KIP-455)."""
    adding, removing = (znode.get(name, {}) for name in ("adding_replicas", "removing_replicas"))
    return {
        f"{topic}-{number}": Assignment(
            tuple(replicas), tuple(adding.get(number, ())), tuple(removing.get(number, ()))
        )
        for number, replicas in sorted(znode["partitions"].items(), key=lambda pair: int(pair[0]))
    }


class ZooKeeperState:
    """A session of harrow's own, which looks at what brokers and controllers have written."""

    def __init__(self, address: str, timeout_s: float = 10.0) -> None:
        self._address = address
        self._timeout_s = timeout_s
        # Until the start has taken too long, one attempt follows the other.
        self._client = KazooClient(
            hosts=address,
            timeout=timeout_s,
            logger=_SILENT,
            connection_retry={"max_tries": -1, "max_delay": 1},
            command_retry={"max_tries": 5, "max_delay": 1},
        )

    def start(self) -> None:
        """Connect.

        Raises:
            ZooKeeperError: it does not answer.

        """
        self._asked(lambda: self._client.start(timeout=_START_S))

    def close(self) -> None:
        self._client.stop()
        self._client.close()

    def watch(self, topics: Iterable[str], seen: MetadataSeen) -> None:
        """Have *seen* told what is so now, and of each change."""
        client = self._client

        terms = ControllerTermsSeen(seen.set_controller)

        def has_changed(*_: object) -> None:
            # Of both the one that is there now: what the change was may be over.
            told, epoch = self._read(zk.CONTROLLER), self._read(zk.CONTROLLER_EPOCH)
            controller = None if told is None else int(told["brokerid"])
            terms.look(controller, _NO_EPOCH if epoch is None else int(epoch))

        def brokers_are(children: list[str]) -> None:
            brokers = list(map(int, children))
            stats = {broker: client.exists(f"{zk.BROKER_IDS}/{broker}") for broker in brokers}
            seen.set_registered(brokers, {broker: stat.czxid for broker, stat in stats.items() if stat})

        # No children are watched of what is not there; brokers make it where it is missing.
        client.ensure_path(zk.BROKER_IDS)
        DataWatch(client, zk.CONTROLLER, has_changed)
        DataWatch(client, zk.CONTROLLER_EPOCH, has_changed)
        ChildrenWatch(client, zk.BROKER_IDS, brokers_are)
        for topic in topics:
            self._watch_topic(topic, seen)

    def _watch_topic(self, topic: str, seen: MetadataSeen) -> None:
        watched: set[str] = set()

        def assignment_is(data: bytes | None, _: Any) -> None:
            if data is None:
                return
            for partition, assignment in assignments_in(topic, json.loads(data)).items():
                seen.assignments.take(partition, assignment)
                if partition not in watched:
                    watched.add(partition)
                    self._watch_partition(partition, seen)

        DataWatch(self._client, zk.topic_path(topic), assignment_is)

    def _watch_partition(self, partition: str, seen: MetadataSeen) -> None:
        def state_is(data: bytes | None, _: Any) -> None:
            if data is not None:
                found = json.loads(data)
                state = SeenPartition(found["leader"], found["leader_epoch"], tuple(found["isr"]))
                seen.set_partition(partition, state)

        DataWatch(self._client, zk.state_path(partition), state_is)

    def end_session(self, session: int, password: bytes) -> None:
        """End another client's session: any client that knows its password may take part in it, and close it."""
        client = KazooClient(hosts=self._address, client_id=(session, password), logger=_SILENT)
        self._asked(lambda: client.start(timeout=_START_S))
        client.stop()
        client.close()

    def ask_for_preferred_leaders(self, partitions: Iterable[str]) -> None:
        """Ask the controller to have the first replica of each partition lead, as ``kafka-preferred-replica-election`` does."""
        asked = [
            {"topic": topic, "partition": int(number)}
            for topic, _, number in (partition.rpartition("-") for partition in partitions)
        ]
        data = json.dumps({"version": 1, "partitions": asked}).encode()
        with contextlib.suppress(NodeExistsError):  # One is under way.
            self._asked(lambda: self._client.create(zk.PREFERRED_REPLICA_ELECTION, data))

    def has_no_preferred_election(self) -> bool:
        """Return whether the controller has done what it was asked for with preferred leaders."""
        return self._asked(lambda: self._client.exists(zk.PREFERRED_REPLICA_ELECTION)) is None

    def register_beside(self, broker: int, other: int) -> None:
        """Register another broker as one is, at an address where nothing listens; it is gone when this session is."""
        data, _ = self._asked(lambda: self._client.get(zk.broker_path(broker)))
        registration = json.loads(data)
        nowhere = {"host": _NOWHERE[0], "port": _NOWHERE[1]}
        endpoints = [f"PLAINTEXT://{_NOWHERE[0]}:{_NOWHERE[1]}"]
        made = json.dumps({**registration, **nowhere, "endpoints": endpoints}).encode()
        self._asked(lambda: self._client.create(zk.broker_path(other), made, ephemeral=True))

    def unregister(self, broker: int) -> None:
        """Take a registration away; its owner need not be asked."""
        self._asked(lambda: self._client.delete(zk.broker_path(broker)))

    def partition_state(self, partition: str) -> SeenPartition | None:
        """Return what a partition's state znode has, None while there is none."""
        found = self._read(zk.state_path(partition))
        if found is None:
            return None
        return SeenPartition(found["leader"], found["leader_epoch"], tuple(found["isr"]))

    def delete_controller(self) -> None:
        """Delete ``/controller``, if there is one."""
        try:
            self._asked(lambda: self._client.delete(zk.CONTROLLER))
        except NoNodeError:
            return

    def _read(self, path: str) -> Any:
        try:
            # What a watch does not learn because its connection is lost just then, it is not told again.
            data, _ = self._asked(lambda: self._client.retry(self._client.get, path))
        except NoNodeError:
            return None
        return json.loads(data)

    def _asked(self, ask: Callable[[], T]) -> T:
        try:
            return ask()
        except (NoNodeError, NodeExistsError):
            raise
        except (KazooException, KazooTimeoutError) as error:
            raise ZooKeeperError(f"ZooKeeper at {self._address} does not answer: {error!r}") from error
