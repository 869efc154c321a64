"""Runs campaigns on the user's own cluster."""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Final

from harrow.campaigns.language.plan import Plan
from harrow.cluster_model.lazy_dataclass import dataclass
from harrow.live_cluster.target.live_run import Brokers
from harrow.live_cluster.target.real_cluster import ClusterContext
from harrow.live_cluster.users.command_word import PEER_PLACEHOLDERS, broker_words
from harrow.live_cluster.users.journal import Journal, JournalError, state_folder
from harrow.live_cluster.users.target_file import ALLOWED, Notify, TargetFile
from harrow.live_cluster.users.user_cluster import UserCluster
from harrow.live_cluster.users.users_reach import (
    USER_CLUSTER_EFFECTS,
    Settings,
    obstacles_on,
    permissions_for,
)
from harrow.live_cluster.wire.connection import BrokerConnection, ConnectionLostError
from harrow.live_cluster.wire.survey import (
    ReportedSetting,
    Survey,
    reported_settings,
    survey_cluster,
    topic_settings,
)

KIND: Final = "cluster"
"""The kind of target in the results of runs on a user's cluster."""
_TIMEOUT_S: Final = 10.0
EVERYTHING: Final = frozenset(map(str, ALLOWED))


def _connect(file: TargetFile, address: tuple[str, int]) -> BrokerConnection:
    return BrokerConnection(address, timeout_s=_TIMEOUT_S, security=file.security)


def survey_of(file: TargetFile) -> Survey:
    """Return a survey of the cluster from the first bootstrap server that answers.

    Raise `ConnectionLostError` if no server answers, `UnsafeWordError` if a value is unsafe in a
    command.
    """
    reasons = []
    for address in file.bootstrap:
        try:
            with _connect(file, address) as connection:
                survey = survey_cluster(connection, file.release)
        except ConnectionLostError as error:
            reasons.append(str(error))
        else:
            _check_words(file, survey)
            return survey
    raise ConnectionLostError("; ".join(reasons))


def _check_words(file: TargetFile, survey: Survey) -> None:
    """Refuse values that are unsafe in a command, before a command needs them."""
    brokers = [node for node in survey.brokers if file.has_broker(node.id)]
    placeholders = frozenset().union(*(file.placeholders(node.id) for node in brokers))
    peer_placeholders = placeholders.intersection(PEER_PLACEHOLDERS)
    for node in brokers:
        # Each broker is a peer of the others.
        broker_words(node, node, file.placeholders(node.id) | peer_placeholders)


def settings_of_brokers(file: TargetFile, survey: Survey) -> Settings:
    """Return the settings of each broker, from the broker itself."""
    return {
        broker: {name: setting.value for name, setting in settings.items()}
        for broker, settings in reported_by_brokers(file, survey).items()
    }


def reported_by_brokers(file: TargetFile, survey: Survey) -> dict[int, dict[str, ReportedSetting]]:
    """Return the settings of each broker, and which of them are defaults, from the broker."""
    settings = {}
    for node in survey.brokers:
        with _connect(file, (node.host, node.port)) as connection:
            settings[node.id] = reported_settings(connection, node.id)
    return settings


def settings_of_topics(file: TargetFile, survey: Survey) -> dict[str, dict[str, str]]:
    """Return the settings that each topic overrides."""
    if not survey.brokers:
        return {}
    node = survey.brokers[0]
    with _connect(file, (node.host, node.port)) as connection:
        return topic_settings(connection, survey.assignments)


@dataclass(frozen=True, slots=True, kw_only=True)
class UserBrokers(Brokers):
    """The brokers of a user's cluster, with its target *file*, its *survey* and the permissions."""

    file: TargetFile
    survey: Survey
    settings: Settings
    permitted: frozenset[str]
    journal: Journal
    say: Notify

    kind = KIND
    handlers = USER_CLUSTER_EFFECTS

    def in_force(self) -> list[str]:
        """Describe the faults that are still in force, and the topics that still exist."""
        return [*map(str, self.journal.in_force()), *(f"topic {name}" for name in self.journal.topics())]

    def cluster(self, context: ClusterContext) -> UserCluster:
        return UserCluster(context, self.file, self.survey, self.journal, self.permitted, self.say)

    def obstacles(self, plan: Plan) -> Iterator[str]:
        return obstacles_on(plan, self.file, self.survey, self.settings)


@contextmanager
def user_brokers(file: TargetFile, *, everything: bool, say: Notify) -> Iterator[UserBrokers]:
    """Open a user's cluster for this process alone.

    *everything* permits all commands, even those that the target file does not allow. Raise
    `ConnectionLostError` if the cluster does not answer, `UnsafeWordError` if a value is unsafe in
    a command, and `JournalError` if another run uses the cluster, or has left faults in force.
    """
    survey = survey_of(file)
    with Journal.of(state_folder(), survey.cluster_id, file.path) as journal:
        if journal.in_force() or journal.topics():
            faults = ", ".join(map(str, journal.in_force())) or "topics"
            raise JournalError(f"an earlier run left these in force: {faults}")
        yield UserBrokers(
            release=survey.release,
            metadata=survey.metadata,
            file=file,
            survey=survey,
            settings=settings_of_brokers(file, survey),
            permitted=EVERYTHING if everything else file.allowed,
            journal=journal,
            say=say,
        )


def missing_permissions(brokers: UserBrokers, plans: Iterable[Plan]) -> list[str]:
    """Return the missing permissions of campaigns that could run, in the order of `ALLOWED`."""
    needed = {
        permission
        for plan in plans
        if not any(brokers.obstacles(plan))
        for permission in permissions_for(plan)
    }
    return [str(permission) for permission in ALLOWED if permission in needed - brokers.permitted]
