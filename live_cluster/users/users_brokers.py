"""Runs of campaigns on a cluster of the user's."""

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from harrow.campaigns.language.plan import Plan
from harrow.campaigns.run.run_result import RealTarget, RunResult
from harrow.campaigns.run.swarm import draw_for_seed
from harrow.live_cluster.reach.feasible import as_real
from harrow.live_cluster.reach.narrowed_swarm import narrowed
from harrow.live_cluster.releases.kafka_release import KafkaRelease
from harrow.live_cluster.target.live_run import Tell, live_run, time_of_beginning
from harrow.live_cluster.target.real_cluster import Surroundings
from harrow.live_cluster.users.cluster_file import ALLOWED, ClusterFile, Notify
from harrow.live_cluster.users.command_word import PEER_PLACEHOLDERS, broker_words
from harrow.live_cluster.users.journal import Journal, JournalError, state_folder
from harrow.live_cluster.users.user_cluster import UserCluster
from harrow.live_cluster.users.users_reach import USERS, Settings, deeds_of, obstacles_on
from harrow.live_cluster.wire.connection import BrokerConnection, ConnectionLostError
from harrow.live_cluster.wire.survey import Survey, broker_settings, survey, topic_settings

KIND: Final = "cluster"
"""What runs on a user's cluster say of their target."""
_TIMEOUT_S: Final = 10.0
EVERYTHING: Final = frozenset(map(str, ALLOWED))


def surveyed(file: ClusterFile) -> Survey:
    """Return what the first of a cluster's bootstrap servers that answers tells of it.

    Raises:
        ConnectionLostError: none answers.
        UnsafeWordError: it tells what cannot stand in the commands of the file.

    """
    reasons = []
    for address in file.bootstrap:
        try:
            with BrokerConnection(address, timeout_s=_TIMEOUT_S, security=file.security) as connection:
                seen = survey(connection, file.release)
        except ConnectionLostError as error:
            reasons.append(str(error))
        else:
            _check_words(file, seen)
            return seen
    raise ConnectionLostError("; ".join(reasons))


def _check_words(file: ClusterFile, seen: Survey) -> None:
    """Refuse a cluster before a command needs what cannot stand in it."""
    brokers = [each for each in seen.brokers if each.id in (file.brokers or {each.id})]
    of_peers = (
        frozenset().union(*(file.placeholders(each.id) for each in brokers)).intersection(PEER_PLACEHOLDERS)
    )
    for broker in brokers:
        # Each broker is a peer of the others.
        broker_words(broker, broker, file.placeholders(broker.id) | of_peers)


def settings_of_brokers(file: ClusterFile, seen: Survey) -> Settings:
    """Return the settings of each broker, as it tells them itself.

    Raises:
        LiveError: one does not.

    """
    found = {}
    for each in seen.brokers:
        address = (each.host, each.port)
        with BrokerConnection(address, timeout_s=_TIMEOUT_S, security=file.security) as connection:
            found[each.id] = broker_settings(connection, each.id)
    return found


def settings_of_topics(file: ClusterFile, seen: Survey) -> dict[str, dict[str, str]]:
    """Return what was set for each topic.

    Raises:
        LiveError: the cluster does not tell.

    """
    for each in seen.brokers:
        address = (each.host, each.port)
        with BrokerConnection(address, timeout_s=_TIMEOUT_S, security=file.security) as connection:
            return topic_settings(connection, seen.assignments)
    return {}


@dataclass(frozen=True, slots=True, kw_only=True)
class UserBrokers:
    """A cluster that a *file* describes, as it was *seen*, and what of `ALLOWED` may be done to it (`harrow.live_cluster.target.live_run.Brokers`)."""

    file: ClusterFile
    seen: Survey
    settings: Settings
    permitted: frozenset[str]
    journal: Journal
    say: Notify

    @property
    def release(self) -> KafkaRelease:
        return self.seen.release

    def run(
        self,
        plan: Plan,
        seed: int,
        results: Path | None,
        check: Callable[[], None] = lambda: None,
        tell: Tell = lambda _: None,
    ) -> RunResult:
        """Run a plan there (`harrow.live_cluster.target.live_run.Brokers.run`); what is in force in the end is healed."""
        target = RealTarget(
            kind=KIND, release=self.release.name, metadata=self.seen.metadata, began=time_of_beginning()
        )
        return live_run(
            plan,
            seed,
            results,
            check,
            tell,
            target,
            self.release,
            obstacles_of=self._obstacles,
            make=self._make,
            handlers=USERS,
        )

    def drawn(self, plan: Plan, seed: int) -> Plan:
        """Return what a seed draws of what these brokers can do (`harrow.live_cluster.target.live_run.Brokers.drawn`)."""
        return draw_for_seed(narrowed(plan, self._obstacles)[0], seed).plan

    def as_modelled(self, plan: Plan) -> Plan:
        """Return a plan as the model runs it (`harrow.live_cluster.target.live_run.Brokers.as_modelled`)."""
        modelled, _ = as_real(plan, self.release)
        return modelled

    def left(self) -> list[str]:
        """Return in words what is in force there still."""
        return [*map(str, self.journal.in_force()), *(f"topic {name}" for name in self.journal.topics())]

    def _make(self, surroundings: Surroundings) -> UserCluster:
        return UserCluster(surroundings, self.file, self.seen, self.journal, self.permitted, self.say)

    def _obstacles(self, plan: Plan) -> Iterator[str]:
        yield from obstacles_on(plan, self.file, self.seen, self.settings)


@contextmanager
def user_brokers(file: ClusterFile, *, everything: bool, say: Notify) -> Iterator[UserBrokers]:
    """Have a user's cluster for oneself; *everything*: all may be done to it, whatever its file allows.

    Raises:
        ConnectionLostError: it does not answer.
        UnsafeWordError: it tells what cannot stand in the commands of the file.
        JournalError: another run is at work there, or has left something in force.

    """
    seen = surveyed(file)
    with Journal.of(state_folder(), seen.cluster_id, file.path) as journal:
        if journal.in_force() or journal.topics():
            left = ", ".join(map(str, journal.in_force())) or "topics"
            raise JournalError(f"an earlier run has left there: {left}")
        yield UserBrokers(
            file=file,
            seen=seen,
            settings=settings_of_brokers(file, seen),
            permitted=EVERYTHING if everything else file.allowed,
            journal=journal,
            say=say,
        )


def missing_consent(brokers: UserBrokers, plans: Iterable[Plan]) -> list[str]:
    """Return what campaigns that can run there do without leave, in the order of `ALLOWED`."""
    wanted = {
        deed
        for plan in plans
        if not any(obstacles_on(plan, brokers.file, brokers.seen, brokers.settings))
        for deed in deeds_of(plan)
    }
    return [str(deed) for deed in ALLOWED if deed in wanted - brokers.permitted]
