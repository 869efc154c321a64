"""Connects clients with the brokers of the model: real ones, or those of a recording."""

from collections.abc import Callable, Collection, Mapping
from types import MappingProxyType
from typing import Final

from harrow.checks.evidence import ProducerSettings
from harrow.cluster_model.cluster import Cluster
from harrow.cluster_model.sim.host import Host
from harrow.cluster_model.sim.process import Process
from harrow.cluster_model.topic_settings import ALL_BROKERS, WITHOUT_EFFECT, brokers_resource
from harrow.cluster_model.topology import is_internal, process_name
from harrow.live_cluster.serve.answers.own_answers import OwnAnswers
from harrow.live_cluster.serve.answers.plain_login import Users
from harrow.live_cluster.serve.answers.served_topics import ServedTopics
from harrow.live_cluster.serve.client_connection import ClientConnection
from harrow.live_cluster.serve.contents.client_batches import RecordNames
from harrow.live_cluster.serve.contents.client_clock import ClientClock
from harrow.live_cluster.serve.contents.record_identity import Identity
from harrow.live_cluster.serve.contents.wire_contents import WireContents
from harrow.live_cluster.serve.history.wire_history import WireHistory
from harrow.live_cluster.serve.recording.recorder import Recorder
from harrow.live_cluster.serve.served_environment import ServedEnvironment
from harrow.live_cluster.wire.codec import Address, Naming

_CLIENTS_MAX: Final = 10_000
"""How many clients have a name of their own. A client that connects with ever new ids would
otherwise fill the memory."""
_MORE_CLIENTS: Final = "more clients"


class ServedClients:
    """The connections of all clients to the brokers of a model.

    What happens to them depends only on the model and on the calls of `open`, `receive`, `close`,
    `end_program` and `end` with the model's times. *recorder* gets those and the responses.
    """

    def __init__(
        self,
        cluster: Cluster,
        environment: ServedEnvironment,
        addresses: Mapping[int, Address],
        *,
        configured_producers: Mapping[str, ProducerSettings] = MappingProxyType({}),
        identity: Identity | None = None,
        demanded: Collection[str] = (),
        users: Users | None = None,
        recorder: Recorder | None = None,
    ) -> None:
        self._cluster = cluster
        self._message_bytes_max = int(WITHOUT_EFFECT["max.message.bytes"].default(cluster.release))
        self._environment = environment
        self.addresses = addresses
        self.users = users
        self.recorder = recorder or Recorder()
        # In the order in which they began, which is also the order in which they end.
        self.connections: dict[int, ClientConnection] = {}
        # Connections with answers of the server that a fault holds up.
        self.blocked: dict[ClientConnection, None] = {}
        self.history = WireHistory(
            cluster.history,
            cluster.simulator,
            self._has_partition,
            configured_producers,
            RecordNames(identity),
            demanded,
        )
        self._processes: dict[str, Process] = {}
        topics = ServedTopics(cluster)
        self.clock = ClientClock(zero_ms=0.0, time_scale=1.0)
        self.naming = Naming(
            topics.names,
            ids=topics,
            contents=WireContents(self),
            addresses=addresses,
            find_topic=topics.find,
        )
        self.own_answers = OwnAnswers(
            cluster, topics, self.naming, client_ms=self.client_ms, with_login=users is not None
        )
        self.has_ended = False

    # Inputs

    def open(
        self, number: int, broker: int, send: Callable[[bytes], None], note_change: Callable[[], None]
    ) -> None:
        """Open a connection to a broker; *send* sends bytes to the client.

        *note_change* is called when its socket may have other things to wait for.
        """
        self.recorder.opened(number, broker)
        self.connections[number] = ClientConnection(number, broker, self, send, note_change)

    def receive(self, number: int, frame: bytes) -> None:
        """Take a frame of a client, unless its connection has ended."""
        connection = self.connections.get(number)
        if connection is not None:
            connection.receive(frame)

    def close(self, number: int) -> None:
        """End a connection."""
        connection = self.connections.get(number)
        if connection is not None:
            self.recorder.closed(number)
            connection.close()

    def end_program(self) -> None:
        """Take note that the program that harrow has started has ended."""
        self.recorder.program_ended()
        if self._environment.program is not None:
            self._environment.program.is_running = False

    def end(self) -> None:
        """Take note that clients have used the cluster long enough."""
        self.recorder.ended()
        self.has_ended = True

    # The cluster

    def accepts(self, broker: int) -> bool:
        """Return whether a broker accepts connections."""
        return self._cluster.network.accepts(process_name(broker))

    def reads(self, broker: int) -> bool:
        """Return whether a broker reads requests. The sockets of a paused one fill up."""
        return not self._environment.is_paused(broker)

    def send_blocked(self) -> None:
        """Send the answers of the server that no fault holds up any more."""
        for connection in [*self.blocked]:
            connection.send_own_answers()

    def close_all(self) -> None:
        """End all connections and the history of their clients."""
        for connection in [*self.connections.values()]:
            connection.close()
        self.history.close()

    def has_program_ended(self) -> bool:
        """Return whether the program has ended and the run does not know yet."""
        program = self._environment.program
        return program is not None and program.has_ended

    @property
    def now_us(self) -> int:
        return self._cluster.simulator.now_us

    def connected_names(self) -> tuple[str, ...]:
        """Return the names of the clients that are connected."""
        names = (connection.client_name for connection in self.connections.values())
        return tuple(dict.fromkeys(name for name in names if name is not None))

    def client_names(self) -> tuple[str, ...]:
        """Return the names of all clients that have connected, in that order."""
        return tuple(self._processes)

    # What connections need

    def forget(self, connection: ClientConnection) -> None:
        """Forget a connection that has ended."""
        del self.connections[connection.number]
        self.blocked.pop(connection, None)
        self.recorder.forget(connection.number)

    def host_of(self, client_id: str) -> Host:
        """Return the machine of a client in the model."""
        name = self._environment.process_name_of(client_id)
        if name not in self._processes and len(self._processes) >= _CLIENTS_MAX:
            name = _MORE_CLIENTS
        process = self._processes.get(name)
        if process is None:
            process = self._processes[name] = Process(name)
            self._environment.join(name)
        return self._cluster.host(process)

    def are_connected(self, client: str, broker: int) -> bool:
        """Return whether packets pass between a client and a live broker that is not paused."""
        is_cut = self._cluster.network.is_cut(client, process_name(broker))
        return broker in self._cluster.brokers and not is_cut and not self._environment.is_paused(broker)

    def model_us(self, client_ms: int) -> int:
        return self.clock.model_us(client_ms)

    def client_ms(self, model_us: int) -> int:
        return self.clock.client_ms(model_us)

    def is_compacted(self, partition: str, broker: int) -> bool:
        topic = partition.rpartition("-")[0]
        return self._has_partition(partition) and self._cluster.topic_config(topic, broker).compacts

    def message_bytes_max(self, partition: str, broker: int) -> int:
        settings, of_brokers = self._cluster.topic_settings, "message.max.bytes"
        values = (
            settings(partition.rpartition("-")[0], broker).get("max.message.bytes"),
            settings(brokers_resource(str(broker)), broker).get(of_brokers),
            settings(ALL_BROKERS, broker).get(of_brokers),
        )
        return next((int(value) for value in values if value is not None), self._message_bytes_max)

    def _has_partition(self, name: str) -> bool:
        return self._cluster.partition_state(name) is not None and not is_internal(name)
