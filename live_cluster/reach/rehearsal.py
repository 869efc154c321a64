"""What a fault would do to a cluster, found out by letting it act on none."""

from collections.abc import Callable, Iterator
from enum import StrEnum
from itertools import cycle, islice
from typing import Final, NamedTuple

from harrow.campaigns.language.plan import Plan
from harrow.cluster_model.fields import BrokerMarker, all_fields_of, with_fields
from harrow.cluster_model.sim.link_quality import LinkQuality
from harrow.cluster_model.sim.message_rule import MessageRule
from harrow.cluster_model.topology import ApplicationSpec
from harrow.faults.action import Action
from harrow.faults.fault import Fault, GradualFault, LastingFault
from harrow.faults.links.link_ends import with_link_ends

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
    DEGRADE = "degrade"
    RESET = "reset"
    LOSE_POWER = "lose_power"
    TEAR_WRITE = "tear_write"
    LOSE_DISK = "lose_disk"
    FAIL_LOG_DIR = "fail_log_dir"
    SLOW_DISK = "slow_disk"
    DAMAGE_BATCH = "damage_batch"
    REVERT_CHECKPOINT = "revert_checkpoint"
    REMOVE_CHECKPOINT = "remove_checkpoint"
    STEP_CLOCK = "step_clock"
    EXPIRE_SESSION = "expire_session"
    DELETE_CONTROLLER = "delete_controller"
    RULE_MESSAGES = "rule_messages"
    KILL_CLIENT = "kill_client"
    PAUSE_CLIENT = "pause_client"
    DOUBLE_CLIENT = "double_client"
    HOLD_CLIENT = "hold_client"
    SLOW_CLIENT = "slow_client"
    CLOSE_CLIENT = "close_client"


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


def actions_of(plan: Plan) -> Iterator[Action]:
    """Yield every action of a plan's script that is no fault."""
    for step in plan.script:
        yield from (action for action in step.actions if not isinstance(action, Fault))


def applications_of(plan: Plan) -> tuple[ApplicationSpec, ...]:
    """Return the applications of a plan, without clients of kinds that others have added."""
    return tuple(spec for spec in plan.applications if isinstance(spec, ApplicationSpec))


def rehearsed(fault: Fault, plan: Plan) -> tuple[Rehearsed, ...]:
    """Return what a fault does, and what its end does, each once; a broker that is looked for when it strikes may be any."""
    stage = _Stage(plan)
    any_broker = stage.broker_ids()[0]
    looked_for = {
        item.attribute: any_broker
        for item in all_fields_of(type(fault))
        if item.kind is BrokerMarker and isinstance(item.of(fault), (str, tuple))
    }
    struck = with_fields(fault, looked_for)
    brokers = stage.broker_ids()
    # Of those that are looked for each is another one, as far as there are any: else no link would be between them.
    others = cycle((*brokers[1:], any_broker))
    concrete = with_link_ends(struck, brokers, stage.client_names(), lambda _: (next(others),))
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

    def client(self, name: str) -> "_StageClient":
        return _StageClient(name, self.done)

    def is_running(self, broker: int) -> bool:
        return broker not in self._down

    def is_paused(self, broker: int) -> bool:
        return broker in self._paused

    def is_stopping(self, broker: int) -> bool:
        return False

    def crash_broker(self, broker: int, *, power_loss: bool, torn_after: int | None = None) -> None:
        self._down.add(broker)
        if torn_after is not None:
            self._do(Deed.TEAR_WRITE, broker)
        self._do(Deed.LOSE_POWER if power_loss else Deed.KILL, broker)

    def has_logs(self, broker: int) -> bool:
        return True

    def may_lose_disk(self, broker: int) -> bool:
        return True

    def lose_disk(self, broker: int) -> None:
        self._do(Deed.LOSE_DISK, broker)

    def log_dirs(self) -> int:
        return self._plan.cluster.disk.log_dirs

    def fail_log_dir(self, broker: int, log_dir: int, room_bytes: int = 0) -> None:
        self._do(Deed.FAIL_LOG_DIR, broker)

    def repair_log_dir(self, broker: int, log_dir: int, room_bytes: int = 0) -> None:
        """Do nothing: there is none without a `fail_log_dir`."""

    def slow_broker(self, broker: int, request_us: int) -> None:
        senders: tuple[int | str, ...] = (*self.broker_ids(), *self.client_names())
        for sender in senders:
            self._do(Deed.DEGRADE, sender, broker)

    def recover_broker(self, broker: int, request_us: int) -> None:
        """Do nothing: there is none without a `slow_broker`."""

    def slow_disk(self, broker: int, write_us: int) -> None:
        self._do(Deed.SLOW_DISK, broker)

    def recover_disk(self, broker: int, write_us: int) -> None:
        """Do nothing: there is none without a `slow_disk`."""

    def step_clock(self, end: int | str, by_us: int) -> None:
        self._do(Deed.STEP_CLOCK, end)

    def has_batch(self, broker: int, partition: str, offset: int | None) -> bool:
        return True

    def damage_batch(self, broker: int, partition: str, offset: int | None) -> None:
        self._do(Deed.DAMAGE_BATCH, broker)

    def revert_checkpoint(self, broker: int, name: str, age_us: int | None) -> None:
        self._do(Deed.REMOVE_CHECKPOINT if age_us is None else Deed.REVERT_CHECKPOINT, broker)

    def may_lose_power(self, broker: int) -> bool:
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

    def is_link_cut(self, sender: int | str, receiver: int | str) -> bool:
        return False

    def degrade_link(self, sender: int | str, receiver: int | str, quality: LinkQuality) -> None:
        self._do(Deed.DEGRADE, sender, receiver)

    def recover_link(self, sender: int | str, receiver: int | str, quality: LinkQuality) -> None:
        """Do nothing: what degrades a link recovers it."""

    def reset_link(self, one: int | str, other: int | str) -> None:
        self._do(Deed.RESET, one, other)

    def add_message_rule(self, rule: MessageRule) -> None:
        self._do(Deed.RULE_MESSAGES)

    def remove_message_rules(self) -> None:
        """Do nothing: there are none without an `add_message_rule`."""

    def has_message_rule(self, name: str) -> bool:
        return False

    def release_messages(self, name: str) -> None:
        # It takes a rule to release something, wherever the campaign makes it.
        self._do(Deed.RULE_MESSAGES)

    def _do(self, deed: Deed, *ends: int | str) -> None:
        self.done.append(Rehearsed(deed, ends))


class _StageClient:
    """Takes note of what is done to a client (`harrow.faults.fault.ClientApplication`)."""

    def __init__(self, name: str, done: list[Rehearsed]) -> None:
        self._name = name
        self._done = done

    def is_running(self) -> bool:
        return True

    def is_paused(self) -> bool:
        return False

    def crash(self) -> None:
        self._done.append(Rehearsed(Deed.KILL_CLIENT, (self._name,)))

    def start_again(self) -> None:
        """Do nothing: what kills a client starts it again."""

    def pause(self) -> None:
        self._done.append(Rehearsed(Deed.PAUSE_CLIENT, (self._name,)))

    def resume(self) -> None:
        """Do nothing: what pauses a client resumes it."""

    def step_clock(self, by_us: int) -> None:
        """Do nothing: the stage notes it."""

    def can_be_left_behind(self) -> bool:
        return True

    def leave_behind(self) -> None:
        self._done.append(Rehearsed(Deed.DOUBLE_CLIENT, (self._name,)))

    def steps(self) -> tuple[str, ...]:
        return ()

    def hold_at(self, step: str, passes: int) -> None:
        self._done.append(Rehearsed(Deed.HOLD_CLIENT, (self._name,)))

    def held_at(self) -> str | None:
        return "a step"

    def can_be_slowed(self) -> bool:
        return True

    def slow_down(self, by_us: int) -> None:
        self._done.append(Rehearsed(Deed.SLOW_CLIENT, (self._name,)))

    def is_member(self) -> bool:
        return True

    def close(self) -> None:
        self._done.append(Rehearsed(Deed.CLOSE_CLIENT, (self._name,)))


Lack = Callable[[Rehearsed], str | None]
"""Says why something cannot be done to a cluster; None where it can."""
