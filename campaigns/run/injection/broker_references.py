"""Resolves references to brokers at the moment when a fault strikes."""

from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from math import ceil

from harrow.campaigns.run.targets.target import Target
from harrow.cluster_model.sim.choices import Stream, pick
from harrow.cluster_model.topology import FIRST_ZOOKEEPER_ID, ClusterSpec, quorum_counterpart
from harrow.faults.clients import ANY
from harrow.faults.link_ends import ZOOKEEPER


class BrokerReferences:
    """Resolves references such as ``leader of t-0``, ``rack any`` and ``random 2``."""

    def __init__(self, target: Target, cluster: ClusterSpec, stream: Stream) -> None:
        self._target = target
        self._cluster = cluster
        self._stream = stream

    def brokers(self, reference: object) -> tuple[int, ...]:
        """Return the brokers that a reference or a list of references refers to now, each once."""
        references = reference if isinstance(reference, tuple) else (reference,)
        return tuple(dict.fromkeys(chain.from_iterable(map(self._resolve, references))))

    def _resolve(self, reference: object) -> Iterable[int]:
        if isinstance(reference, int):
            quorum = self._target.observer.quorum()
            if reference < FIRST_ZOOKEEPER_ID or reference in quorum:
                return (reference,)
            # The plan may name ZooKeeper servers, although the cluster runs in KRaft mode.
            counterpart = quorum_counterpart(reference, quorum)
            return () if counterpart is None else (counterpart,)
        word, _, rest = str(reference).partition(" ")
        if word == ANY:
            return self._random(1)
        if word == "random":
            return self._random(int(rest))
        if word.endswith("%"):
            return self._random(ceil(len(self._brokers) * int(word[:-1]) / 100))
        if word == "all":
            return self._brokers
        if word == "controller":
            controller = self._target.observer.controller()
            return () if controller is None else (controller,)
        if word == "rack":
            return self._in_rack(rest)
        return self._with_role(word, rest.removeprefix("of "))

    @property
    def _brokers(self) -> tuple[int, ...]:
        return self._target.environment.broker_ids()

    def _in_rack(self, name: str) -> Iterator[int]:
        brokers = self._cluster.brokers
        if name == ANY:
            racks = tuple(dict.fromkeys(broker.rack for broker in brokers if broker.rack is not None))
            name = pick(self._stream, racks)
        yield from (broker.id for broker in brokers if broker.rack == name)

    def _random(self, count: int) -> Sequence[int]:
        remaining, drawn = list(self._brokers), []
        for _ in range(min(count, len(remaining))):
            drawn.append(pick(self._stream, remaining))
            remaining.remove(drawn[-1])
        return drawn

    def _with_role(self, role: str, name: str) -> Iterator[int]:
        """Yield the brokers that have a role.

        For a partition these are its leader, its followers or a random follower. For a topic they
        are the leaders of all its partitions. The name ``zookeeper`` stands for the quorum of the
        control plane.
        """
        observer = self._target.observer
        if name == ZOOKEEPER and role != "leaders":
            leader = observer.quorum_leader()
            if leader is not None:
                yield from self._members_with_role(role, leader, observer.quorum())
            return
        partitions: tuple[str, ...] = (
            pick(self._stream, self._target.partition_names()) if name == ANY else name,
        )
        if role == "leaders":
            partitions = tuple(p for p in self._target.partition_names() if p.rpartition("-")[0] == name)
        for partition in partitions:
            state = observer.partition_state(partition)
            if state is None or state[0] < 0:
                continue
            yield from self._members_with_role(role, state[0], observer.replicas_of(partition))

    def _members_with_role(self, role: str, leader: int, members: Sequence[int]) -> Sequence[int]:
        followers = [member for member in members if member != leader]
        if role == "followers":
            return followers
        if role != "follower":
            return (leader,)
        return (pick(self._stream, followers),) if followers else ()
