"""What happens to the processes of clients: they die, stand still, or are taken for dead and are not."""

from dataclasses import dataclass
from typing import ClassVar, Final

from harrow.cluster_model.fields import Lasts, StruckClient, described
from harrow.faults.effects import DoubleClient, Effects, KillClient, PauseClient, StartClient
from harrow.faults.fault import Environment, LastingFault

ANY: Final = "any"
ALL: Final = "all"


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientCrash(LastingFault):
    """A producer's or consumer's process dies (kill -9), and is started again as a new session.

    What a producer has not sent dies with it, and what was not answered stays unknown; a new session has a
    producer id of its own, so nothing is deduplicated across. A consumer begins where its position was not kept.
    """

    name: ClassVar[str] = "client_crash"

    client: StruckClient = described("Which client.")
    restart_after: Lasts | None = described(
        "How long until it is started again; by default it stays down.", default=None
    )

    def applies(self, environment: Environment) -> bool:
        return environment.client(self.client).is_running()

    def effects(self, environment: Environment) -> Effects:
        return [KillClient(self.client)]

    def end(self, environment: Environment) -> Effects:
        return [] if environment.client(self.client).is_running() else [StartClient(self.client)]


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientPause(LastingFault):
    """A client's process stands still: a long garbage collection, SIGSTOP. Its connections stay open.

    What has timed out meanwhile does so when it goes on: records expire by `delivery.timeout.ms`, leaders have moved.
    """

    name: ClassVar[str] = "client_pause"

    client: StruckClient = described("Which client.")
    duration: Lasts | None = described("How long; by default until the cluster is healed.", default=None)

    def applies(self, environment: Environment) -> bool:
        client = environment.client(self.client)
        return client.is_running() and not client.is_paused()

    def effects(self, environment: Environment) -> Effects:
        return [PauseClient(self.client)]


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientZombie(LastingFault):
    """The process of a producer, or of a member of a group, stands still, is taken for dead, and a new one is started; then the old one goes on.

    From then on both work, as two instances do that a scheduler has lost track of. Without a `transactional.id`
    nothing fences an old producer: what it had buffered arrives behind what the new one has sent. An old member of a group processes what it
    had fetched, and finds that it cannot commit that.
    """

    name: ClassVar[str] = "client_zombie"

    client: StruckClient = described("Which producer or member of a group.")
    duration: Lasts | None = described(
        "How long the old process stands still; by default until the cluster is healed.", default=None
    )

    def applies(self, environment: Environment) -> bool:
        client = environment.client(self.client)
        return client.can_be_left_behind() and client.is_running() and not client.is_paused()

    def effects(self, environment: Environment) -> Effects:
        return [DoubleClient(self.client)]
