"""A broker process: requests, its ZooKeeper session, its part in the controller election.

After ``KafkaServer.scala`` and ``KafkaApis.scala``. One request of a connection is
handled at a time; the next waits until the first is answered, as in ``SocketServer``.
"""

from collections.abc import Callable
from typing import Any

from cluster_model import errors
from cluster_model import zookeeper_protocol as zk
from cluster_model.connection import Connection, Message
from cluster_model.disk import Disk
from cluster_model.host import Host
from cluster_model.kafka_controller import KafkaController
from cluster_model.metadata_cache import MetadataCache
from cluster_model.producer_id_manager import ProducerIdManager
from cluster_model.protocol import ControlRequest, ControlResponse
from cluster_model.release import Behaviours
from cluster_model.replica_manager import ReplicaManager
from cluster_model.settings import BrokerConfig, TopicConfig
from cluster_model.virtual_time import US_PER_SECOND
from cluster_model.zookeeper_client import ZooKeeperClient

REGISTRATION_RETRY_US = US_PER_SECOND
"""How often a broker whose id is still registered by its former session is started again."""


class Broker:
    """One life of a broker process, from its start to its end."""

    def __init__(
        self,
        broker: int,
        host: Host,
        disk: Disk,
        config: BrokerConfig,
        topic_config: Callable[[str], TopicConfig],
        behaviours: Behaviours,
    ) -> None:
        self.id = broker
        self._host = host
        self._behaviours = behaviours
        self._broker_epoch = -1
        self._accepts_requests = not behaviours.requests_after_registration
        self._early_requests: list[Message] = []
        self.zookeeper = ZooKeeperClient(host, config.zookeeper_session_timeout_us, self)
        self.metadata = MetadataCache()
        self.replicas = ReplicaManager(
            broker, host, disk, config, topic_config, behaviours, self.zookeeper, self.respond
        )
        self.controller = KafkaController(broker, host, config, topic_config, behaviours, self.zookeeper)
        self._producer_ids = ProducerIdManager(self.zookeeper)
        self._handlers: dict[str, Callable[[Message], None]] = {
            "Produce": self.replicas.handle_produce,
            "Fetch": self.replicas.handle_fetch,
            "OffsetsForLeaderEpoch": self.replicas.handle_offsets_for_leader_epoch,
            "ListOffsets": self.replicas.handle_list_offsets,
            "Metadata": self._handle_metadata,
            "InitProducerId": self._handle_init_producer_id,
            "LeaderAndIsr": self._handle_control,
            "UpdateMetadata": self._handle_control,
            "StopReplica": self._handle_control,
        }

    def start(self) -> None:
        """Connect to ZooKeeper; registration and everything else follow from that."""
        self._host.trace((self._host.clock.now_us, "broker_started", self.id))
        self.replicas.start()
        self.zookeeper.start()

    # ZooKeeper session

    def session_established(self) -> None:
        """Register under /brokers/ids."""
        self._register(None)

    def session_expired(self) -> None:
        """The registration is gone, and so is the controllership if this was the controller."""
        self.controller.session_expired()

    def watch_fired(self, event: zk.WatchEvent) -> None:
        """All watches are the controller's business."""
        self.controller.watch_fired(event)

    def _register(self, _: None) -> None:
        create = zk.Create(zk.broker_path(self.id), self.id, ephemeral=True)
        self.zookeeper.submit((create,), self._registered)

    def _registered(self, response: zk.ZooKeeperResponse) -> None:
        if response.error != zk.OK:
            return  # The session has expired again; the next one registers.
        result = response.results[0]
        if result.error == zk.NODE_EXISTS:
            # The former session has not expired: the start fails, and whatever supervises
            # the broker tries again.
            self._host.set_timer(REGISTRATION_RETRY_US, self._register)
            return
        self._broker_epoch = result.czxid
        self._host.trace((self._host.clock.now_us, "broker_registered", self.id, result.czxid))
        self._host.invariants.broker_registered(self.id)
        self.controller.broker_registered()
        self._accept_requests()

    def _accept_requests(self) -> None:
        """Begin to handle requests; those that came earlier have waited in the sockets."""
        self._accepts_requests = True
        early, self._early_requests = self._early_requests, []
        for message in early:
            self.receive_request(message)

    # Requests

    def receive_request(self, message: Message) -> None:
        """Handle a request, after those before it on the same connection."""
        connection = message[0]
        if not self._accepts_requests:
            self._early_requests.append(message)
        elif connection.muted or connection.waiting:
            connection.waiting.append(message)
        else:
            connection.muted = True
            self._handlers[message[2].api](message)

    def connection_closed(self, connection: Connection) -> None:
        """The client is gone; what it has sent is handled all the same."""
        self.replicas.connection_closed(connection)

    def respond(self, message: Message, body: Any) -> None:
        """Answer (None: no answer is due), and go on with the next request of the connection."""
        connection = message[0]
        if body is not None:
            self._host.send_response(connection, message[1], body)
        connection.muted = False
        if connection.waiting and not connection.draining:
            self._handle_waiting(connection)

    def _handle_waiting(self, connection: Connection) -> None:
        """Handle what waits, one after the other, up to a request that has to wait itself."""
        connection.draining = True
        while connection.waiting and not connection.muted:
            connection.muted = True
            following = connection.waiting.popleft()
            self._handlers[following[2].api](following)
        connection.draining = False

    def _handle_metadata(self, message: Message) -> None:
        self.respond(message, self.metadata.response())

    def _handle_init_producer_id(self, message: Message) -> None:
        self._producer_ids.generate(lambda answer: self.respond(message, answer))

    def _handle_control(self, message: Message) -> None:
        """Handle what a controller sends, unless it is meant for an earlier life of this broker."""
        request: ControlRequest = message[2]
        error = self._control_error(request)
        if error != errors.NONE:
            now_us = self._host.clock.now_us
            self._host.trace((now_us, "rejected", self.id, request.api, "", message[0].client.name, error))
            self.respond(message, ControlResponse(request.api, error))
        elif request.api == "LeaderAndIsr":
            self.replicas.handle_leader_and_isr(message, self.metadata.live_brokers)
        else:
            self._host.invariants.control_request_obeyed(self.id, request.api, request.controller_epoch)
            if request.api == "UpdateMetadata":
                self.metadata.update(message[2])
            else:
                self.replicas.stop_fetching(message[2].partitions)
            self.replicas.controller_epoch = request.controller_epoch
            self.respond(message, ControlResponse(request.api, errors.NONE))

    def _control_error(self, request: ControlRequest) -> str:
        if self._behaviours.broker_epoch and request.broker_epoch < self._broker_epoch:
            return errors.STALE_BROKER_EPOCH
        if self.replicas.is_stale_controller(request.controller_epoch):
            return errors.STALE_CONTROLLER_EPOCH
        return errors.NONE
