"""Simulates the network: ordered connections, links that can be cut, rules for single messages.

A connection keeps the order of messages in each direction, like TCP: a held or delayed message
holds up the later ones. Messages over a cut link wait until the link is restored, unless one end
has closed the connection by then. When a process dies, its connections are closed. When its machine
loses power, they are not: the peers learn nothing.
"""

from collections import deque
from collections.abc import Callable

from harrow.cluster_model.events import MessageDelivered, MessageRuleApplied
from harrow.cluster_model.sim import message_rule
from harrow.cluster_model.sim.choices import Choices, happens
from harrow.cluster_model.sim.connection import (
    NO_INCARNATION,
    ClientEndpoint,
    Close,
    Connection,
    Direction,
    Exchange,
    Message,
    Reply,
    ServerEndpoint,
)
from harrow.cluster_model.sim.idle_fetch import IdleFetch, RepeatableFetch, SteppedIdleFetch
from harrow.cluster_model.sim.link_quality import (
    MESSAGE_BYTES,
    LinkQualities,
    LinkQuality,
    NetworkInterfaces,
)
from harrow.cluster_model.sim.message import Body
from harrow.cluster_model.sim.message_content import RecordMessage
from harrow.cluster_model.sim.message_rule import REQUEST, RESPONSE, MessageRule
from harrow.cluster_model.sim.process import Process
from harrow.cluster_model.sim.simulator import Simulator
from harrow.cluster_model.topology import NetworkSpec
from harrow.cluster_model.trace import Trace


class Network:
    """All connections, and the faults that affect them."""

    __slots__ = (
        "_choices",
        "_connections",
        "_cuts",
        "_endpoints",
        "_holding_rules",
        "_idle_fetches",
        "_interfaces",
        "_is_disturbed",
        "_latency_min_us",
        "_latency_span_us",
        "_next_id",
        "_outside",
        "_qualities",
        "_queued_directions",
        "_rules",
        "_simulator",
        "_steps_idle_fetches",
        "_trace",
        "_traces_idle_fetches",
        "trace_messages",
    )

    def __init__(self, simulator: Simulator, choices: Choices, spec: NetworkSpec, trace: Trace) -> None:
        self._simulator = simulator
        self._choices = choices.network
        self._latency_min_us = spec.latency_min_us
        self._latency_span_us = spec.latency_max_us - spec.latency_min_us + 1
        self._trace = trace
        self._endpoints: dict[str, tuple[Process, ServerEndpoint | None]] = {}
        self._connections: dict[int, Connection] = {}
        self._next_id = 0
        self._cuts: dict[tuple[str, str], int] = {}
        self._qualities = LinkQualities()
        self._interfaces = None if spec.bytes_per_second is None else NetworkInterfaces(spec.bytes_per_second)
        self._rules: list[MessageRule] = []
        self._holding_rules: list[MessageRule] = []
        self._queued_directions: list[tuple[Connection, bool]] = []
        # The processes that are not in the healed core of the cluster (`restore_all_but`). Messages
        # between processes of the core are not disturbed.
        self._outside: frozenset[str] | None = None
        self._is_disturbed = self._interfaces is not None
        self._traces_idle_fetches = False
        self.trace_messages = False
        self._idle_fetches: dict[int, IdleFetch] = {}
        self._steps_idle_fetches = False

    # Connections

    def add(self, process: Process, name: str | None = None) -> None:
        """Register a starting process under its own name or *name*.

        The process refuses connections until it listens.
        """
        self._endpoints[name or process.name] = (process, None)

    def listen(self, process: Process, endpoint: ServerEndpoint, name: str | None = None) -> None:
        """Let *endpoint* accept the connections to *process*, under its own name or *name*."""
        self._endpoints[name or process.name] = (process, endpoint)

    def accepts(self, name: str) -> bool:
        """Return whether a process listens under *name*."""
        process, endpoint = self._endpoints.get(name, (None, None))
        return process is not None and process.running and endpoint is not None

    def stop_listening(self, process: Process) -> None:
        """Accept no more connections under a process's own name, and close the existing ones.

        A KRaft controller in a broker's process listens under another name, and keeps its
        connections.
        """
        self._endpoints[process.name] = (process, None)
        others = [
            other for owner, other in self._endpoints.values() if owner is process and other is not None
        ]
        for connection in [
            candidate
            for candidate in self._connections.values()
            if candidate.server is process and candidate.server_endpoint not in others
        ]:
            _wake(connection)
            self._send(connection, False, Close(connection))
            connection.server_incarnation = NO_INCARNATION

    def connect(self, client: Process, server: str, listener: str, endpoint: ClientEndpoint) -> Connection:
        """Open a connection. If no process listens, the first request over it is refused."""
        process, server_endpoint = self._endpoints[server]
        connection = Connection(self._next_id, client, process, listener, endpoint)
        self._next_id += 1
        self._connections[connection.id] = connection
        if process.running and server_endpoint is not None:
            connection.server_endpoint = server_endpoint
            connection.server_incarnation = process.incarnation
        return connection

    def close(self, connection: Connection) -> None:
        if not connection.is_open:
            return
        _wake(connection)
        self._forget(connection)
        if self._is_server_alive(connection):
            self._send(connection, True, Close(connection))

    def close_by_server(self, connection: Connection) -> None:
        """Close a connection from the server's side.

        The client learns after earlier messages have arrived.
        """
        if connection.is_open:
            _wake(connection)
            self._send(connection, False, Close(connection))

    def send_request(self, connection: Connection, correlation_id: int, request: Body) -> None:
        if connection.server.incarnation != connection.server_incarnation:
            self._refuse(connection)
        elif self._is_disturbed:
            self._send_disturbed(connection, True, Exchange(connection, correlation_id, request))
        else:
            connection.established = True
            direction = connection.to_server
            simulator = self._simulator
            at_us = simulator.now_us + self._latency_min_us + self._choices.below(self._latency_span_us)
            if at_us <= direction.arrival_us:
                at_us = direction.arrival_us + 1
            direction.arrival_us = at_us
            simulator.add(at_us, connection.server, Exchange(connection, correlation_id, request))

    def send_response(self, connection: Connection, correlation_id: int, body: Body) -> None:
        """Send a response, or push a message (`PUSHED`)."""
        if not connection.is_open:
            return
        if self._is_disturbed:
            self._send_disturbed(connection, False, Reply(connection, correlation_id, body))
        else:
            direction = connection.to_client
            simulator = self._simulator
            at_us = simulator.now_us + self._latency_min_us + self._choices.below(self._latency_span_us)
            if at_us <= direction.arrival_us:
                at_us = direction.arrival_us + 1
            direction.arrival_us = at_us
            simulator.add(at_us, connection.client, Reply(connection, correlation_id, body))

    # Faults

    def cut(self, sender: str, receiver: str) -> None:
        """Cut the link from *sender* to *receiver*.

        Each cut must be undone by its own `restore`.
        """
        self._cuts[sender, receiver] = self._cuts.get((sender, receiver), 0) + 1
        self._update_disturbance()
        self._wake_disturbed()

    def restore(self, sender: str, receiver: str) -> None:
        """Undo one `cut`. When the last cut is undone, the waiting messages are sent."""
        cuts = self._cuts.get((sender, receiver), 0) - 1
        if cuts > 0:
            self._cuts[sender, receiver] = cuts
        else:
            self._cuts.pop((sender, receiver), None)
            self._flush()

    def restore_all_but(self, outside: frozenset[str]) -> None:
        """End the cuts, qualities and rules that disturb only processes that are not *outside*.

        A rule that names processes ends unless it names one *outside*. Otherwise it would still
        disturb a healed process (`disturbs`).
        """
        self._outside = outside
        self._qualities.keep_links_of(outside)
        self._cuts = {link: cuts for link, cuts in self._cuts.items() if not outside.isdisjoint(link)}
        self._rules = [rule for rule in self._rules if rule.may_affect(outside)]
        self._holding_rules = [rule for rule in self._holding_rules if rule.may_affect(outside)]
        self._flush()

    def is_cut(self, one: str, other: str) -> bool:
        """Return whether the link between two processes is cut in at least one direction."""
        return (one, other) in self._cuts or (other, one) in self._cuts

    def is_cut_one_way(self, sender: str, receiver: str) -> bool:
        return (sender, receiver) in self._cuts

    def disturbs(self, name: str) -> bool:
        """Return whether a process has a cut or slow link, or a rule names it or no process."""
        return (
            any(name in link for link in self._cuts)
            or self._qualities.disturbs(name)
            or any(rule.may_affect((name,)) for rule in (*self._rules, *self._holding_rules))
        )

    def degrade(self, sender: str, receiver: str, quality: LinkQuality) -> None:
        """Make messages from *sender* to *receiver* take longer."""
        self._qualities.add((sender, receiver), quality)
        self._update_disturbance()
        self._wake_disturbed()

    def recover(self, sender: str, receiver: str, quality: LinkQuality) -> None:
        """Undo one `degrade`. Messages in flight keep their arrival times."""
        self._qualities.remove((sender, receiver), quality)
        self._update_disturbance()

    def reset(self, one: str, other: str) -> None:
        """Break the connections between two processes.

        Both ends notice at once, even over a cut link.
        """
        for connection in list(self._connections.values()):
            if {connection.client.name, connection.server.name} == {one, other}:
                _wake(connection)
                self._reset(connection)

    def restore_all(self) -> None:
        """Undo every cut and every degradation, and end every rule."""
        self._outside = None
        self._cuts.clear()
        self._qualities.clear()
        for rule in (*self._rules, *self._holding_rules):
            rule.count = 0
        self._rules.clear()
        self._holding_rules.clear()
        self._flush()

    def add_rule(self, rule: MessageRule) -> None:
        self._rules.append(rule)
        if rule.action == message_rule.HOLD:
            self._holding_rules.append(rule)
        self._update_disturbance()
        self._wake_disturbed()

    def remove_rules(self, is_match: Callable[[MessageRule], bool]) -> None:
        """Remove matching rules one by one, and deliver the messages that each of them holds."""
        for rule in self.rules():
            if is_match(rule):
                self._rules = [other for other in self._rules if other is not rule]
                self._holding_rules = [other for other in self._holding_rules if other is not rule]
                self._flush()

    def rules(self) -> tuple[MessageRule, ...]:
        """Return the rules in force, and the rules that hold messages. Some rules appear twice."""
        return (*self._rules, *self._holding_rules)

    def process_died(self, process: Process, *, power_loss: bool) -> None:
        """Break the connections of a process that has just died."""
        connections = [c for c in self._connections.values() if c.client is process or c.server is process]
        for connection in connections:
            _wake(connection)
            if connection.client is process:
                self._forget(connection)
                if not power_loss and self._is_server_alive(connection):
                    self._send(connection, True, Close(connection))
            elif not power_loss:
                self._send(connection, False, Close(connection))

    def wake_idle_fetches(self, process: Process) -> None:
        """Wake the idle fetches of a process whose state changes."""
        for idle in tuple(self._idle_fetches.values()):
            if process in (idle.connection.client, idle.connection.server):
                idle.wake()

    def machine_booted(self, process: Process) -> None:
        """Reset connections from before a power loss, which their clients still consider open."""
        for connection in list(self._connections.values()):
            if connection.server is process and not self._is_server_alive(connection):
                self._refuse(connection)

    # Sending

    def _forget(self, connection: Connection) -> None:
        connection.is_open = False
        self._connections.pop(connection.id, None)

    def _is_server_alive(self, connection: Connection) -> bool:
        return connection.server.incarnation == connection.server_incarnation

    def _refuse(self, connection: Connection) -> None:
        """Answer a client with a reset, if the server's machine has power."""
        if connection.server.powered:
            self._send(connection, False, Close(connection))

    def _send(self, connection: Connection, to_server: bool, message: Message) -> None:
        if self._is_disturbed:
            self._send_disturbed(connection, to_server, message)
        else:
            self._transmit(connection, to_server, message, 0)

    def _transmit(self, connection: Connection, to_server: bool, message: Message, extra_us: int) -> None:
        connection.established = True
        receiver: Process
        if to_server:
            direction, receiver = connection.to_server, connection.server
        else:
            direction, receiver = connection.to_client, connection.client
        at_us = self._simulator.now_us + self._latency_min_us + self._choices.below(self._latency_span_us)
        at_us += extra_us
        if self._interfaces is not None and (record_bytes := _record_bytes(_body(message))):
            size = MESSAGE_BYTES + record_bytes
            link = self._ends(connection, to_server)
            at_us = self._interfaces.arrival_us(link, self._simulator.now_us, at_us, size)
        if self._qualities.by_link:
            at_us = self._delay_arrival(connection, to_server, message, at_us)
        elif at_us <= direction.arrival_us:
            at_us = direction.arrival_us + 1
        direction.arrival_us = at_us
        if not isinstance(message, Close):
            self._simulator.add(at_us, receiver, message)
        elif to_server:
            self._simulator.schedule(at_us, receiver, _deliver_close_to_server, message)
        else:
            self._simulator.schedule(at_us, receiver, self._deliver_close_to_client, message)

    def _delay_arrival(self, connection: Connection, to_server: bool, message: Message, at_us: int) -> int:
        """Return when a message arrives that slow links or a slow receiver delay beyond *at_us*."""
        link = self._ends(connection, to_server)
        body = _body(message)
        size = MESSAGE_BYTES + _record_bytes(body)
        at_us += self._qualities.delay_us(link, self._simulator.now_us, size, self._choices)
        direction = connection.to_server if to_server else connection.to_client
        at_us = max(at_us, direction.arrival_us + 1)
        # A broker handles the requests of a connection one by one: it mutes the ``KafkaChannel``
        # meanwhile. So a slow request also delays the arrival of the next one.
        return at_us + self._qualities.request_us(link) if to_server and body is not None else at_us

    def _deliver_close_to_client(self, close: Close) -> None:
        connection = close.connection
        if connection.is_open:
            self._forget(connection)
            connection.client_endpoint.connection_lost(connection)

    def _update_disturbance(self) -> None:
        self._is_disturbed = bool(
            self._cuts
            or self._qualities.by_link
            or self._rules
            or self._queued_directions
            or self.trace_messages
            or self._steps_idle_fetches
            or self._interfaces is not None
        )

    def watch_messages(self) -> None:
        self.trace_messages = True
        self._update_disturbance()
        self._wake_disturbed()

    def _send_disturbed(self, connection: Connection, to_server: bool, message: Message) -> None:
        body = _body(message)
        if connection.idle is not None:
            assert body is not None, "a close wakes the fetch first"
            assert not isinstance(message, Close)
            if self.trace_messages:
                kind = REQUEST if to_server else RESPONSE
                self._trace.emit(MessageDelivered, body.api, kind, *self._ends(connection, to_server))
            self._idle_fetches[connection.id].transmit(message)
            return
        rule = held = None
        if body is not None and (self._rules or self.trace_messages):
            sender, receiver = self._ends(connection, to_server)
            kind = REQUEST if to_server else RESPONSE
            if self.trace_messages:
                self._trace.emit(MessageDelivered, body.api, kind, sender, receiver)
            rule = self._first_rule(body, kind, sender, receiver, connection.listener)
        if rule is not None:
            if rule.action == message_rule.DROP:
                return
            if rule.action == message_rule.RESET:
                self._reset(connection)
                return
            held = rule if rule.action == message_rule.HOLD else None
        direction = connection.to_server if to_server else connection.to_client
        if (
            direction.queue is not None
            or held is not None
            or (self._cuts and self._is_cut(connection, to_server))
        ):
            self._enqueue(connection, to_server, message, held)
            return
        extra_us = rule.delay_us if rule is not None and rule.action == message_rule.DELAY else 0
        self._transmit(connection, to_server, message, extra_us)
        if rule is not None and rule.action == message_rule.DUPLICATE:
            # A request that arrives twice is answered twice; the client ignores the second answer.
            self._transmit(connection, to_server, _duplicate(message), 0)

    def _reset(self, connection: Connection) -> None:
        """Break a connection.

        The client notices after the minimum latency, the server when a close arrives.
        """
        self._forget(connection)
        self._simulator.schedule(
            self._simulator.now_us + self._latency_min_us, connection.client, _lose_connection, connection
        )
        if self._is_server_alive(connection):
            self._transmit(connection, True, Close(connection), 0)

    def _is_cut(self, connection: Connection, to_server: bool) -> bool:
        """Return whether a message cannot pass. The first of a connection needs both directions."""
        sender, receiver = self._ends(connection, to_server)
        if (sender, receiver) in self._cuts:
            return True
        return to_server and not connection.established and (receiver, sender) in self._cuts

    def _is_within_core(self, sender: str, receiver: str) -> bool:
        outside = self._outside
        return outside is not None and sender not in outside and receiver not in outside

    def _ends(self, connection: Connection, to_server: bool) -> tuple[str, str]:
        client, server = connection.client.name, connection.server.name
        return (client, server) if to_server else (server, client)

    def _first_rule(
        self, body: Body, kind: str, sender: str, receiver: str, listener: str
    ) -> MessageRule | None:
        if self._outside is not None and self._is_within_core(sender, receiver):
            return None
        for rule in self._rules:
            if not rule.matches(body, kind, sender, receiver, listener):
                continue
            rule.match_count += 1
            if rule.match_count <= rule.skip:
                continue
            if not happens(self._choices, rule.probability_millionths / 1_000_000):
                continue
            rule.applied_count += 1
            if rule.is_exhausted():
                self._rules.remove(rule)
                self._update_disturbance()
            self._trace.emit(
                MessageRuleApplied, rule.name, rule.action, body.api, kind, sender, receiver, rule.strike
            )
            return rule
        return None

    # Idle fetches

    def repeat_while_idle(self, fetch: RepeatableFetch) -> IdleFetch | None:
        """Let a waiting fetch repeat itself, if its client would do so and no fault interferes."""
        connection = fetch.exchange.connection
        if connection.idle is not None:
            idle = self._idle_fetches[connection.id]
            idle.wait_again(fetch)
            return idle
        if (
            connection.on_repeated is None
            or not self._is_quiet(connection)
            or self._disturbs_fetches(connection, fetch.exchange.request.api)
        ):
            return None
        kind = SteppedIdleFetch if self._steps_idle_fetches else IdleFetch
        idle = kind(
            fetch,
            self._simulator,
            self._latency_min_us,
            self._forget_idle,
            is_traced=self._traces_idle_fetches,
        )
        self._idle_fetches[connection.id] = connection.idle = idle
        return idle

    def step_idle_fetches(self) -> None:
        """Go through each cycle of idle fetches event by event. Call this before the run begins."""
        assert not self._connections, "connections exist already"
        self._steps_idle_fetches = True
        self._update_disturbance()

    def watch_fetches(self) -> None:
        """Trace each fetch that waits or expires.

        Apart from these events, the run stays the same.
        """
        self.step_idle_fetches()
        self._traces_idle_fetches = True

    def _forget_idle(self, connection: Connection) -> None:
        del self._idle_fetches[connection.id]
        connection.idle = None

    def _is_quiet(self, connection: Connection) -> bool:
        """Return whether both ends run, and no message of the connection is in flight or waits."""
        now_us = self._simulator.now_us
        return (
            connection.is_open
            and not connection.client.paused
            and not connection.waiting
            and connection.to_server.queue is None
            and connection.to_client.queue is None
            and connection.to_server.arrival_us <= now_us
            and connection.to_client.arrival_us <= now_us
            and self._is_server_alive(connection)
        )

    def _disturbs_fetches(self, connection: Connection, api: str) -> bool:
        """Return whether a cut, a quality or a rule may affect fetches over a connection."""
        if self.trace_messages and not self._steps_idle_fetches:
            return True
        if not self._cuts and not self._rules and not self._qualities.by_link:
            return False
        client, server = connection.client.name, connection.server.name
        links = ((client, server), (server, client))
        if any(link in self._cuts or link in self._qualities.by_link for link in links):
            return True
        if self._is_within_core(client, server):
            return False
        return any(
            rule.is_about_api(api, REQUEST, client, server, connection.listener)
            or rule.is_about_api(api, RESPONSE, server, client, connection.listener)
            for rule in self._rules
            if rule.znode is None
        )

    def _wake_disturbed(self) -> None:
        for idle in tuple(self._idle_fetches.values()):
            if self._disturbs_fetches(idle.connection, idle.api):
                idle.wake()

    # Queues of messages that cannot pass

    def _enqueue(
        self, connection: Connection, to_server: bool, message: Message, rule: MessageRule | None
    ) -> None:
        direction = connection.to_server if to_server else connection.to_client
        if direction.queue is None:
            direction.queue = deque()
            self._queued_directions.append((connection, to_server))
        direction.queue.append((message, rule))
        self._is_disturbed = True

    def _flush(self) -> None:
        """Send the queued messages that can pass now, connection by connection, in order."""
        waiting = []
        for connection, to_server in self._queued_directions:
            direction = connection.to_server if to_server else connection.to_client
            self._flush_direction(connection, to_server, direction)
            if direction.queue:
                waiting.append((connection, to_server))
            else:
                direction.queue = None
        self._queued_directions = waiting
        self._update_disturbance()

    def _flush_direction(self, connection: Connection, to_server: bool, direction: Direction) -> None:
        queue = direction.queue
        within_core = self._is_within_core(*self._ends(connection, to_server))
        has_left = False
        while queue and not self._is_cut(connection, to_server):
            message, rule = queue[0]
            if rule is not None and rule in self._holding_rules and not within_core:
                break
            queue.popleft()
            has_left = has_left or (rule is not None and rule.is_on_the_way)
            if to_server:
                # If the client has closed the connection, its queued messages are dropped. Messages
                # that were already on their way are not, nor are messages behind them.
                if connection.is_open or has_left or isinstance(message, Close):
                    if self._is_server_alive(connection):
                        self._transmit(connection, True, message, 0)
                    elif connection.is_open:
                        self._refuse(connection)
            elif connection.is_open:
                self._transmit(connection, False, message, 0)


def _wake(connection: Connection) -> None:
    if connection.idle is not None:
        connection.idle.wake()


def _body(message: Message) -> Body | None:
    """Return the body of a message; None for a `Close`."""
    if isinstance(message, Exchange):
        return message.request
    return message.body if isinstance(message, Reply) else None


def _duplicate(message: Message) -> Message:
    """Return a copy of a message, which can be scheduled as another event."""
    if isinstance(message, Exchange):
        return Exchange(message.connection, message.correlation_id, message.request)
    if isinstance(message, Reply):
        return Reply(message.connection, message.correlation_id, message.body)
    return message


def _record_bytes(body: object) -> int:
    return body.record_bytes if isinstance(body, RecordMessage) else 0


def _deliver_close_to_server(close: Close) -> None:
    connection = close.connection
    if connection.server_endpoint is not None:
        connection.server_endpoint.connection_closed(connection)


def _lose_connection(connection: Connection) -> None:
    connection.client_endpoint.connection_lost(connection)
