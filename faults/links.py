"""Faults of links: partitions, splits, slow links, resets, lost acks, slow followers."""

from collections.abc import Iterator
from typing import ClassVar, Final, Literal, Self

from harrow.cluster_model import fields
from harrow.cluster_model.fields import Bandwidth, Broker, Duration, Lasts, LinkEnd, described
from harrow.cluster_model.lazy_dataclass import dataclass, replace
from harrow.cluster_model.sim import message_rule
from harrow.cluster_model.sim.choices import Stream, pick
from harrow.cluster_model.sim.link_quality import LinkQuality
from harrow.cluster_model.sim.virtual_time import US_PER_MS, US_PER_SECOND
from harrow.faults.effects import Effects, End, ResetLink, SlowLink
from harrow.faults.fault import (
    UNTIL_HEALED,
    BrokerProcesses,
    Environment,
    Fault,
    Link,
    LinkFault,
    MessageFault,
    process_names,
)
from harrow.faults.link_ends import (
    BROKERS,
    OTHERS,
    ZOOKEEPER,
    links_between,
    may_be_several,
    no_link_reason,
    with_fewer_ends,
)

_NODES_MIN: Final = {"halves": 2, "bridge": 3, "majorities_ring": 4}
"""How many nodes each shape of a split needs, so that it cuts any link."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NetworkAckLoss(MessageFault):
    """A broker handles a request, but its response never arrives.

    `reset` breaks the connection instead of delivering the response, so the client knows at once
    that the outcome is unknown. `timeout` drops the response, and the client waits for
    `request.timeout.ms`.
    """

    name: ClassVar[str] = "network_ack_loss"

    client: fields.Client | None = described("Whose requests; by default every client's.", default=None)
    broker: fields.Broker | None = described("Whose responses; by default every broker's.", default=None)
    api: fields.Api = described("Responses to which request.", default="Produce")
    count: fields.Count | None = described(
        "How many responses; by default every one while the fault lasts.", default=None, shrinks=False
    )
    skip: fields.Skip = described("How many responses pass first.", default=0)
    probability: fields.Probability = described("The probability that a response is lost.", default=1.0)
    duration: fields.Lasts | None = described(
        "How long; by default until `count` is used up or the cluster is healed.", default=None
    )
    how: Literal["reset", "timeout"] = described("What the client notices.", default="reset")

    def rule(self, environment: Environment) -> message_rule.MessageRule:
        brokers = environment.broker_ids() if self.broker is None else (self.broker,)
        clients = environment.client_names() if self.client is None else (self.client,)
        return message_rule.MessageRule(
            name=self.name,
            action=message_rule.RESET if self.how == "reset" else message_rule.DROP,
            api=self.api,
            kind=message_rule.RESPONSE,
            senders=process_names(brokers),
            receivers=process_names(clients),
            skip=self.skip,
            count=self.count,
            probability_millionths=round(self.probability * 1_000_000),
        )

    def simpler(self) -> Iterator["NetworkAckLoss"]:
        """Yield the loss of one response: to any Produce, and then to any request of this fault."""
        for single in (NetworkAckLoss(count=1), replace(self, count=1, probability=1.0, duration=None)):
            if single != self:
                yield single

    def messages(self) -> int | None:
        return self.count


@dataclass(frozen=True, slots=True, kw_only=True)
class SlowFollower(MessageFault):
    """A follower cannot keep up: its fetches are stuck, or each of them is slow.

    The broker still serves the partitions that it leads. `replica.lag.time.max.ms` decides whether
    it leaves the ISR. On real brokers this fault affects only the connections of its fetchers. In
    the model the fault also affects its other requests to brokers: with ZooKeeper, AlterPartition
    and ControlledShutdown to the controller; for transactions, WriteTxnMarkers and
    AddPartitionsToTxn.
    """

    name: ClassVar[str] = "slow_follower"
    is_load: ClassVar[bool] = True

    broker: Broker = described("Which follower.")
    mode: Literal["stuck", "slow"] = described(
        "`stuck`: no fetch reaches a leader. `slow`: every response takes `delay` longer.", default="stuck"
    )
    delay: Duration = described("With `slow`: how much longer each response takes.", default=US_PER_SECOND)
    duration: Lasts | None = described(UNTIL_HEALED, default=None)

    def rule(self, environment: Environment) -> message_rule.MessageRule:
        follower = process_names((self.broker,))
        if self.mode == "stuck":
            return message_rule.MessageRule(
                name=self.name,
                action=message_rule.HOLD,
                kind=message_rule.REQUEST,
                senders=follower,
                listener="replication",
            )
        return message_rule.MessageRule(
            name=self.name,
            action=message_rule.DELAY,
            kind=message_rule.RESPONSE,
            receivers=follower,
            listener="replication",
            delay_us=self.delay,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class NetworkPartition(LinkFault):
    """No packet passes between two sides. References in them are resolved when the fault strikes.

    As with TCP, what is sent meanwhile is retransmitted when the fault ends, unless one end has
    given up the connection. `between: leader of t-0` alone cuts that broker off from everything,
    `between: clients, and: brokers` cuts the clients off from an intact cluster, `between: brokers,
    and: brokers` cuts the brokers off from each other while clients reach them all, and `between:
    brokers, and: zookeeper` cuts off the control plane alone.
    """

    name: ClassVar[str] = "partition"

    between: tuple[LinkEnd, ...] = described("One side.")
    and_: tuple[LinkEnd, ...] = described(
        "The other side; by default all `others`.", default=(OTHERS,), shrinks=False
    )
    one_way: bool = described("Cut only what the first side sends.", default=False)
    duration: Lasts | None = described(UNTIL_HEALED, default=None)

    def problem(self) -> str | None:
        return no_link_reason(self.between, self.and_)

    def simpler(self) -> Iterator[Fault]:
        yield from with_fewer_ends(self)

    def links(self, environment: BrokerProcesses) -> list[Link]:
        return links_between(self.between, self.and_, one_way=self.one_way)


@dataclass(frozen=True, slots=True, kw_only=True)
class NetworkSplit(LinkFault):
    """The network splits in one of the shapes that Jepsen tests.

    The nodes are put in an order, by default a random one. `halves`: the first half of the nodes,
    rounded down, cannot reach the others. `bridge`: the same, but the node in the middle still
    reaches both halves. `majorities_ring`: each node reaches a majority, and no two nodes reach the
    same majority. A ring of fewer than four nodes cuts no link.
    """

    name: ClassVar[str] = "network_split"
    parts_control_plane: ClassVar[bool] = True

    shape: Literal["halves", "bridge", "majorities_ring"] = described("How it splits.", default="halves")
    nodes: tuple[LinkEnd, ...] = described(
        "Which servers are split; they keep their links with all others. By default the brokers and ZooKeeper, or the "
        "quorum of KRaft: each of their servers is a node.",
        default=(BROKERS, ZOOKEEPER),
        shrinks=False,
    )
    order: Literal["random", "given"] = described(
        "The order of the nodes in the line or the ring: `random`, or as in `nodes` (`given`).",
        default="random",
        shrinks=False,
    )
    duration: Lasts | None = described(UNTIL_HEALED, default=None)

    def problem(self) -> str | None:
        least = _NODES_MIN[self.shape]
        if len(self.nodes) >= least or any(end == ZOOKEEPER or may_be_several(end) for end in self.nodes):
            return None
        return f"this cuts no link: it takes {least} nodes"

    def with_choices(self, draw: Stream) -> Self:
        if self.order == "given":
            return self
        remaining, nodes = list(self.nodes), []
        while remaining:
            nodes.append(pick(draw, remaining))
            remaining.remove(nodes[-1])
        return replace(self, nodes=tuple(nodes), order="given")

    def links(self, environment: BrokerProcesses) -> list[Link]:
        if self.shape == "majorities_ring":
            count = len(self.nodes)
            # A node reaches itself and enough nodes on either side to make a majority.
            reach = (count // 2 + 1) // 2
            return [
                (one, other)
                for place, one in enumerate(self.nodes)
                for further, other in enumerate(self.nodes)
                if min((place - further) % count, (further - place) % count) > reach
            ]
        first, *_, last = self.groups()
        return links_between(first, last, one_way=False)

    def groups(self) -> tuple[tuple[End, ...], ...]:
        """Return groups of nodes: two halves with the bridge between them, or a ring's nodes."""
        middle, nodes = len(self.nodes) // 2, self.nodes
        if self.shape == "majorities_ring":
            return tuple((node,) for node in nodes)
        if self.shape == "bridge":
            return nodes[:middle], nodes[middle : middle + 1], nodes[middle + 1 :]
        return nodes[:middle], nodes[middle:]

    def simpler(self) -> Iterator[Fault]:
        """Yield a partition between its two halves, which names their members."""
        middle = len(self.nodes) // 2
        if self.order == "given" and middle:
            yield NetworkPartition(
                between=self.nodes[:middle], and_=self.nodes[middle:], duration=self.duration
            )


@dataclass(frozen=True, slots=True, kw_only=True)
class LinkSlow(LinkFault):
    """Messages between two sides take longer, as on a congested or long link.

    On real brokers this is `tc qdisc ... netem`. Connections keep their order. All connections from
    one process to another share a limit of `bandwidth`. Nothing is lost. It depends on Kafka's
    settings whether followers keep up, and whether requests time out.
    """

    name: ClassVar[str] = "link_slow"

    between: tuple[LinkEnd, ...] = described("One side.")
    and_: tuple[LinkEnd, ...] = described(
        "The other side; by default all `others`.", default=(OTHERS,), shrinks=False
    )
    one_way: bool = described("Slow only what the first side sends.", default=False)
    latency: Duration = described("How much longer each message takes.", default=100 * US_PER_MS)
    jitter: Duration = described("The most that is added on top, at random for each message.", default=0)
    bandwidth: Bandwidth | None = described(
        "How much passes in each direction; by default there is no limit.", default=None
    )
    duration: Lasts | None = described(UNTIL_HEALED, default=None)

    def problem(self) -> str | None:
        if not self.latency and not self.jitter and self.bandwidth is None:
            return "this slows nothing: give it a `latency`, a `jitter` or a `bandwidth`"
        return no_link_reason(self.between, self.and_)

    def simpler(self) -> Iterator[Fault]:
        yield from with_fewer_ends(self)

    def links(self, environment: BrokerProcesses) -> list[Link]:
        return links_between(self.between, self.and_, one_way=self.one_way)

    def effect_on(self, link: Link) -> SlowLink:
        quality = LinkQuality(latency_us=self.latency, jitter_us=self.jitter, bytes_per_second=self.bandwidth)
        return SlowLink(*link, quality)


@dataclass(frozen=True, slots=True, kw_only=True)
class LinkReset(Fault):
    """The connections between two sides are reset (RST), as by a firewall that forgets them.

    Both ends notice at once, and reconnect. A message in flight may or may not have arrived, so a
    producer does not know the outcome of its requests, and sends them again.
    """

    name: ClassVar[str] = "link_reset"

    between: tuple[LinkEnd, ...] = described("One side.")
    and_: tuple[LinkEnd, ...] = described(
        "The other side; by default all `others`.", default=(OTHERS,), shrinks=False
    )

    def problem(self) -> str | None:
        return no_link_reason(self.between, self.and_)

    def simpler(self) -> Iterator[Fault]:
        yield from with_fewer_ends(self)

    def applies(self, environment: Environment) -> bool:
        return bool(links_between(self.between, self.and_, one_way=True))

    def effects(self, environment: Environment) -> Effects:
        pairs = {frozenset(link): link for link in links_between(self.between, self.and_, one_way=True)}
        return [ResetLink(sender, receiver) for sender, receiver in pairs.values()]
