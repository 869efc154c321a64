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
"""The brokers that are out of service, and the ZooKeeper servers or KRaft controllers that are."""


class _OutageForecast(ForecastEnvironment):
    """Forecasts which brokers and servers the effects of a fault take out of service."""

    def __init__(self, environment: Environment, quorum: Sequence[int]) -> None:
        super().__init__(environment)
        self._quorum = quorum

    def out_of_service(self) -> Outage:
        """Return the brokers, and the servers of the control plane, that are out of service.

        A broker is out of service if it is down, stopping, paused or without its session, or if it
        is cut off: it cannot reach ZooKeeper or the quorum, or it cannot reach most of the brokers
        that are in service. To decide this, brokers with the most cut links are removed first. If
        two brokers cannot reach each other but both reach a third, neither is cut off.
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
        """Return *serving* without the nodes that most of the other nodes cannot reach."""
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
        """Return whether a broker reaches most of *servers*, the servers in service."""
        cuts = sum(server != broker and self._is_cut(broker, server) for server in servers)
        return not self._is_cut(broker, ZOOKEEPER) and 2 * cuts <= len(servers)

    def _is_cut(self, one: int | str, other: int | str) -> bool:
        return self.is_link_cut(one, other) or self.is_link_cut(other, one)


def allows(limits: BlastRadius, fault: Fault, target: Target, *, is_alone: bool) -> bool:
    """Return whether the cluster stays within its limits for the whole time that a fault acts.

    A fault that takes no broker out of service is always allowed: it may end an outage. Any other
    fault is refused while a gradual fault, such as a rolling restart, takes brokers out of service
    one after the other. *is_alone* means that there is no such fault.
    """
    outage_forecast = _OutageForecast(target.environment, target.observer.quorum())
    out_before, servers_before = outage_forecast.out_of_service()
    for out, servers in _outages(fault, outage_forecast):
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
    lost committed records could be elected, no fault must take out of service the last broker that
    still has these records. Otherwise an election could only choose the broker that lost them.
    """
    copies = target.committed_copies()
    if not copies:
        return True
    outage_forecast = _OutageForecast(target.environment, target.observer.quorum())
    out_before, _ = outage_forecast.out_of_service()
    out = frozenset[int]().union(*(outage for outage, _ in _outages(fault, outage_forecast)))
    for partition in copies.values():
        remaining = partition.complete - outage_forecast.forecast.emptied_disks - out
        if partition.complete & outage_forecast.forecast.emptied_disks:
            if len(remaining) < partition.min_isr:
                return False
        elif partition.incomplete and not remaining and partition.complete - out_before:
            return False
    return True


def _outages(fault: Fault, outage_forecast: _OutageForecast) -> Iterator[Outage]:
    """Yield the outage at each moment of a fault."""
    is_gradual = isinstance(fault, GradualFault)
    if is_gradual:
        yield outage_forecast.out_of_service()
    for effect in outage_forecast.effects_of(fault):
        if effect.disables:
            yield outage_forecast.out_of_service()
    if not is_gradual:
        yield outage_forecast.out_of_service()


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
        # A fault that strikes no electable broker changes nothing for the partition.
        if struck & electable and len(electable - out) < limits.keep_in_sync:
            return False
    return True
