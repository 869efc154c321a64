"""Limits how much of a cluster faults may take out of service at once.

Each effect of a fault declares which brokers it disables, so a limit is checked before any effect
is performed. The limit applies to every fault, including faults of plugins.
"""

from collections.abc import Iterator, Sequence

from harrow.campaigns.language.plan import BlastRadius
from harrow.campaigns.run.targets.target import Target
from harrow.faults.fault import Environment, Fault, GradualFault
from harrow.faults.forecast_environment import ForecastEnvironment
from harrow.faults.link_ends import ZOOKEEPER

Outage = tuple[frozenset[int], frozenset[int]]
"""The brokers, and the ZooKeeper servers or KRaft controllers, that are out of service."""


class _Rehearsal(ForecastEnvironment):
    """A forecast of a fault's effects that shows which brokers and servers are out of service."""

    def __init__(self, environment: Environment, quorum: Sequence[int]) -> None:
        super().__init__(environment)
        self._quorum = quorum

    def out_of_service(self) -> Outage:
        """Return the brokers and servers of the control plane that are out of service.

        A broker is out of service if it is down, stopping, paused or without its session, or if it
        is cut off: it cannot reach ZooKeeper or the quorum, or cannot reach most brokers in
        service. Brokers with the most cut links are removed first. If two brokers cannot reach each
        other but both reach a third, neither is cut off.
        """
        servers = self._connected([node for node in self._quorum if self._is_up(node)])
        serving = self._connected(
            [
                broker
                for broker in self.broker_ids()
                if self._is_up(broker)
                and broker not in self.forecast.expired_sessions
                and self._reaches(broker, servers)
            ]
        )
        return frozenset(self.broker_ids()).difference(serving), frozenset(self._quorum).difference(servers)

    def _connected(self, serving: list[int]) -> list[int]:
        """Return the nodes without those that most of the others cannot reach."""
        while serving:
            cuts = {one: sum(self._is_cut(one, other) for other in serving) for one in serving}
            worst = max(serving, key=lambda node: (cuts[node], node))
            if 2 * cuts[worst] <= len(serving) - 1:
                break
            serving.remove(worst)
        return serving

    def _is_up(self, node: int) -> bool:
        return self.is_running(node) and not self.is_stopping(node) and not self.is_paused(node)

    def _reaches(self, broker: int, servers: Sequence[int]) -> bool:
        """Return whether a broker reaches most of the control plane's servers in service."""
        cuts = sum(server != broker and self._is_cut(broker, server) for server in servers)
        return not self._is_cut(broker, ZOOKEEPER) and 2 * cuts <= len(servers)

    def _is_cut(self, one: int | str, other: int | str) -> bool:
        return self.is_link_cut(one, other) or self.is_link_cut(other, one)


def allows(limits: BlastRadius, fault: Fault, target: Target, *, is_alone: bool) -> bool:
    """Return whether the cluster stays within its limits for the whole time that a fault acts.

    A fault that takes no broker out of service is always allowed: it may end an outage. Any other
    fault is refused unless it *is_alone*: no other fault takes brokers out of service one after the
    other, as a rolling restart does.
    """
    rehearsal = _Rehearsal(target.environment, target.observer.quorum())
    out_before, servers_before = rehearsal.out_of_service()
    for out, servers in _outages(fault, rehearsal):
        if not out <= out_before and not (is_alone and _is_within(limits, out, out - out_before, target)):
            return False
        if limits.keep_majority and not servers <= servers_before:
            quorum = len(target.observer.quorum())
            if not is_alone or 2 * (quorum - len(servers)) <= quorum:
                return False
    return True


def spares_copies(fault: Fault, target: Target) -> bool:
    """Return whether a fault leaves enough copies of each committed record (``survivable``).

    A fault that destroys copies must leave ``min.insync.replicas`` of them. While a broker that has
    lost committed records could be elected, no fault may take the last broker that still has them
    out of service: an election would have no other candidate.
    """
    copies = target.committed_copies()
    if not copies:
        return True
    rehearsal = _Rehearsal(target.environment, target.observer.quorum())
    out_before, _ = rehearsal.out_of_service()
    out = frozenset[int]().union(*(outage for outage, _ in _outages(fault, rehearsal)))
    for partition in copies.values():
        remaining = partition.complete - rehearsal.forecast.emptied_disks - out
        if partition.complete & rehearsal.forecast.emptied_disks:
            if len(remaining) < partition.min_isr:
                return False
        elif partition.incomplete and not remaining and partition.complete - out_before:
            return False
    return True


def _outages(fault: Fault, rehearsal: _Rehearsal) -> Iterator[Outage]:
    """Yield the outage at each moment of a fault."""
    is_gradual = isinstance(fault, GradualFault)
    if is_gradual:
        yield rehearsal.out_of_service()
    for effect in rehearsal.effects_of(fault):
        if effect.disables:
            yield rehearsal.out_of_service()
    if not is_gradual:
        yield rehearsal.out_of_service()


def _is_within(limits: BlastRadius, out: frozenset[int], struck: frozenset[int], target: Target) -> bool:
    brokers = target.environment.broker_ids()
    if limits.brokers is not None and len(out) > limits.brokers:
        return False
    if limits.keep_majority and 2 * (len(brokers) - len(out)) <= len(brokers):
        return False
    if not limits.keep_in_sync:
        return True
    for partition in target.partition_settings():
        electable = frozenset(target.observer.electable(partition))
        # If the fault strikes none of them, nothing changes for the partition.
        if struck & electable and len(electable - out) < limits.keep_in_sync:
            return False
    return True
