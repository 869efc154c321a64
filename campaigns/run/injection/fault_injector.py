"""Injects the faults of a plan into a target, each at its time or when its condition holds."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import chain, product, repeat
from typing import Any, NamedTuple, TypeVar

from harrow.campaigns.language.literals import field_text
from harrow.campaigns.language.plan import EVENTS_MAX, BlastRadius
from harrow.campaigns.language.spelling import listed
from harrow.campaigns.language.units import fields_text
from harrow.campaigns.run.injection.blast_radius import allows, spares_copies
from harrow.campaigns.run.injection.broker_references import BrokerReferences
from harrow.campaigns.run.run_result import InjectedFault
from harrow.campaigns.run.targets.target import Target
from harrow.cluster_model import fields as markers
from harrow.cluster_model.events import FaultEnded, FaultStruck, MessageRuleApplied
from harrow.cluster_model.fields import (
    DeclaredField,
    all_fields_of,
    draw_duration,
    fields_of_kind,
    with_fields,
)
from harrow.cluster_model.lazy_dataclass import dataclass
from harrow.cluster_model.registry import derived
from harrow.cluster_model.sim.choices import Stream, pick
from harrow.cluster_model.sim.simulator import StepLimitExceeded
from harrow.cluster_model.topology import FIRST_ZOOKEEPER_ID, ClusterSpec, server_text
from harrow.faults.brokers import POLL_US
from harrow.faults.clients import ALL, ANY
from harrow.faults.effects import FaultEffect
from harrow.faults.fault import (
    ClientApplication,
    Environment,
    Fault,
    GradualFault,
    LastingFault,
    MessageFault,
    process_name,
)
from harrow.faults.forecast_environment import ForecastEnvironment
from harrow.faults.injection import At, Every, Injection, Rate, When
from harrow.faults.link_ends import with_link_ends

F = TypeVar("F", bound=Fault)


class FaultInjector:
    """Schedules faults. When a fault strikes, it draws the values that the campaign leaves open.

    Each fault that strikes gets a number, counted from 1, by which its later events refer to it.
    """

    def __init__(
        self,
        target: Target,
        cluster: ClusterSpec,
        stream: Stream,
        blast_radius: BlastRadius | None = None,
        faults_limit: int = EVENTS_MAX,
    ) -> None:
        self._target = target
        self._stream = stream
        self._references = BrokerReferences(target, cluster, stream)
        self._blast_radius = blast_radius
        self._faults_limit = faults_limit
        # Also counts faults that find nothing to act on, because they take as much time.
        self._attempts = 0
        self._waiting_entries: list[_TriggeredEntry] = []
        # By the number of a fault that struck: when it ends. Gradual faults are in
        # `_gradual_strikes`.
        self._end_us_by_strike: dict[int, int] = {}
        self._gradual_strikes: set[int] = set()
        # The lasting faults that struck and have not been ended, by number.
        self._lasting_strikes: dict[int, _Strike] = {}
        # Entries whose `stop_when` has held, compared by identity, because entries may be equal.
        self._stopped: list[Injection] = []
        self._scheduled: list[Injection] = []
        # Faults that did not strike when they were last due, each with the reason. They are
        # compared by identity.
        self._not_struck: list[tuple[Fault, str]] = []
        self.injected: list[InjectedFault] = []
        # Whether a fault has struck. A rule for messages strikes when it acts on one.
        self._has_struck = False
        target.trace.subscribe(MessageRuleApplied, self._note_action_on_message)

    # The schedule

    def schedule(self, injection: Injection) -> None:
        self._scheduled.append(injection)
        timing = injection.timing
        if isinstance(timing, At):
            self._target.at(draw_duration(self._stream, timing.at_us), self._strike, injection)
        elif isinstance(timing, When):
            self._waiting_entries.append(_TriggeredEntry(injection, timing))
        elif isinstance(timing, Every):
            self._schedule(injection, timing.start_us + timing.period_us, timing.stop_us)
        else:
            self._schedule(injection, timing.start_us + self._gap_us(timing), timing.stop_us)

    def has_triggers(self) -> bool:
        """Return whether conditions have to be checked after every event."""
        return bool(self._waiting_entries)

    def check_triggers(self) -> None:
        """Inject each fault whose condition has just started to hold."""
        for entry in list(self._waiting_entries):
            holds = entry.timing.condition.holds(self._target.observer)
            if holds and not entry.held_before:
                entry.times += 1
                self._strike(entry.injection)
                if entry.times >= entry.timing.times:
                    self._waiting_entries.remove(entry)
            entry.held_before = holds

    def stop(self) -> None:
        """Stop waiting for conditions of faults. `Target.heal` ends the scheduled faults."""
        for entry in () if self._has_struck else self._waiting_entries:
            if not entry.times:
                lacking = "; ".join(entry.timing.condition.mismatches(self._target.observer))
                self._note_not_struck(entry.injection.faults, f"its condition never came to hold: {lacking}")
        self._waiting_entries.clear()

    def reasons_not_struck(self) -> tuple[str, ...]:
        """Return why each scheduled fault did not strike; nothing if any fault struck."""
        if self._has_struck:
            return ()
        lines: dict[str, None] = {}
        for injection in self._scheduled:
            was_due = any(self._why_not_struck(fault) for fault in injection.faults)
            other_reason = "it was not drawn" if was_due else "the run was over before it was due"
            for fault in injection.faults:
                name = f"{fault.name} {fields_text(_details(fault, fault))}".rstrip()
                lines[f"{name} did not strike: {self._why_not_struck(fault) or other_reason}"] = None
        return tuple(lines)

    def _note_not_struck(self, faults: Iterable[Fault], reason: str) -> None:
        # Reasons are reported only if no fault strikes.
        for fault in () if self._has_struck else faults:
            self._not_struck = [missed for missed in self._not_struck if missed[0] is not fault]
            self._not_struck.append((fault, reason))

    def _note_action_on_message(self, *_: object) -> None:
        self._has_struck = True

    def _why_not_struck(self, fault: Fault) -> str | None:
        if any(struck.origin is fault for struck in self.injected):
            return "it acted on no message"
        return next((reason for missed, reason in self._not_struck if missed is fault), None)

    def _gap_us(self, timing: Rate) -> int:
        """Draw the time to the next random fault, uniformly distributed around the mean."""
        return 1 + self._stream.below(2 * timing.mean_us)

    def _schedule(self, injection: Injection, at_us: int, stop_us: int) -> None:
        if at_us < stop_us:
            self._target.at(at_us, self._strike_and_repeat, injection)

    def _strike_and_repeat(self, injection: Injection) -> None:
        self._strike(injection)
        timing = injection.timing
        now_us = self._target.now_us
        if isinstance(timing, Every):
            self._schedule(injection, now_us + timing.period_us, timing.stop_us)
        elif isinstance(timing, Rate):
            self._schedule(injection, now_us + self._gap_us(timing), timing.stop_us)

    def _strike(self, injection: Injection) -> None:
        if injection.is_sequence():
            self._continue_sequence(self._sequence(injection))
        elif not self._is_stopped(injection):
            self._strike_once(injection)

    def _strike_once(self, injection: Injection) -> None:
        for _ in range(injection.together):
            self.inject(pick(self._stream, injection.faults))

    def _is_stopped(self, injection: Injection) -> bool:
        """Return whether `stop_when` holds, or held at an earlier time when the entry was due."""
        if injection.stop_when is None:
            return False
        if any(stopped is injection for stopped in self._stopped):
            return True
        holds = injection.stop_when.holds(self._target.observer)
        if holds:
            self._stopped.append(injection)
            self._note_not_struck(injection.faults, "`stop_when` held before it struck")
        return holds

    def _sequence(self, injection: Injection) -> Iterator[int]:
        """Inject one fault after the other. Yield how long to wait before continuing."""
        faults_per_round: tuple[Fault | None, ...] = injection.faults if injection.serial else (None,)
        rounds = chain.from_iterable(repeat(faults_per_round, injection.repeat))
        for number, fault in enumerate(rounds):
            if number and any(injection.pause):
                yield draw_duration(self._stream, injection.pause)
            if self._is_stopped(injection):
                return
            first = len(self.injected) + 1
            if fault is None:
                self._strike_once(injection)
            else:
                self.inject(fault)
            strikes = range(first, len(self.injected) + 1)
            while (wait_us := self._time_left_us(strikes)) > 0:
                yield wait_us

    def _time_left_us(self, strikes: Iterable[int]) -> int:
        """Return how long to wait before checking whether these strikes are over; 0 if they are.

        A fault that lasts until the cluster is healed counts as over.
        """
        if any(strike in self._gradual_strikes for strike in strikes):
            return POLL_US
        now_us = self._target.now_us
        return (
            max((self._end_us_by_strike.get(strike, now_us) for strike in strikes), default=now_us) - now_us
        )

    def _continue_sequence(self, sequence: Iterator[int]) -> None:
        wait_us = next(sequence, None)
        if wait_us is not None:
            self._target.at(self._target.now_us + wait_us, self._continue_sequence, sequence)

    def inject(self, fault: Fault) -> bool:
        """Inject a fault now, into each broker that it refers to.

        Return False if the fault did not strike; then none of its durations were drawn. A run with
        more faults than its limit is stopped: many faults can strike in one event of the simulator,
        and the simulator's own limit counts only events.
        """
        # All references are resolved before the first fault strikes. So the leaders of a topic, for
        # example, are its leaders at one moment.
        resolved = list(self._with_brokers(fault))
        self._attempts += max(1, len(resolved))
        if self._attempts > self._faults_limit:
            raise StepLimitExceeded(f"more than {self._faults_limit} faults")
        if not resolved:
            self._note_not_struck([fault], "nothing that it names existed")
        return any([self._inject(one, fault) for one in resolved])  # noqa: C419 - every fault has to be injected

    def _inject(self, resolved: Fault, fault: Fault) -> bool:
        if not resolved.applies(self._target.environment):
            if not self._has_struck:
                self._note_not_struck([fault], self._nothing_to_act_on(resolved))
            return False
        if self._blast_radius is not None and not allows(
            self._blast_radius, resolved, self._target, is_alone=not self._gradual_strikes
        ):
            self._note_not_struck([fault], "`blast_radius` did not allow it")
            return False
        if not spares_copies(resolved, self._target):
            self._note_not_struck(
                [fault], "it would have taken the last copies of committed records (`survivable`)"
            )
            return False
        environment = self._target.environment
        effects = (
            ForecastEnvironment(environment).effects_of(resolved)
            if isinstance(resolved, GradualFault)
            else list(resolved.effects(environment))
        )
        if obstacles := [reason for effect in effects if (reason := environment.lack(effect))]:
            self._note_not_struck([fault], obstacles[0])
            return False
        concrete = self._with_durations(resolved)
        details = _details(concrete, fault)
        strike = len(self.injected) + 1
        now_us = self._target.now_us
        # Emitted before the effects, so that the trace has the cause first.
        self._target.trace.emit(FaultStruck, fault.name, "inject", details, strike)
        self.injected.append(
            InjectedFault(
                at_us=now_us,
                fault=fault.name,
                details=details,
                concrete=_as_written(concrete),
                named=concrete.on_fixed_broker(),
                origin=fault,
            )
        )
        self._has_struck = self._has_struck or not isinstance(concrete, MessageFault)
        if isinstance(concrete, GradualFault):
            steps = concrete.steps(environment)
            self._gradual_strikes.add(strike)
            self._perform_steps((_Strike(concrete, details, strike), steps))
            return True
        self._perform(effects if concrete is resolved else list(concrete.effects(environment)), strike)
        if isinstance(concrete, LastingFault) and concrete.is_lasting():
            self._lasting_strikes[strike] = _Strike(concrete, details, strike)
            if (lasts_us := concrete.lasts_us()) is not None:
                self._end_us_by_strike[strike] = now_us + lasts_us
                self._target.at(now_us + lasts_us, self.end, strike)
        return True

    def in_force(self) -> list[int]:
        """Return the numbers of the lasting faults that can be ended.

        A rule for a number of messages is in force until it has acted on the last one.
        """
        environment = self._target.environment
        ruled = {rule.strike for rule in environment.message_rules()}
        return [
            number
            for number, (fault, _, _) in self._lasting_strikes.items()
            if fault.is_in_force(environment) and (number in ruled or not isinstance(fault, MessageFault))
        ]

    def _nothing_to_act_on(self, resolved: Fault) -> str:
        """Return why a fault does not apply, with the states of its brokers and clients."""
        environment = self._target.environment
        states = []
        for item in all_fields_of(type(resolved)):
            value = item.value_in(resolved)
            if item.kind is markers.BrokerMarker and isinstance(value, int):
                name = f"broker {value}" if value < FIRST_ZOOKEEPER_ID else process_name(value)
                states.append(f"{name} was {_state_of_broker(environment, value)}")
            elif item.kind is markers.ClientTargetMarker and value in environment.client_names():
                states.append(f"{value} was {_state_of_client(environment.client(value))}")
        return ": ".join(["it found nothing to act on", *([listed(states)] if states else [])])

    def _perform(self, effects: Iterable[FaultEffect], strike: int) -> None:
        environment = self._target.environment
        environment.strike = strike
        for effect in effects:
            environment.perform(effect)

    def _perform_steps(self, unfinished_strike: "tuple[_Strike, Iterator[FaultEffect | int]]") -> None:
        """Perform the next steps of a gradual fault, up to a step that waits.

        The last step ends the fault.
        """
        (fault, details, strike), steps = unfinished_strike
        for step in steps:
            if isinstance(step, FaultEffect):
                self._perform((step,), strike)
            else:
                self._target.at(self._target.now_us + step, self._perform_steps, unfinished_strike)
                return
        self._gradual_strikes.discard(strike)
        self._target.trace.emit(FaultEnded, fault.name, details, strike)

    def end(self, strike: int) -> None:
        """End a lasting fault, unless it has ended already."""
        struck = self._lasting_strikes.pop(strike, None)
        if struck is None:
            return
        fault, details, _ = struck
        environment = self._target.environment
        if fault.is_in_force(environment):
            self._target.trace.emit(FaultEnded, fault.name, details, strike)
            self._perform(fault.end(environment), strike)

    # Decisions

    def _with_brokers(self, fault: F) -> Iterator[F]:
        """Yield the fault once for each combination of brokers and links that it refers to."""
        brokers_by_field: dict[str, tuple[int, ...]] = {}
        for item in fields_of_kind(type(fault), markers.BrokerMarker):
            reference = item.value_in(fault)
            if _is_looked_up(reference):
                brokers_by_field[item.attribute] = self._references.brokers(reference)
        has_link_ends = bool(fields_of_kind(type(fault), markers.LinkEndMarker))
        for brokers in product(*brokers_by_field.values()):
            struck = with_fields(fault, dict(zip(brokers_by_field, brokers, strict=True)))
            if has_link_ends:
                environment = self._target.environment
                struck = with_link_ends(
                    *(struck, environment.broker_ids(), environment.client_names(), self._references.brokers),
                    self._target.observer.quorum(),
                )
            yield from (resolved.with_choices(self._stream) for resolved in self._with_clients(struck))

    def _with_clients(self, fault: F) -> Iterator[F]:
        """Yield the fault with a drawn client for ``any``, or with each client for ``all``."""
        for item in fields_of_kind(type(fault), markers.ClientTargetMarker):
            reference = item.value_in(fault)
            if reference in (ANY, ALL):
                candidates = [
                    with_fields(fault, {item.attribute: name})
                    for name in self._target.environment.client_names()
                ]
                applicable = [
                    candidate for candidate in candidates if candidate.applies(self._target.environment)
                ]
                yield from (
                    applicable if reference == ALL or not applicable else (pick(self._stream, applicable),)
                )
                return
        yield fault

    def _with_durations(self, fault: F) -> F:
        """Return the fault with a duration drawn from each range.

        A fault that does not last gets no drawn value for how long it lasts.
        """
        drawn: dict[str, tuple[int, int]] = {}
        for item in fields_of_kind(type(fault), markers.DurationRangeMarker):
            bounds = item.value_in(fault)
            if bounds is None or (item.kind is markers.LastsMarker and not fault.is_lasting()):
                continue
            duration_us = draw_duration(self._stream, bounds)
            if bounds != (duration_us, duration_us):
                drawn[item.attribute] = (duration_us, duration_us)
        return with_fields(fault, drawn)


def _state_of_broker(environment: Environment, broker: int) -> str:
    if not environment.is_running(broker):
        return "down"
    if environment.is_paused(broker):
        return "paused"
    return "stopping" if environment.is_stopping(broker) else "running"


def _state_of_client(client: ClientApplication) -> str:
    if not client.is_running():
        return "down"
    return "paused" if client.is_paused() else "running"


def _is_looked_up(reference: object) -> bool:
    """Return whether a reference has to be resolved; the id of a broker does not."""
    return isinstance(reference, (str, tuple)) or (
        isinstance(reference, int) and reference >= FIRST_ZOOKEEPER_ID
    )


class _Strike(NamedTuple):
    """A fault that struck, with its drawn values, its details for the trace, and its number."""

    fault: LastingFault
    details: tuple[tuple[str, Any], ...]
    number: int


def _as_written(fault: Fault) -> Fault:
    """Return a fault with defaults in the fields that no campaign can set."""
    return with_fields(fault, _unwritten_fields(type(fault)))


@derived
def _unwritten_fields(kind: type[Fault]) -> Mapping[str, Any]:
    """Return the defaults of the fields that no campaign can set, by attribute."""
    return {item.attribute: item.default for item in all_fields_of(kind) if not item.key}


def _details(fault: Fault, origin: Fault) -> tuple[tuple[str, Any], ...]:
    """Return the fields that differ from their defaults, brokers first, written as in a campaign.

    They also include a field that differs from its default in *origin*, the fault as the campaign
    writes it, because the value that was drawn may happen to be the default.
    """
    details = []
    for item, text in _detailed_fields(type(fault)):
        value = item.value_in(fault)
        if value != item.default or item.value_in(origin) != item.default:
            details.append((item.key or item.attribute, value if text is None else text(value)))
    return tuple(details)


@derived
def _detailed_fields(kind: type[Fault]) -> Sequence[tuple[DeclaredField, Callable[[Any], Any] | None]]:
    """Return the fields for the details, brokers first, each with its formatter."""
    shown = [item for item in all_fields_of(kind) if item.kind is not object]
    shown.sort(key=lambda item: item.kind is not markers.BrokerMarker)
    return [(item, _formatter(item.kind)) for item in shown]


def _formatter(kind: type[Any]) -> Callable[[Any], Any] | None:
    """Return the function that writes values of a kind as campaigns do; None if none is needed."""
    if issubclass(kind, (markers.BrokerMarker, markers.EndpointMarker)):
        return _ends_text
    if issubclass(kind, (markers.DurationMarker, markers.DurationRangeMarker, markers.BandwidthMarker)):
        return lambda value: None if value is None else field_text(kind, value)
    return None


def _ends_text(value: Any) -> Any:
    return tuple(map(server_text, value)) if isinstance(value, tuple) else server_text(value)


@dataclass(slots=True, eq=False)
class _TriggeredEntry:
    """An entry whose faults strike each time its condition starts to hold."""

    injection: Injection
    timing: When
    times: int = 0
    held_before: bool = False
