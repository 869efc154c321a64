"""Gives each Kafka release its switches, and derives the catalogues of mutants and repairs.

A campaign names a release, and may set single switches under its key ``behaviours``.
"""

from collections.abc import Mapping
from dataclasses import fields
from typing import Any, Final

from harrow.cluster_model.fields import EXTENSIONS
from harrow.cluster_model.lazy_dataclass import dataclass, replace
from harrow.cluster_model.registry import DerivedMapping, derived, derived_up_to, typed_items
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
    """The switches of a release; without arguments, those of the default release.

    Each field is a section of switches. Campaigns, documentation and findings name a switch without
    its section.
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
        return getattr(getattr(self, SWITCHES[name].section), name)

    def values(self) -> dict[str, Any]:
        """Return the values of all switches by name."""
        return {name: self.value(name) for name in SWITCHES}

    def with_switches(self, **changes: Any) -> "Behaviours":
        """Return a copy with some switches changed."""
        by_section: dict[str, dict[str, Any]] = {}
        for name, value in changes.items():
            by_section.setdefault(SWITCHES[name].section, {})[name] = value
        return replace(
            self,
            **{section: replace(getattr(self, section), **values) for section, values in by_section.items()},
        )

    def allows_unclean_election(self, metadata: str) -> bool:
        """Return whether controllers in this metadata mode apply unclean.leader.election.enable."""
        return metadata != "kraft" or self.kraft.kraft_allows_unclean_election


@derived
def _sections() -> dict[str, tuple[type[Any], tuple[Switch, ...]]]:
    """Return the class of each section of `Behaviours`, and the switches of that class."""
    defaults = {item.name: type(item.default) for item in fields(Behaviours)}
    classes = {section: EXTENSIONS.get(owner, owner) for section, owner in defaults.items()}
    return {
        section: (owner, switches_in(owner, section))  # type: ignore[arg-type]  # to mypy, `type[Any]` has no hash
        for section, owner in classes.items()
    }


SWITCHES: Final = DerivedMapping[str, Switch](
    lambda: {switch.name: switch for _, switches in _sections().values() for switch in switches}
)
"""All switches by name."""

MUTANTS: Final = DerivedMapping[str, Mutant](
    lambda: {mutant.name: mutant for switch in SWITCHES.values() for mutant in switch.mutants}
)
"""The known flaws by name."""


def _repairs() -> dict[str, Repair]:
    repairs = [repair for switch in SWITCHES.values() for repair in switch.repairs]
    oldest_first = sorted(repairs, key=lambda repair: (repair.is_opt_in, repair.version))
    return {repair.name: repair for repair in oldest_first}


REPAIRS: Final = DerivedMapping[str, Repair](_repairs)
"""The repairs that findings name, oldest first. Repairs that Kafka has off by default come last."""


@derived
def behaviours_in(release: str) -> Behaviours:
    """Return the switches of any release, even of one that campaigns cannot name."""
    return Behaviours(
        **{
            section: owner(**{switch.name: switch.value_in(release) for switch in switches})
            for section, (owner, switches) in _sections().items()
        }
    )


def behaviours_with(release: str, switches: Mapping[str, Any]) -> Behaviours:
    """Return the switches of any release, with some changed. Each run needs this several times."""
    return _behaviours_with(release, typed_items(switches))


@derived_up_to(64)
def _behaviours_with(release: str, switches: tuple[tuple[str, type, Any], ...]) -> Behaviours:
    return behaviours_in(release).with_switches(**{name: value for name, _, value in switches})


@dataclass(frozen=True, slots=True)
class ReleaseProfile:
    """A release that a campaign can name."""

    name: str
    doc: str

    @property
    def version(self) -> Version:
        """The version as numbers."""
        return version_of(self.name)

    @property
    def behaviours(self) -> Behaviours:
        """The switches of the release."""
        return behaviours_in(self.name)

    @property
    def modes(self) -> tuple[str, ...]:
        """The metadata modes, the default first: KRaft from 3.3 on, and only KRaft from 4.0 on."""
        if self.version < (3, 3):
            return ("zookeeper",)
        return ("kraft", "zookeeper") if self.version < (4,) else ("kraft",)

    @property
    def metadata(self) -> str:
        """The default metadata mode."""
        return self.modes[0]


RELEASES: Final[dict[str, ReleaseProfile]] = {
    release.name: release
    for release in (
        ReleaseProfile("0.10.2", "Followers truncate to their high watermark; no idempotence."),
        ReleaseProfile("0.11", "Leader epochs (KIP-101), the idempotent producer (KIP-98)."),
        ReleaseProfile(
            "1.1", "Incremental fetch sessions (KIP-227); leaders remember five batches of each producer."
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
            "Producers are idempotent with acks=all by default (KIP-679); only a registered follower joins the ISR "
            "(KIP-841); metadata in KRaft unless a campaign says zookeeper.",
        ),
        ReleaseProfile(
            "3.9",
            "The high watermark waits for min.insync.replicas (KAFKA-15583); KRaft handles unclean elections "
            "(KAFKA-12670) and failed log directories (KIP-858). The last release with ZooKeeper.",
        ),
        ReleaseProfile(
            "4.0",
            "No ZooKeeper; each transaction has an epoch of its own (KIP-890), brokers assign partitions for "
            "group.protocol=consumer (KIP-848), voters ask before they become candidates (KIP-996), producers "
            "linger for 5 ms (KIP-1030).",
        ),
        ReleaseProfile(
            "4.3",
            "Eligible leader replicas (KIP-966), by default from 4.1 on; brokers learn at once what is committed "
            "(KIP-1166), a commit is fenced by the epoch of its assignment (KIP-1251).",
        ),
        ReleaseProfile(
            "4.4",
            "A consumer group assigns when its members prefer another assignor (KAFKA-20434), a refused "
            "transactional commit names its error (KIP-1319), compaction leaves fewer empty batches (KAFKA-20452).",
        ),
    )
}
"""The releases that the model has, oldest first."""

NEWEST_RELEASE: Final = list(RELEASES)[-1]

REPAIRED_SINCE: Final[dict[str, Any]] = {
    name: switch.latest
    for name, switch in SWITCHES.items()
    if switch.is_repair and switch.value_in(DEFAULT_RELEASE) != switch.latest == switch.safe
}
"""The switches whose flaw in the default release was repaired later, with their newest values."""


def swarm_of(mutant: Mutant) -> str:
    """Return the library campaign whose random runs exercise a known flaw."""
    if SWITCHES[mutant.switch].subject.needs_coordinators:
        return "swarm-eos"
    return "swarm" if RELEASES[mutant.kafka].metadata == "zookeeper" else "swarm-kraft"
