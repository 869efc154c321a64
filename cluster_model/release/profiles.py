"""Release profiles: what each Kafka release does, as named switches, and what follows from their declarations.

A campaign names a release; each behaviour is a switch that it can also set alone (``behaviours:``).
"""

from dataclasses import dataclass, fields, replace
from typing import Any, Final

from harrow.cluster_model.fields import EXTENSIONS
from harrow.cluster_model.registry import DerivedMapping, derived
from harrow.cluster_model.release.clients import ClientSwitches
from harrow.cluster_model.release.groups import GroupSwitches
from harrow.cluster_model.release.kraft import KRaftSwitches
from harrow.cluster_model.release.log import LogSwitches
from harrow.cluster_model.release.replication import ReplicationSwitches
from harrow.cluster_model.release.switch import (
    DEFAULT_RELEASE,
    Mutant,
    Repair,
    Switch,
    Version,
    switches_in,
    version_of,
)
from harrow.cluster_model.release.transactions import TransactionSwitches
from harrow.cluster_model.release.zookeeper import ZooKeeperSwitches


@dataclass(frozen=True, slots=True, kw_only=True)
class Behaviours:
    """What a release does; by default, what the default release does.

    Campaigns, documentation and findings know a switch by its name alone, whichever subject it belongs to.
    """

    replication: ReplicationSwitches = ReplicationSwitches()
    clients: ClientSwitches = ClientSwitches()
    log: LogSwitches = LogSwitches()
    groups: GroupSwitches = GroupSwitches()
    transactions: TransactionSwitches = TransactionSwitches()
    zookeeper: ZooKeeperSwitches = ZooKeeperSwitches()
    kraft: KRaftSwitches = KRaftSwitches()

    def value(self, name: str) -> Any:
        """Return the value of a switch."""
        return getattr(getattr(self, SWITCHES[name].home), name)

    def values(self) -> dict[str, Any]:
        """Return the values of all switches by name."""
        return {name: self.value(name) for name in SWITCHES}

    def with_switches(self, **changes: Any) -> "Behaviours":
        """Return the same with some switches set."""
        by_home: dict[str, dict[str, Any]] = {}
        for name, value in changes.items():
            by_home.setdefault(SWITCHES[name].home, {})[name] = value
        return replace(
            self, **{home: replace(getattr(self, home), **values) for home, values in by_home.items()}
        )

    def elects_uncleanly(self, metadata: str) -> bool:
        """Return whether controllers go by unclean.leader.election.enable, by where the metadata is."""
        return metadata != "kraft" or self.kraft.kraft_elects_uncleanly


@derived
def _subjects() -> dict[str, tuple[type[Any], list[Switch]]]:
    """Return the class of each field of `Behaviours`, and the switches that it declares."""
    declared = {item.name: type(item.default) for item in fields(Behaviours)}
    classes = {home: EXTENSIONS.get(subject, subject) for home, subject in declared.items()}
    return {home: (subject, switches_in(subject, home)) for home, subject in classes.items()}


SWITCHES: Final = DerivedMapping[str, Switch](
    lambda: {switch.name: switch for _, switches in _subjects().values() for switch in switches}
)
"""All switches by name."""

MUTANTS: Final = DerivedMapping[str, Mutant](
    lambda: {mutant.name: mutant for switch in SWITCHES.values() for mutant in switch.mutants}
)
"""The zoo: the known flaws by name."""


def _repairs() -> dict[str, Repair]:
    declared = [repair for switch in SWITCHES.values() for repair in switch.repairs]
    oldest_first = sorted(declared, key=lambda repair: (repair.is_opt_in, repair.version))
    return {repair.name: repair for repair in oldest_first}


REPAIRS: Final = DerivedMapping[str, Repair](_repairs)
"""The repairs that findings name, oldest first, behind them those that Kafka has switched off."""


@derived
def behaviours_in(release: str) -> Behaviours:
    """Return what a release does as far as there are switches for it: any release, also one that has no profile."""
    return Behaviours(
        **{
            home: subject(**{switch.name: switch.value_in(release) for switch in switches})
            for home, (subject, switches) in _subjects().items()
        }
    )


@dataclass(frozen=True, slots=True)
class ReleaseProfile:
    """A release that a campaign can name, and what it does."""

    name: str
    doc: str

    @property
    def version(self) -> Version:
        """The numbers of its name."""
        return version_of(self.name)

    @property
    def behaviours(self) -> Behaviours:
        """What it does."""
        return behaviours_in(self.name)

    @property
    def modes(self) -> tuple[str, ...]:
        """Where brokers can keep their metadata, the default first: in KRaft since 3.3, in nothing else since 4.0 (KIP-833)."""
        if self.version < (3, 3):
            return ("zookeeper",)
        return ("kraft", "zookeeper") if self.version < (4,) else ("kraft",)

    @property
    def metadata(self) -> str:
        """Where brokers keep their metadata unless a campaign says so."""
        return self.modes[0]


RELEASES: Final[dict[str, ReleaseProfile]] = {
    release.name: release
    for release in (
        ReleaseProfile("0.10.2", "Followers truncate to their high watermark; no idempotence."),
        ReleaseProfile("0.11", "Leader epochs (KIP-101), the idempotent producer (KIP-98)."),
        ReleaseProfile(
            "1.1", "Incremental fetch sessions (KIP-227), five batches of each producer are remembered."
        ),
        ReleaseProfile("2.0", "The epoch answer carries the epoch (KIP-279)."),
        ReleaseProfile(
            "2.4", "Leader epochs in fetches (KIP-320), broker epochs (KIP-380), delivery timeout (KIP-91)."
        ),
        ReleaseProfile(
            "2.8", "A follower that may have joined the ISR counts (KIP-497); truncation on fetch (KIP-595)."
        ),
        ReleaseProfile(
            "3.6",
            "Producers are idempotent with acks=all by default (KIP-679); only a registered follower joins the ISR (KIP-841); metadata in KRaft "
            "unless a campaign says zookeeper.",
        ),
        ReleaseProfile(
            "3.9",
            "The high watermark waits for min.insync.replicas (KAFKA-15583); in KRaft unclean elections (KAFKA-12670) and failed log "
            "directories (KIP-858) count. The last with ZooKeeper.",
        ),
        ReleaseProfile(
            "4.0",
            "No ZooKeeper; each transaction has an epoch of its own (KIP-890), brokers assign for group.protocol=consumer (KIP-848), voters ask "
            "before they run for office (KIP-996), producers linger for 5 ms (KIP-1030).",
        ),
        ReleaseProfile(
            "4.3",
            "Eligible leader replicas (KIP-966), by default from 4.1 on; brokers hear at once of what is committed (KIP-1166), a commit is "
            "fenced by the epoch of its assignment (KIP-1251).",
        ),
        ReleaseProfile(
            "4.4",
            "A consumer group assigns when its members prefer another assignor (KAFKA-20434), a refused transactional commit names its error "
            "(KIP-1319), compaction leaves fewer empty batches (KAFKA-20452).",
        ),
    )
}
"""The releases whose data plane is modelled, oldest first."""

NEWEST_RELEASE: Final = list(RELEASES)[-1]

REPAIRED_SINCE: Final[dict[str, Any]] = {
    name: switch.latest
    for name, switch in SWITCHES.items()
    if switch.is_repair and switch.value_in(DEFAULT_RELEASE) != switch.latest == switch.safe
}
"""What has been repaired since the default release: the flaws that it has, as they are in the newest one."""


def swarm_of(mutant: Mutant) -> str:
    """Return the campaign of the library whose random runs meet the flaw."""
    if SWITCHES[mutant.switch].of.of_coordinators:
        return "swarm-eos"
    return "swarm" if RELEASES[mutant.kafka].metadata == "zookeeper" else "swarm-kraft"
