"""Injects a plan's faults into a cluster, when their time or their condition has come."""

from collections.abc import Callable
from dataclasses import fields, replace
from typing import Any, get_type_hints

from campaigns.clients import Clients
from campaigns.literal_texts import duration_range_text, duration_text
from campaigns.observer import ClusterObserver
from campaigns.run_result import InjectedFault
from cluster_model.choices import Stream, pick
from cluster_model.cluster import Cluster
from cluster_model.message_rule import MessageRule
from faults.endpoints import process_name
from faults.fault import Fault
from faults.injection import At, Every, Injection, Rate, When


class FaultInjector:
    """The surroundings that faults act on (`faults.fault.Surroundings`), and their schedule."""

    def __init__(
        self, cluster: Cluster, clients: Clients, observer: ClusterObserver, *, survivable: bool = False
    ) -> None:
        self._cluster = cluster
        self._clients = clients
        self._observer = observer
        self._survivable = survivable
        self._resolved: int | None = None
        self._lasts_us: int | None = None
        self._end_told: list[Any] | None = None
        self._is_injecting = False
        self._armed: list[_Triggered] = []
        self.draw: Stream = cluster.choices.schedule
        self.injected: list[InjectedFault] = []

    # The schedule

    def schedule(self, injection: Injection) -> None:
        """Put one entry of a campaign's ``faults:`` on the schedule."""
        timing = injection.timing
        if isinstance(timing, At):
            self._cluster.at(timing.at_us, self._strike, injection)
        elif isinstance(timing, When):
            self._armed.append(_Triggered(injection, timing))
        elif isinstance(timing, Every):
            self._next(injection, timing.start_us + timing.period_us, timing.stop_us)
        else:
            self._next(injection, timing.start_us + self._gap_us(timing), timing.stop_us)

    def has_triggers(self) -> bool:
        """Return whether conditions have to be looked at after every event."""
        return bool(self._armed)

    def check_triggers(self) -> None:
        """Inject what waits for a condition that has come to hold."""
        for triggered in list(self._armed):
            holds = triggered.timing.condition.holds(self._observer)
            if holds and not triggered.held:
                triggered.times += 1
                self._strike(triggered.injection)
                if triggered.times >= triggered.timing.times:
                    self._armed.remove(triggered)
            triggered.held = holds

    def stop(self) -> None:
        """No more triggered faults; `Cluster.heal` ends the scheduled ones."""
        self._armed.clear()

    def _gap_us(self, timing: Rate) -> int:
        """Return the time to the next random fault, evenly drawn around the mean."""
        return 1 + self.draw.below(2 * timing.mean_us)

    def _next(self, injection: Injection, at_us: int, stop_us: int) -> None:
        if at_us < stop_us:
            self._cluster.at(at_us, self._strike_and_repeat, injection)

    def _strike_and_repeat(self, injection: Injection) -> None:
        self._strike(injection)
        timing = injection.timing
        now_us = self.now_us
        if isinstance(timing, Every):
            self._next(injection, now_us + timing.period_us, timing.stop_us)
        elif isinstance(timing, Rate):
            self._next(injection, now_us + self._gap_us(timing), timing.stop_us)

    def _strike(self, injection: Injection) -> None:
        for _ in range(injection.together):
            self.inject(pick(self.draw, injection.faults))

    def inject(self, fault: Fault) -> bool:
        """Inject a fault now; return False when there was nothing to do it to."""
        position = len(self._cluster.trace.events)
        self._begin()
        struck = fault.inject(self)
        self._is_injecting = False
        if not struck:
            return False
        concrete = _concrete(fault, self._resolved, self._lasts_us)
        details = self._details(fault, concrete)
        strike = self._next_strike()
        if self._end_told is not None:
            self._end_told.extend((fault.name, details, strike))
        self.injected.append(
            InjectedFault(at_us=self.now_us, fault=fault.name, details=details, concrete=concrete)
        )
        # Told before what it did, so that a reader meets the cause first.
        told_strike = (self.now_us, "fault", fault.name, "inject", details, strike)
        self._cluster.trace.events.insert(position, told_strike)
        return True

    def _begin(self) -> None:
        self._resolved = None
        self._lasts_us = None
        self._end_told = None
        self._is_injecting = True

    def _next_strike(self) -> int:
        return len(self.injected) + 1

    def _details(self, fault: Fault, concrete: Fault) -> tuple[tuple[str, Any], ...]:
        """Return what is particular about a fault: what was given or drawn, and which broker it struck."""
        found = dict(given_fields(concrete, beside=fault))
        if self._resolved is not None:
            found.pop("broker", None)
            found = {"broker": self._resolved, **found}
        return tuple(found.items())

    # Surroundings

    @property
    def now_us(self) -> int:
        """Virtual time."""
        return self._cluster.simulator.now_us

    def after(self, delay_us: int, callback: Callable[[Any], None], argument: Any = None) -> None:
        """Call back later, unless the cluster has been healed by then.

        Raises:
            RuntimeError: a fault that has an end already, or is being ended, asks for another.

        """
        if not self._is_injecting or self._end_told is not None:
            raise RuntimeError("a fault has one end: `after` is called from `inject`, once at the most")
        self._lasts_us = delay_us
        # Which fault it is, and its details, are known when it has been injected.
        self._end_told = []
        self._cluster.at(self.now_us + delay_us, self._end, (self._end_told, callback, argument))

    def _end(self, fault: tuple[list[Any], Callable[[Any], None], Any]) -> None:
        told, callback, argument = fault
        if not self._was_ended(callback, argument):
            self._cluster.trace.add((self.now_us, "fault_ended", *told))
        callback(argument)

    def _was_ended(self, callback: Callable[[Any], None], argument: Any) -> bool:
        """Return whether a broker that is to wake up is not paused, or one that is to be started runs."""
        if callback == self.resume_broker:
            return not self.is_paused(argument)
        return callback == self.start_broker and self.is_running(argument)

    def resolve_broker(self, reference: int | str) -> int | None:
        """Return the broker that a reference means now; None when there is none."""
        self._resolved = self._resolve(reference)
        return self._resolved

    def _resolve(self, reference: int | str) -> int | None:
        if isinstance(reference, int):
            return reference
        if reference == "any":
            return pick(self.draw, self.broker_ids())
        if reference == "controller":
            return self._cluster.controller()
        role, _, partition = reference.partition(" of ")
        state = self._cluster.partition_state(partition)
        if state is None or state.leader < 0:
            return None
        if role == "leader":
            return state.leader
        followers = [b for b in self._cluster.replicas_of(partition) if b != state.leader]
        return pick(self.draw, followers) if followers else None

    def broker_ids(self) -> tuple[int, ...]:
        """Return the ids of all brokers."""
        return tuple(self._cluster.processes)

    def client_names(self) -> tuple[str, ...]:
        """Return the names of the clients."""
        return self._clients.names()

    def crash_broker(self, broker: int, *, power_loss: bool) -> None:
        """End a broker's process, or cut its machine's power."""
        self._cluster.crash_broker(broker, power_loss=power_loss)

    def may_lose_power(self, broker: int) -> bool:
        """Return whether enough copies of every committed record stay when a broker loses its power.

        Enough are ``min.insync.replicas``. What is committed is what any running replica says;
        where none runs nobody can tell, so nothing is risked.
        """
        return not self._survivable or all(
            self._can_spare(partition, broker)
            for partition in self._cluster.spec.partition_names()
            if broker in self._cluster.replicas_of(partition)
        )

    def _can_spare(self, partition: str, broker: int) -> bool:
        replicas = self._cluster.replicas_of(partition)
        running = [self._observer.replica(partition, replica) for replica in replicas]
        committed = max((replica.hw for replica in running if replica is not None), default=None)
        if committed is None:
            return False
        others = [
            self._cluster.disks[replica].log_file(partition).log_end_offset
            for replica in replicas
            if replica != broker
        ]
        enough = self._cluster.topic_config(partition.rpartition("-")[0]).min_insync_replicas
        return sum(end >= committed for end in others) >= enough

    def start_broker(self, broker: int) -> None:
        """Start a broker that is down."""
        self._cluster.start_broker(broker)

    def pause_broker(self, broker: int) -> None:
        """Stop a broker's process."""
        self._cluster.pause_broker(broker)

    def resume_broker(self, broker: int) -> None:
        """Let a paused broker go on."""
        self._cluster.resume_broker(broker)

    def is_running(self, broker: int) -> bool:
        """Return whether a broker's process exists."""
        return self._cluster.processes[broker].running

    def is_paused(self, broker: int) -> bool:
        """Return whether a broker's process is paused."""
        return self._cluster.processes[broker].paused

    def expire_session(self, broker: int) -> None:
        """Have ZooKeeper end a broker's session."""
        self._cluster.expire_session(broker)

    def delete_controller_znode(self) -> None:
        """Delete ``/controller``."""
        self._cluster.delete_controller_znode()

    def cut_link(self, sender: int | str, receiver: int | str) -> None:
        """Let no packet pass from one end to the other."""
        self._cluster.network.cut(process_name(sender), process_name(receiver))

    def restore_link(self, sender: int | str, receiver: int | str) -> None:
        """Undo one `cut_link`."""
        self._cluster.network.restore(process_name(sender), process_name(receiver))

    def add_message_rule(self, rule: MessageRule) -> None:
        """Put a rule for single messages in force."""
        rule.strike = self._next_strike()
        self._cluster.network.add_rule(rule)

    def remove_message_rule(self, rule: MessageRule) -> None:
        """Take a rule out of force."""
        self._cluster.network.remove_rule(rule)

    def release_messages(self, name: str) -> bool:
        """Remove the rule of that name; return whether there was one."""
        return self._cluster.network.release(name)


def given_fields(fault: Any, *, beside: Any = None) -> tuple[tuple[str, Any], ...]:
    """Return the fields of a fault that are not as by default; times as a campaign writes them.

    What is not as by default in the fault *beside* it is told, too: what was drawn there may be the default.
    """
    found: list[tuple[str, Any]] = []
    kinds = _field_types(type(fault))
    for item in fields(fault):
        value = getattr(fault, item.name)
        if value != item.default or (beside is not None and getattr(beside, item.name) != item.default):
            kind = kinds[item.name]
            found.append((item.name.rstrip("_"), _as_written(value, kind)))
    return tuple(found)


def _concrete(fault: Fault, broker: int | None, lasts_us: int | None) -> Fault:
    """Return a fault that has struck with the broker that it struck and the time that it lasts.

    What was drawn is noted rather than drawn beforehand: a fault that finds nothing to act on draws
    nothing, and runs stay as they are.
    """
    decided: dict[str, Any] = {}
    kinds = _field_types(type(fault))
    for item in fields(fault):  # type: ignore[arg-type]  # every fault is a dataclass
        value = getattr(fault, item.name)
        if "BrokerMarker" in kinds[item.name] and isinstance(value, str) and broker is not None:
            decided[item.name] = broker
        elif "DurationRangeMarker" in kinds[item.name] and value is not None and lasts_us is not None:
            decided[item.name] = (lasts_us, lasts_us)
    return replace(fault, **decided) if decided else fault  # type: ignore[type-var]  # every fault is a dataclass


def _field_types(fault: type[Any]) -> dict[str, str]:
    """Return how each field of a fault is written, by the markers in its type."""
    known = _FIELD_TYPES.get(fault)
    if known is None:
        hints = get_type_hints(fault, include_extras=True)
        known = _FIELD_TYPES[fault] = {name: repr(hint) for name, hint in hints.items()}
    return known


_FIELD_TYPES: dict[type[Any], dict[str, str]] = {}


def _as_written(value: Any, kind: str) -> Any:
    if "DurationRangeMarker" in kind:
        low_us, high_us = value
        return duration_range_text((low_us, high_us))
    return duration_text(value) if "DurationMarker" in kind else value


class _Triggered:
    """A fault that waits for a condition; it strikes each time the condition comes to hold."""

    __slots__ = ("held", "injection", "times", "timing")

    def __init__(self, injection: Injection, timing: When) -> None:
        self.injection = injection
        self.timing = timing
        self.times = 0
        self.held = False
