"""Shows faults a served cluster, and performs their effects on it and on its real clients."""

from collections.abc import Iterator
from typing import Any, Final, Protocol

from harrow.campaigns.clients.clients import CORE_READER, READER, Clients
from harrow.campaigns.language.plan import Plan
from harrow.campaigns.run.targets.model_environment import MODEL, ModelEnvironment
from harrow.campaigns.run.targets.model_observer import ClusterObserver
from harrow.cluster_model.cluster import Cluster
from harrow.cluster_model.fields import ClientMarker, all_fields_of
from harrow.faults import effects
from harrow.faults.handlers import Handlers
from harrow.faults.link_ends import ZOOKEEPER
from harrow.live_cluster.reach.rehearsal import actions_of, reasons_against
from harrow.live_cluster.serve.client_links import OTHER_CLIENTS, ClientLinks


class StruckProgram(Protocol):
    """A program that harrow has started, and that faults of clients may strike."""

    @property
    def is_running(self) -> bool:
        """Whether its process exists, paused or not."""

    @property
    def is_paused(self) -> bool: ...

    def start(self) -> None:
        """Start the program again, unless it runs."""

    def kill(self) -> None:
        """Kill the program (SIGKILL) with all processes that it has started."""

    def pause(self) -> None: ...

    def resume(self) -> None: ...


class RunProgram:
    """The program of a run. It notifies the run when it ends.

    Faults ask whether it runs. If they asked the operating system, a run would depend on when the
    program ends between two inputs. Without a *program* this one stands for a recorded one.
    """

    def __init__(self, program: StruckProgram | None) -> None:
        self._program = program
        self.is_running = True
        self.is_paused = False

    @property
    def has_ended(self) -> bool:
        """Whether it has ended, and the run does not know yet."""
        return self.is_running and self._program is not None and not self._program.is_running

    def start(self) -> None:
        if not self.is_running:
            self.is_running, self.is_paused = True, False
            if self._program is not None:
                self._program.start()

    def kill(self) -> None:
        self.is_running = self.is_paused = False
        if self._program is not None:
            self._program.kill()

    def pause(self) -> None:
        self.is_paused = True
        if self._program is not None:
            self._program.pause()

    def resume(self) -> None:
        self.is_paused = False
        if self._program is not None:
            self._program.resume()


class _RealClient:
    """A real client. Faults strike the program that harrow has started; it is every client."""

    def __init__(self, program: RunProgram | None) -> None:
        self._program = program

    def is_running(self) -> bool:
        return self._program is None or self._program.is_running

    def is_paused(self) -> bool:
        return self._program is not None and self._program.is_paused

    def can_become_zombie(self) -> bool:
        return False

    can_be_slowed = is_member = can_become_zombie

    def steps(self) -> tuple[str, ...]:
        return ()

    def held_at(self) -> str | None:
        return None


class ServedEnvironment(ModelEnvironment):
    """The processes, links and sessions of a served cluster, and its real clients.

    A client has the name of its ``client.id``. `OTHER_CLIENTS` stands for those that the campaign
    does not name.
    """

    def __init__(
        self,
        plan: Plan,
        cluster: Cluster,
        clients: Clients,
        observer: ClusterObserver,
        program: RunProgram | None,
    ) -> None:
        super().__init__(cluster, clients, observer, survivable=plan.survivable)
        self.links_of_clients = ClientLinks(cluster.network)
        self.link_control = self.links_of_clients
        self.program = program
        self._handlers = handlers_of(has_program=program is not None)
        self.lack = self._handlers.lack
        self._named = tuple(spec.name for spec in plan.clients())
        self._reserved = {
            *(process.name for process in cluster.nodes.values()),
            *cluster.control_plane.process_names,
            *(READER, CORE_READER, ZOOKEEPER, OTHER_CLIENTS),
        }
        client = _RealClient(program)
        self.client_names = lambda: (*self._named, OTHER_CLIENTS)
        self.client = lambda _: client  # type: ignore[assignment,return-value] # faults need only what a `ClientApplication` has

    def process_name_of(self, client_id: str) -> str:
        """Return the name of a client's process, which no server has."""
        name = client_id or "client"
        return f"client {name}" if name in self._reserved else name

    def join(self, name: str) -> None:
        """Let the faults in force affect a client that connects for the first time."""
        if name not in self._named:
            self.links_of_clients.join(name)


def obstacles(plan: Plan, *, has_program: bool) -> Iterator[str]:
    """Yield the reasons why real clients cannot take the place of a plan's clients."""
    for action in actions_of(plan):
        if any(issubclass(field.kind, ClientMarker) for field in all_fields_of(type(action))):
            yield f"{action.name}: only the campaign's own clients do that, and real clients take their place"
    yield from reasons_against(plan, handlers_of(has_program=has_program).lack)


def _program_of(served: ServedEnvironment) -> RunProgram:
    assert served.program is not None, "without a program nothing acts on clients"
    return served.program


def _clock_lack(effect: effects.StepClock) -> str | None:
    return None if isinstance(effect.end, int) else "harrow cannot change the clock of a real client"


_SERVED: Final[Handlers[Any]] = Handlers(MODEL)
_SERVED.restrict(effects.StepClock, _clock_lack)
_SERVED.register_impossible(
    "harrow does not control what happens inside a real client",
    *(effects.CloseClient, effects.DoubleClient, effects.HoldClient, effects.SlowClient),
)

_WITH_PROGRAM: Final[Handlers[ServedEnvironment]] = Handlers(_SERVED)
_WITH_PROGRAM.register(effects.StartClient, lambda served, _: _program_of(served).start())
_WITH_PROGRAM.register(effects.KillClient, lambda served, _: _program_of(served).kill())
_WITH_PROGRAM.register(effects.PauseClient, lambda served, _: _program_of(served).pause())
_WITH_PROGRAM.register(effects.ResumeClient, lambda served, _: _program_of(served).resume())

_WITHOUT_PROGRAM: Final[Handlers[ServedEnvironment]] = Handlers(_SERVED)
_WITHOUT_PROGRAM.register_impossible(
    "harrow can pause and kill only a program that it has started: give it after `--`",
    *(effects.StartClient, effects.KillClient, effects.PauseClient, effects.ResumeClient),
)


def handlers_of(*, has_program: bool) -> Handlers[ServedEnvironment]:
    """Return how effects are performed on a served cluster with or without a started program."""
    return _WITH_PROGRAM if has_program else _WITHOUT_PROGRAM
