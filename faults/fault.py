"""What a fault is: data, and what it does to processes, disks, links and sessions."""

from abc import abstractmethod
from collections.abc import Iterable, Iterator
from typing import ClassVar, Protocol, Self

from harrow.cluster_model import topology
from harrow.cluster_model.fields import LastsMarker, all_fields_of
from harrow.cluster_model.sim.choices import Stream
from harrow.cluster_model.sim.link_quality import LinkQuality
from harrow.cluster_model.sim.message_rule import MessageRule
from harrow.faults.action import Action, Operator

Link = tuple[int | str, int | str]
"""One direction of a link: the sender and the receiver. An end is a broker's id, a client's name, or ``zookeeper``."""


def process_name(endpoint: int | str) -> str:
    """Return the name of the process at an end of a link."""
    return topology.process_name(endpoint) if isinstance(endpoint, int) else endpoint


def process_names(endpoints: Iterable[int | str]) -> frozenset[str]:
    """Return the names of several."""
    return frozenset(process_name(endpoint) for endpoint in endpoints)


class BrokerProcesses(Protocol):
    """Which brokers there are, and what state their processes are in."""

    def broker_ids(self) -> tuple[int, ...]:
        """Return the ids of all brokers."""

    def is_running(self, broker: int) -> bool:
        """Return whether a broker's process exists (it may be paused)."""

    def is_paused(self, broker: int) -> bool:
        """Return whether a broker's process is paused."""

    def is_stopping(self, broker: int) -> bool:
        """Return whether a broker's process has been told to stop and still exists."""


class ClientApplication(Protocol):
    """A client of the workload, as the operating system has it."""

    def is_running(self) -> bool:
        """Return whether there is a process of it (it may be paused), and it is one that faults can act on."""

    def is_paused(self) -> bool:
        """Return whether its process is paused."""

    def crash(self) -> None:
        """End its process at once (kill -9)."""

    def start_again(self) -> None:
        """Start a new process of it: a new session, which knows nothing of the one before."""

    def pause(self) -> None:
        """Stop its process (SIGSTOP)."""

    def resume(self) -> None:
        """Let it go on (SIGCONT), and all that were left behind."""

    def step_clock(self, by_us: int) -> None:
        """Have the clock of its machine jump."""

    def can_be_left_behind(self) -> bool:
        """Return whether a second process of it can run beside the first."""

    def leave_behind(self) -> None:
        """Stop its process, and start a new one while that one still exists."""

    def steps(self) -> tuple[str, ...]:
        """Return the steps of its loop, none where it has no loop that could be held."""

    def hold_at(self, step: str, passes: int) -> None:
        """Do not let it go on at a step, once it has passed there so many times more."""

    def held_at(self) -> str | None:
        """Return the step at which it is held, None where it is not."""

    def can_be_slowed(self) -> bool:
        """Return whether it polls in a loop, so that there is something to slow down."""

    def slow_down(self, by_us: int) -> None:
        """Have it take so much longer from now on for what each poll returns; less than nothing undoes it."""

    def is_member(self) -> bool:
        """Return whether it is a member of a group, and can be closed and started again."""

    def close(self) -> None:
        """Have it close its clients, and so leave its group, and end."""


class Environment(BrokerProcesses, Protocol):
    """What a fault can act on: processes, machines, links, sessions.

    There is nothing here that writes protocol state. A broker is named by its id,
    any end of a link by a broker's id, a client's name or ``"zookeeper"``. ``strike`` is the number
    of the fault that acts now, as the trace numbers them: its rules for messages are known by it.
    """

    strike: int

    def client_names(self) -> tuple[str, ...]:
        """Return the names of the clients."""

    def client(self, name: str) -> ClientApplication:
        """Return a client's application."""

    def crash_broker(self, broker: int, *, power_loss: bool, torn_after: int | None = None) -> None:
        """End a broker's process, or cut its machine's power.

        With *torn_after* that happens while the disk is being written to: so many unflushed batches of each log are on it, and
        a part of the next one.
        """

    def has_logs(self, broker: int) -> bool:
        """Return whether a process has logs of partitions: servers of the control plane alone do not."""

    def may_lose_disk(self, broker: int) -> bool:
        """Return whether a process has something on its disk, and the campaign's budget allows that it goes."""

    def lose_disk(self, broker: int) -> None:
        """Empty the log directories of a broker that is down, or of a controller of KRaft."""

    def log_dirs(self) -> int:
        """Return how many log directories each broker has."""

    def fail_log_dir(self, broker: int, log_dir: int, room_bytes: int = 0) -> None:
        """Have all writing to a log directory fail once so many more bytes are written to it."""

    def repair_log_dir(self, broker: int, log_dir: int, room_bytes: int = 0) -> None:
        """Undo one `fail_log_dir`; a running broker does not look at the directory again."""

    def slow_disk(self, broker: int, write_us: int) -> None:
        """Have each append of a broker wait so much longer for its disk."""

    def recover_disk(self, broker: int, write_us: int) -> None:
        """Undo one `slow_disk`."""

    def slow_broker(self, broker: int, request_us: int) -> None:
        """Have each request take a broker so much longer."""

    def recover_broker(self, broker: int, request_us: int) -> None:
        """Undo one `slow_broker`."""

    def step_clock(self, end: int | str, by_us: int) -> None:
        """Have the clock of a broker's or a client's machine jump, forward or, by less than nothing, backward."""

    def has_batch(self, broker: int, partition: str, offset: int | None) -> bool:
        """Return whether a broker's disk has a record at an offset of a partition, or any."""

    def damage_batch(self, broker: int, partition: str, offset: int | None) -> None:
        """Change some bytes of the stored batch that has an offset, or of the last one."""

    def revert_checkpoint(self, broker: int, name: str, age_us: int | None) -> None:
        """Have a checkpoint file of a broker that is down be as it was so long ago, or missing."""

    def may_lose_power(self, broker: int) -> bool:
        """Return whether the campaign's budget allows a broker's unflushed records to go."""

    def stop_broker(self, broker: int) -> None:
        """Tell a broker's process to stop (SIGTERM); it takes the time that it needs."""

    def start_broker(self, broker: int) -> None:
        """Start a broker that is down; one that is stopping, as soon as its process has ended."""

    def pause_broker(self, broker: int) -> None:
        """Stop a broker's process (SIGSTOP)."""

    def resume_broker(self, broker: int) -> None:
        """Let a paused broker go on (SIGCONT)."""

    def expire_session(self, broker: int) -> None:
        """Have ZooKeeper end a broker's session."""

    def controller(self) -> int | None:
        """Return the broker that is controller, as an administrator finds out."""

    def under_replicated_partitions(self) -> tuple[str, ...]:
        """Return the partitions whose ISR is not complete (``kafka-topics --under-replicated-partitions``)."""

    def delete_controller_znode(self) -> None:
        """Delete ``/controller``, as ``rmr /controller`` does."""

    def cut_link(self, sender: int | str, receiver: int | str) -> None:
        """Let no packet pass from one end to the other."""

    def restore_link(self, sender: int | str, receiver: int | str) -> None:
        """Undo one `cut_link`."""

    def is_link_cut(self, sender: int | str, receiver: int | str) -> bool:
        """Return whether nothing passes from one end to the other."""

    def degrade_link(self, sender: int | str, receiver: int | str, quality: LinkQuality) -> None:
        """Have what passes from one end to the other take longer."""

    def recover_link(self, sender: int | str, receiver: int | str, quality: LinkQuality) -> None:
        """Undo one `degrade_link`."""

    def reset_link(self, one: int | str, other: int | str) -> None:
        """Break the connections between two ends (RST)."""

    def add_message_rule(self, rule: MessageRule) -> None:
        """Put a rule for single messages in force."""

    def remove_message_rules(self) -> None:
        """Take out of force the rules of the fault that is ended now; what they hold goes on its way."""

    def has_message_rule(self, name: str) -> bool:
        """Return whether a rule of that name is in force."""

    def release_messages(self, name: str) -> None:
        """Take the rules of that name out of force."""


class Fault(Action):
    """A fault: a frozen dataclass whose fields are its campaign syntax (`harrow.cluster_model.fields`).

    It is made concrete before it is injected: a reference to a broker becomes the broker's id, a range of
    durations becomes one duration. So `applies` and `inject` see ids, and draw nothing.
    """

    __slots__ = ()

    is_noted: ClassVar[bool] = True
    parts_control_plane: ClassVar[bool] = False
    """Whether the servers of ZooKeeper, or the controllers of KRaft, are single ends of links to it, and ``zookeeper`` all of them."""

    def take(self, operator: Operator) -> list[str]:
        """Inject it; a script expects that it finds something."""
        return [] if operator.inject(self) else [f"{self.name} found nothing to act on"]

    def problem(self) -> str | None:
        """Return why a campaign cannot mean this, None if it can."""
        return None

    def decided(self, draw: Stream) -> Self:
        """Return it with what it leaves to chance drawn, once it is known whom it strikes."""
        return self

    def applies(self, environment: Environment) -> bool:
        """Return whether there is something to do it to: not where a broker is down already."""
        return self.problem() is None

    @abstractmethod
    def inject(self, environment: Environment) -> None:
        """Do it."""

    def is_lasting(self) -> bool:
        """Return whether it stays in force until something ends it."""
        return False

    def named(self) -> "Fault | None":
        """Return the fault that says of a broker what this one does to that which it looks for; None for this one."""
        return None

    def plainer(self) -> Iterator["Fault"]:
        """Yield plainer faults that may come to the same, beside those with a field as by default."""
        yield from ()

    def crashes(self, brokers: tuple[int, ...]) -> Iterator["Fault"]:
        """Yield crashes of one of the brokers that may come to the same."""
        yield from ()

    def ends(self, other: "Fault") -> bool:
        """Return whether it takes another one out of force."""
        return False


class LastingFault(Fault):
    """A fault that stays in force for a while: the time in its field of the kind `Lasts`.

    Where that is None, it lasts until the cluster is healed.
    """

    __slots__ = ()

    def is_lasting(self) -> bool:
        """Return whether it stays in force until something ends it."""
        return True

    def lasts_us(self) -> int | None:
        """Return how long it lasts, once that has been drawn; None for until the cluster is healed."""
        given = (item.of(self) for item in all_fields_of(type(self)) if item.kind is LastsMarker)
        return next((low_us for low_us, _ in filter(None, given)), None) if self.is_lasting() else None

    def is_in_force(self, processes: BrokerProcesses) -> bool:
        """Return whether there is something left to end: not where a crashed broker runs again already."""
        return True

    @abstractmethod
    def end(self, environment: Environment) -> None:
        """Undo what is left of it."""


class GradualFault(LastingFault):
    """A fault that is done in steps, with time between them; it is over with the last one."""

    __slots__ = ()

    @abstractmethod
    def steps(self, environment: Environment) -> Iterator[int]:
        """Do it; yield for how many microseconds nothing is to be done, and look again then."""

    def inject(self, environment: Environment) -> None:
        """Do nothing at once: the injector takes the steps."""

    def end(self, environment: Environment) -> None:
        """Do nothing: with the steps it has ended by itself."""


class LinkFault(LastingFault):
    """A lasting fault that cuts links, so that nothing passes on them."""

    __slots__ = ()

    @abstractmethod
    def links(self, environment: BrokerProcesses) -> list[Link]:
        """Return the links, in each direction that is cut."""

    def inject(self, environment: Environment) -> None:
        for sender, receiver in self.links(environment):
            environment.cut_link(sender, receiver)

    def end(self, environment: Environment) -> None:
        for sender, receiver in self.links(environment):
            environment.restore_link(sender, receiver)


class SlowingFault(LastingFault):
    """A lasting fault that makes links worse than they are by themselves."""

    __slots__ = ()

    @abstractmethod
    def slow_links(self, environment: Environment) -> list[Link]:
        """Return the links, in each direction that is worse."""

    @abstractmethod
    def quality(self) -> LinkQuality:
        """Return how much worse they are."""

    def inject(self, environment: Environment) -> None:
        for sender, receiver in self.slow_links(environment):
            environment.degrade_link(sender, receiver, self.quality())

    def end(self, environment: Environment) -> None:
        for sender, receiver in self.slow_links(environment):
            environment.recover_link(sender, receiver, self.quality())


class MessageFault(LastingFault):
    """A lasting fault that is a rule for messages; ``count`` of them may be all that it touches."""

    __slots__ = ()

    def end(self, environment: Environment) -> None:
        """Take its rule out of force."""
        environment.remove_message_rules()

    def messages(self) -> int | None:
        """Return after how many messages it is over; None where their number does not end it."""
        return None
