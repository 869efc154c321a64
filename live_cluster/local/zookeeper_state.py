"""Observes the state in a real cluster's ZooKeeper: controller, registrations, leaders and ISRs."""

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
from harrow.live_cluster.watches.observed_metadata import ObservedMetadata, ObservedPartition
from harrow.live_cluster.wire.administration import Assignment

T = TypeVar("T")

_START_S: Final = 60.0
_NO_EPOCH: Final = -1
_NOWHERE: Final = ("127.0.0.1", 1)
"""An address whose port is reserved (tcpmux), so that connections to it are refused at once."""

_SILENT = logging.getLogger("harrow.zookeeper")
_SILENT.addHandler(logging.NullHandler())
_SILENT.propagate = False


class ZooKeeperError(LiveError):
    """ZooKeeper does not answer."""


class ObservedControllerTerms:
    """Combines the controller and its epoch, which are in two znodes.

    Up to 2.1 a broker registers as controller before it raises the epoch; since 2.2 both are one
    transaction (KAFKA-6082). So a controller that still has its predecessor's epoch does not count.
    harrow reads the two znodes one after the other, so if it finds no controller, the epoch may
    already be that of the next one.
    """

    def __init__(self, set_controller: Callable[[int | None, int], None]) -> None:
        self._set_controller = set_controller
        self._controller: int | None = None
        self._epoch = _NO_EPOCH

    def update(self, controller: int | None, epoch: int) -> None:
        """Report the beginning or the end of a term."""
        is_new = controller not in (None, self._controller)
        if is_new and epoch <= self._epoch:
            return
        self._controller = controller
        if controller is not None:
            self._epoch = epoch
        self._set_controller(controller, epoch)


def assignments_in(topic: str, znode: Mapping[str, Any]) -> dict[str, Assignment]:
    """Return the assignments in the znode of a topic, since 2.4 with reassignments (KIP-455)."""
    adding, removing = (znode.get(name, {}) for name in ("adding_replicas", "removing_replicas"))
    return {
        f"{topic}-{number}": Assignment(
            tuple(replicas), tuple(adding.get(number, ())), tuple(removing.get(number, ()))
        )
        for number, replicas in sorted(znode["partitions"].items(), key=lambda pair: int(pair[0]))
    }


class ZooKeeperState:
    """Reads, watches and changes znodes, in harrow's own session with ZooKeeper."""

    def __init__(self, address: str, timeout_s: float = 10.0) -> None:
        self._address = address
        self._timeout_s = timeout_s
        # Retry without a limit on the number: the timeout of the start is the limit.
        self._client = KazooClient(
            hosts=address,
            timeout=timeout_s,
            logger=_SILENT,
            connection_retry={"max_tries": -1, "max_delay": 1},
            command_retry={"max_tries": 5, "max_delay": 1},
        )

    def start(self) -> None:
        """Connect; raise `ZooKeeperError` if there is no answer."""
        self._ask(lambda: self._client.start(timeout=_START_S))

    def close(self) -> None:
        self._client.stop()
        self._client.close()

    def watch(self, topics: Iterable[str], observed_metadata: ObservedMetadata) -> None:
        """Report the current state, and every change, to *observed_metadata*."""
        client = self._client
        terms = ObservedControllerTerms(observed_metadata.set_controller)

        def update_controller(*_: object) -> None:
            # Read both znodes again, because the state in the event may be outdated.
            znode, epoch = self._read(zk.CONTROLLER), self._read(zk.CONTROLLER_EPOCH)
            controller = None if znode is None else int(znode["brokerid"])
            terms.update(controller, _NO_EPOCH if epoch is None else int(epoch))

        def update_brokers(children: list[str]) -> None:
            brokers = list(map(int, children))
            stats = {broker: client.exists(f"{zk.BROKER_IDS}/{broker}") for broker in brokers}
            observed_metadata.set_registered(
                brokers, {broker: stat.czxid for broker, stat in stats.items() if stat}
            )

        # A missing znode has no watch for children; brokers would create it, too.
        client.ensure_path(zk.BROKER_IDS)
        DataWatch(client, zk.CONTROLLER, update_controller)
        DataWatch(client, zk.CONTROLLER_EPOCH, update_controller)
        ChildrenWatch(client, zk.BROKER_IDS, update_brokers)
        for topic in topics:
            self._watch_topic(topic, observed_metadata)

    def _watch_topic(self, topic: str, observed_metadata: ObservedMetadata) -> None:
        watched: set[str] = set()

        def update_assignment(data: bytes | None, _: Any) -> None:
            if data is None:
                return
            for partition, assignment in assignments_in(topic, json.loads(data)).items():
                observed_metadata.assignments.update(partition, assignment)
                if partition not in watched:
                    watched.add(partition)
                    self._watch_partition(partition, observed_metadata)

        DataWatch(self._client, zk.topic_path(topic), update_assignment)

    def _watch_partition(self, partition: str, observed_metadata: ObservedMetadata) -> None:
        def update_state(data: bytes | None, _: Any) -> None:
            if data is not None:
                observed_metadata.set_partition(partition, _partition_state(json.loads(data)))

        DataWatch(self._client, zk.state_path(partition), update_state)

    def end_session(self, session: int, password: bytes) -> None:
        """End another client's session: any client with its password may join and close it."""
        client = KazooClient(hosts=self._address, client_id=(session, password), logger=_SILENT)
        self._ask(lambda: client.start(timeout=_START_S))
        client.stop()
        client.close()

    def request_preferred_leaders(self, partitions: Iterable[str]) -> None:
        """Ask for preferred leaders, as ``kafka-preferred-replica-election`` does."""
        replicas = [
            {"topic": topic, "partition": int(number)}
            for topic, _, number in (partition.rpartition("-") for partition in partitions)
        ]
        data = json.dumps({"version": 1, "partitions": replicas}).encode()
        with contextlib.suppress(NodeExistsError):  # An election is pending.
            self._ask(lambda: self._client.create(zk.PREFERRED_REPLICA_ELECTION, data))

    def has_no_preferred_election(self) -> bool:
        """Return whether the controller has finished the last election of preferred leaders."""
        return self._ask(lambda: self._client.exists(zk.PREFERRED_REPLICA_ELECTION)) is None

    def register_beside(self, broker: int, other: int) -> None:
        """Register another broker for this session, at an address where nothing listens."""
        data, _ = self._ask(lambda: self._client.get(zk.broker_path(broker)))
        host, port = _NOWHERE
        address = {"host": host, "port": port, "endpoints": [f"PLAINTEXT://{host}:{port}"]}
        registration = json.dumps({**json.loads(data), **address}).encode()
        self._ask(lambda: self._client.create(zk.broker_path(other), registration, ephemeral=True))

    def unregister(self, broker: int) -> None:
        """Delete a registration."""
        self._ask(lambda: self._client.delete(zk.broker_path(broker)))

    def partition_state(self, partition: str) -> ObservedPartition | None:
        """Return the state of a partition, None if it has no znode."""
        znode = self._read(zk.state_path(partition))
        return None if znode is None else _partition_state(znode)

    def delete_controller(self) -> None:
        """Delete ``/controller`` if it exists."""
        with contextlib.suppress(NoNodeError):
            self._ask(lambda: self._client.delete(zk.CONTROLLER))

    def _read(self, path: str) -> Any:
        try:
            # Retry: if the connection is lost now, the watch would miss this state.
            data, _ = self._ask(lambda: self._client.retry(self._client.get, path))
        except NoNodeError:
            return None
        return json.loads(data)

    def _ask(self, ask: Callable[[], T]) -> T:
        try:
            return ask()
        except (NoNodeError, NodeExistsError):
            raise
        except (KazooException, KazooTimeoutError) as error:
            raise ZooKeeperError(f"ZooKeeper at {self._address} does not answer: {error!r}") from error


def _partition_state(znode: Mapping[str, Any]) -> ObservedPartition:
    return ObservedPartition(znode["leader"], znode["leader_epoch"], tuple(znode["isr"]))
