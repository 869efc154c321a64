"""What a fault would do to a cluster, found out by letting it act on none."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from enum import StrEnum
from itertools import islice
from typing import Any, Final, NamedTuple

from harrow.campaigns.language.plan import Plan
from harrow.cluster_model.fields import BrokerMarker, all_fields_of
from harrow.cluster_model.sim.message_rule import MessageRule
from harrow.faults.fault import Fault, GradualFault, LastingFault

_STEPS_MAX: Final = 10_000


class Deed(StrEnum):
    """Something that is done to a broker's process, to its machine, to a link, to a session."""

    KILL = "kill"
    STOP = "stop"
    PAUSE = "pause"
    CUT = "cut"
    START = "start"
    RESUME = "resume"
    RESTORE = "restore"
    LOSE_POWER = "lose_power"
    EXPIRE_SESSION = "expire_session"
    DELETE_CONTROLLER = "delete_controller"
    RULE_MESSAGES = "rule_messages"


class Rehearsed(NamedTuple):
    """A deed, and whom it is done to: a broker, or for a link its sender and its receiver."""

    deed: Deed
    ends: tuple[int | str, ...] = ()


def faults_of(plan: Plan) -> Iterator[Fault]:
    """Yield every fault of a plan, wherever it stands."""
    for step in plan.script:
        yield from (action for action in step.actions if isinstance(action, Fault))
    for injection in plan.faults:
        yield from injection.faults


def rehearsed(fault: Fault, plan: Plan) -> tuple[Rehearsed, ...]:
    """Return what a fault does, and what its end does, each once; a broker that is looked for when it strikes may be any."""
    stage = _Stage(plan)
    any_broker = stage.broker_ids()[0]
    looked_for = {
        item.attribute: any_broker
        for item in all_fields_of(type(fault))
        if item.kind is BrokerMarker and isinstance(item.of(fault), (str, tuple))
    }
    concrete: Any = replace(fault, **looked_for) if looked_for else fault  # type: ignore[type-var]  # every fault is a dataclass
    concrete.inject(stage)
    if isinstance(concrete, GradualFault):
        for _ in islice(concrete.steps(stage), _STEPS_MAX):
            pass
    if isinstance(concrete, LastingFault) and concrete.is_lasting():
        concrete.end(stage)
    return tuple(dict.fromkeys(stage.done))


class _Stage:
    """Takes note of what is done to it (`harrow.faults.fault.Environment`), in a cluster where all is well."""

    strike = 0

    def __init__(self, plan: Plan) -> None:
        self._plan = plan
        self._down: set[int] = set()
        self._paused: set[int] = set()
        self.done: list[Rehearsed] = []

    def broker_ids(self) -> tuple[int, ...]:
        return tuple(broker.id for broker in self._plan.cluster.brokers)

    def client_names(self) -> tuple[str, ...]:
        return tuple(spec.name for spec in self._plan.clients())

    def is_running(self, broker: int) -> bool:
        return broker not in self._down

    def is_paused(self, broker: int) -> bool:
        return broker in self._paused

    def is_stopping(self, broker: int) -> bool:  # noqa: ARG002 - it takes no time
        return False

    def crash_broker(self, broker: int, *, power_loss: bool) -> None:
        self._down.add(broker)
        self._do(Deed.LOSE_POWER if power_loss else Deed.KILL, broker)

    def may_lose_power(self, broker: int) -> bool:  # noqa: ARG002 - any may
        return True

    def stop_broker(self, broker: int) -> None:
        self._down.add(broker)
        self._do(Deed.STOP, broker)

    def start_broker(self, broker: int) -> None:
        self._down.discard(broker)
        self._do(Deed.START, broker)

    def pause_broker(self, broker: int) -> None:
        self._paused.add(broker)
        self._do(Deed.PAUSE, broker)

    def resume_broker(self, broker: int) -> None:
        self._paused.discard(broker)
        self._do(Deed.RESUME, broker)

    def expire_session(self, broker: int) -> None:
        self._do(Deed.EXPIRE_SESSION, broker)

    def controller(self) -> int | None:
        return self.broker_ids()[0]

    def under_replicated_partitions(self) -> tuple[str, ...]:
        return ()

    def delete_controller_znode(self) -> None:
        self._do(Deed.DELETE_CONTROLLER)

    def cut_link(self, sender: int | str, receiver: int | str) -> None:
        self._do(Deed.CUT, sender, receiver)

    def restore_link(self, sender: int | str, receiver: int | str) -> None:
        self._do(Deed.RESTORE, sender, receiver)

    def add_message_rule(self, rule: MessageRule) -> None:  # noqa: ARG002 - any rule
        self._do(Deed.RULE_MESSAGES)

    def remove_message_rules(self) -> None:
        """Do nothing: there are none without an `add_message_rule`."""

    def has_message_rule(self, name: str) -> bool:  # noqa: ARG002 - any rule
        return False

    def release_messages(self, name: str) -> None:
        """Do nothing: there are none without an `add_message_rule`."""

    def _do(self, deed: Deed, *ends: int | str) -> None:
        self.done.append(Rehearsed(deed, ends))


Lack = Callable[[Rehearsed], str | None]
"""Says why something cannot be done to a cluster; None where it can."""
