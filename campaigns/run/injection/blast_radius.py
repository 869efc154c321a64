"""How much of a cluster faults may take out of service at once.

What a fault would do is found out by letting it act on a stand-in of the cluster as it is now, which takes note and passes
nothing on. So a limit holds for every fault, also for one that was not foreseen here.
"""

from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Final

from harrow.campaigns.language.plan import BlastRadius
from harrow.campaigns.run.targets.target import Target
from harrow.cluster_model.sim.link_quality import LinkQuality
from harrow.cluster_model.sim.message_rule import MessageRule
from harrow.faults.fault import Environment, Fault, GradualFault, Link
from harrow.faults.links.link_ends import ZOOKEEPER

_STEPS_MAX: Final = 10_000

Outage = tuple[frozenset[int], frozenset[int]]
"""The brokers, and the servers of ZooKeeper or controllers of KRaft, that are out of service."""


def allows(limits: BlastRadius, fault: Fault, target: Target, *, is_alone: bool) -> bool:
    """Return whether a fault leaves as much of a cluster in service as the limits ask for, all the while that it is done.

    One that takes no broker out of service is allowed whatever is out already: it may be what ends an outage. One that does is
    not while another takes out one broker after the other, as a rolling restart does, and this one is not *alone*.
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
    """Return whether a fault leaves a copy of each committed record in service from which a leader comes (``survivable``).

    One that takes copies leaves as many as are enough. While a broker could be elected that has lost committed records, no fault takes
    the last one out of service that has them: an election would find nobody else.
    """
    copies = target.committed_copies()
    if not copies:
        return True
    rehearsal = _Rehearsal(target.environment, target.observer.quorum())
    out_before, _ = rehearsal.out_of_service()
    out = frozenset[int]().union(*(outage for outage, _ in _outages(fault, rehearsal)))
    for partition in copies.values():
        left = partition.whole - rehearsal.emptied - out
        if partition.whole & rehearsal.emptied:
            if len(left) < partition.enough:
                return False
        elif partition.hollow and not left and partition.whole - out_before:
            return False
    return True


def _outages(fault: Fault, rehearsal: "_Rehearsal") -> Iterator[Outage]:
    """Yield who is out of service at each moment of a fault."""
    fault.inject(rehearsal)
    yield from rehearsal.outages
    yield rehearsal.out_of_service()
    if isinstance(fault, GradualFault):
        rehearsal.outages.clear()
        for _ in islice(fault.steps(rehearsal), _STEPS_MAX):
            yield from rehearsal.outages
            rehearsal.outages.clear()
        yield from rehearsal.outages


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
        # Where none of them is struck, the partition is as it was.
        if struck & electable and len(electable - out) < limits.keep_in_sync:
            return False
    return True


class _Untouched:
    """A stand-in of a client (`harrow.faults.fault.ClientApplication`), to which nothing is done."""

    def is_running(self) -> bool:
        return True

    def is_paused(self) -> bool:
        return False

    def can_be_left_behind(self) -> bool:
        return True

    def crash(self) -> None:
        """Do nothing."""

    start_again = pause = resume = leave_behind = close = crash

    def step_clock(self, by_us: int) -> None:
        """Do nothing."""

    slow_down = step_clock

    def steps(self) -> tuple[str, ...]:
        return ()

    def hold_at(self, step: str, passes: int) -> None:
        """Do nothing."""

    def held_at(self) -> str | None:
        return "a step"

    def can_be_slowed(self) -> bool:
        return True

    def is_member(self) -> bool:
        return True


class _Rehearsal:
    """A stand-in of an environment: what is done to it is noted, and seen as if it had been done."""

    strike = 0

    def __init__(self, environment: Environment, quorum: Sequence[int]) -> None:
        self._real = environment
        self._quorum = quorum
        self._down: dict[int, bool] = {}
        self._paused: dict[int, bool] = {}
        self._cut: set[Link] = set()
        self._expired: set[int] = set()
        self.emptied: set[int] = set()
        """The brokers that lose records: with their power or with their disks."""
        self.outages: list[Outage] = []
        self.broker_ids = environment.broker_ids
        self.client_names = environment.client_names
        self.controller = environment.controller
        self.may_lose_power = environment.may_lose_power
        self.has_logs = environment.has_logs
        self.may_lose_disk = environment.may_lose_disk
        self.has_message_rule = environment.has_message_rule

    def client(self, name: str) -> _Untouched:
        return _Untouched()

    def out_of_service(self) -> Outage:
        """Return the brokers that are down, stop, are paused, have lost their session, or are cut off, and the servers of the control plane.

        Cut off is who does not reach ZooKeeper, or the quorum, or most of those who are in service, the worst first. Of two that do not reach
        each other neither is, where both reach a third.
        """
        servers = self._connected([node for node in self._quorum if self._is_up(node)])
        serving = self._connected(
            [
                broker
                for broker in self.broker_ids()
                if self._is_up(broker) and broker not in self._expired and self._reaches(broker, servers)
            ]
        )
        return frozenset(self.broker_ids()).difference(serving), frozenset(self._quorum).difference(servers)

    def _connected(self, serving: list[int]) -> list[int]:
        """Return who is left without those that most of the others do not reach."""
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
        """Return whether a broker reaches the control plane: most of its servers that serve, as far as there are any."""
        cuts = sum(server != broker and self._is_cut(broker, server) for server in servers)
        return not self._is_cut(broker, ZOOKEEPER) and 2 * cuts <= len(servers)

    def _is_cut(self, one: int | str, other: int | str) -> bool:
        return any(
            link in self._cut or self._real.is_link_cut(*link) for link in ((one, other), (other, one))
        )

    def is_running(self, broker: int) -> bool:
        return not self._down[broker] if broker in self._down else self._real.is_running(broker)

    def is_paused(self, broker: int) -> bool:
        return self._paused[broker] if broker in self._paused else self._real.is_paused(broker)

    def is_stopping(self, broker: int) -> bool:
        return broker not in self._down and self._real.is_stopping(broker)

    def is_link_cut(self, sender: int | str, receiver: int | str) -> bool:
        return (sender, receiver) in self._cut or self._real.is_link_cut(sender, receiver)

    def under_replicated_partitions(self) -> tuple[str, ...]:
        # A fault that waits for the ISR has it complete when it goes on.
        return ()

    def crash_broker(self, broker: int, *, power_loss: bool, torn_after: int | None = None) -> None:
        if power_loss:
            self.emptied.add(broker)
        self.stop_broker(broker)

    def lose_disk(self, broker: int) -> None:
        self.emptied.add(broker)

    def log_dirs(self) -> int:
        return self._real.log_dirs()

    def fail_log_dir(self, broker: int, log_dir: int, room_bytes: int = 0) -> None:
        self.stop_broker(broker)

    def repair_log_dir(self, broker: int, log_dir: int, room_bytes: int = 0) -> None:
        """Do nothing: who has ended for it is started apart."""

    def slow_broker(self, broker: int, request_us: int) -> None:
        """Do nothing: it stays in service."""

    def recover_broker(self, broker: int, request_us: int) -> None:
        """Do nothing: it stays in service."""

    def slow_disk(self, broker: int, write_us: int) -> None:
        """Do nothing: it stays in service."""

    def recover_disk(self, broker: int, write_us: int) -> None:
        """Do nothing: it stays in service."""

    def step_clock(self, end: int | str, by_us: int) -> None:
        """Do nothing: it stays in service."""

    def has_batch(self, broker: int, partition: str, offset: int | None) -> bool:
        return self._real.has_batch(broker, partition, offset)

    def damage_batch(self, broker: int, partition: str, offset: int | None) -> None:
        self.emptied.add(broker)

    def revert_checkpoint(self, broker: int, name: str, age_us: int | None) -> None:
        """Do nothing: it is down already."""

    def stop_broker(self, broker: int) -> None:
        self._down[broker] = True
        self._note()

    def start_broker(self, broker: int) -> None:
        self._down[broker] = False

    def pause_broker(self, broker: int) -> None:
        self._paused[broker] = True
        self._note()

    def resume_broker(self, broker: int) -> None:
        self._paused[broker] = False

    def expire_session(self, broker: int) -> None:
        self._expired.add(broker)
        self._note()

    def delete_controller_znode(self) -> None:
        """Do nothing: the controller's broker stays in service."""

    def cut_link(self, sender: int | str, receiver: int | str) -> None:
        self._cut.add((sender, receiver))

    def restore_link(self, sender: int | str, receiver: int | str) -> None:
        self._cut.discard((sender, receiver))

    def degrade_link(self, sender: int | str, receiver: int | str, quality: LinkQuality) -> None:
        """Do nothing: what is slow is in service."""

    def recover_link(self, sender: int | str, receiver: int | str, quality: LinkQuality) -> None:
        """Do nothing: see `degrade_link`."""

    def reset_link(self, one: int | str, other: int | str) -> None:
        """Do nothing: both ends connect anew."""

    def add_message_rule(self, rule: MessageRule) -> None:
        """Do nothing: whom it keeps from serving hangs on what is sent."""

    def remove_message_rules(self) -> None:
        """Do nothing: see `add_message_rule`."""

    def release_messages(self, name: str) -> None:
        """Do nothing: see `add_message_rule`."""

    def _note(self) -> None:
        self.outages.append(self.out_of_service())
