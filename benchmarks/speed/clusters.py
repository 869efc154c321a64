"""The clusters that are measured, as campaigns in text.

Each commit reads the text with its own loader, so the text has only keys that all commits know.
That is why ``standard`` here lacks behaviours that campaigns/library/standard.yaml got later.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Final

MINUTE_S: Final = 60
HOUR_S: Final = 3_600
DAY_S: Final = 86_400

TOPIC_PARTITIONS_MAX: Final = 1_000
"""The most partitions that a loader accepts for one topic."""

_FAULTS: Final = """\
faults:
  - rate: 12/m
    any_of:
      - broker_crash: {broker: any, restart_after: 1s..10s}
      - broker_pause: {broker: any, duration: 1s..20s}
      - controller_failover: {how: crash, restart_after: 1s..10s}
      - controller_failover: {how: session_expiry}
      - controller_failover: {how: delete_znode}
      - network_ack_loss: {probability: 0.3, duration: 1s..10s}
      - slow_follower: {broker: any, mode: stuck, duration: 5s..20s}
      - slow_follower: {broker: any, mode: slow, delay: 500ms, duration: 5s..20s}
"""
"""The faults of campaigns/library/standard.yaml."""


_KNOWN_TO_ALL: Final = ("truncation_drops_empty_last_epoch",)
_SOUND: Final = (*_KNOWN_TO_ALL, "fetch_sessions_keep_epoch")
"""`fetch_sessions_keep_epoch` is set because logs of Kafka 2.4 would diverge within a day, which
would end the run."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MeasuredCluster:
    """A cluster and its workload.

    A measurement runs several ``seeds`` of a small cluster, so that it takes long enough to be
    measured: getrusage counts in steps of milliseconds on some kernels. Before that, it runs
    ``warm_up_seeds`` other seeds: each seed of a swarm meets other kinds of faults and findings,
    and a process makes the methods of their classes, and some tables, when it first uses them.
    """

    name: str
    brokers: int = 3
    partitions: int = 3
    producers: int = 2
    records_per_s: int = 20
    duration_s: int = MINUTE_S
    faults: bool = True
    seeds: int = 1
    warm_up_seeds: int = 0
    behaviours: tuple[str, ...] = _KNOWN_TO_ALL

    def text(self) -> str:
        """Return the campaign."""
        rate, rest = divmod(self.records_per_s, self.producers)
        assert not rest, f"{self.name}: producers share {self.records_per_s} records/s equally"
        topics = [
            f"    - {{name: t{number or ''}, partitions: {partitions}, replication_factor: 3}}\n"
            for number, partitions in enumerate(self._topic_partitions())
        ]
        producers = [
            f"    - {{name: producer-{number}, rate: {rate}/s}}\n" for number in range(self.producers)
        ]
        behaviours = [f"  {name}: true\n" for name in self.behaviours]
        return (
            f"name: {self.name}\n"
            'kafka: "2.4"\n'
            f"behaviours:\n{''.join(behaviours)}"
            "settings:\n"
            "  acks: all\n"
            "  enable.idempotence: true\n"
            "  min.insync.replicas: 2\n"
            "  unclean.leader.election.enable: false\n"
            f"cluster:\n  brokers: {self.brokers}\n  topics:\n{''.join(topics)}"
            f"workload:\n  duration: {self.duration_s}s\n  producers:\n{''.join(producers)}"
            "  consumers:\n    - {name: consumer-0}\n"
            f"{_FAULTS if self.faults else ''}"
            "limits:\n  events: 1000000000\n"
        )

    def text_for(self, root: Path) -> str:
        """Return the campaign that the code below *root* runs."""
        return self.text()

    def _topic_partitions(self) -> list[int]:
        whole, rest = divmod(self.partitions, TOPIC_PARTITIONS_MAX)
        return [TOPIC_PARTITIONS_MAX] * whole + [rest] * bool(rest)


@dataclass(frozen=True, slots=True, kw_only=True)
class LibraryCampaign(MeasuredCluster):
    """A campaign of the library.

    A commit runs the campaign of its own library, because it may not know keys and switches of
    later ones. A commit without the campaign gets the work tree's.
    """

    def text(self) -> str:
        """Return the work tree's campaign."""
        return (WORK_TREE / self._path).read_text(encoding="utf-8")

    def text_for(self, root: Path) -> str:
        """Return the campaign of the library below *root*."""
        own = root / self._path
        return own.read_text(encoding="utf-8") if own.is_file() else self.text()

    @property
    def _path(self) -> Path:
        return Path("campaigns", "library", f"{self.name}.yaml")


WORK_TREE: Final = Path(__file__).parents[2]

CAMPAIGNS: Final = (
    LibraryCampaign(name="standard-eos", seeds=2),
    LibraryCampaign(name="swarm", seeds=10, warm_up_seeds=10),
    LibraryCampaign(name="swarm-kraft", seeds=10, warm_up_seeds=10),
    LibraryCampaign(name="swarm-disks", seeds=10, warm_up_seeds=10),
)

TABLE: Final = (
    MeasuredCluster(name="standard", seeds=10),
    MeasuredCluster(name="30-partitions", partitions=30, seeds=5),
    MeasuredCluster(name="100-partitions", partitions=100, seeds=3),
    MeasuredCluster(name="300-partitions", partitions=300, faults=False),
    MeasuredCluster(name="1000-partitions", partitions=1_000, faults=False),
    MeasuredCluster(name="10000-partitions", partitions=10_000, faults=False),
    MeasuredCluster(name="10-producers", producers=10, records_per_s=1_000, faults=False),
    MeasuredCluster(name="50-producers", producers=50, records_per_s=1_000, faults=False),
    MeasuredCluster(
        name="12-brokers",
        brokers=12,
        partitions=500,
        producers=10,
        records_per_s=2_000,
        duration_s=10,
        faults=False,
    ),
    MeasuredCluster(
        name="12-brokers-10-minutes",
        brokers=12,
        partitions=500,
        producers=10,
        records_per_s=2_000,
        duration_s=10 * MINUTE_S,
    ),
    MeasuredCluster(name="1-hour", duration_s=HOUR_S),
    MeasuredCluster(name="24-hours", producers=1, records_per_s=1, duration_s=DAY_S),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Growth:
    """One dimension that grows while all others stay: its sizes, each with a cluster."""

    name: str
    unit: str
    sizes: tuple[tuple[int, MeasuredCluster], ...]


GROWTHS: Final = (
    Growth(
        name="partitions",
        unit="partitions",
        sizes=tuple(
            (
                size,
                MeasuredCluster(
                    name=f"partitions-{size}",
                    partitions=size,
                    faults=False,
                    seeds=max(1, min(5, 100 // size)),
                ),
            )
            for size in (3, 10, 30, 100, 300, 1_000, 3_000, 10_000)
        ),
    ),
    Growth(
        name="brokers",
        unit="brokers",
        sizes=tuple(
            (
                size,
                MeasuredCluster(name=f"brokers-{size}", brokers=size, partitions=24, faults=False, seeds=3),
            )
            for size in (3, 6, 12, 24)
        ),
    ),
    Growth(
        name="producers",
        unit="producers",
        sizes=tuple(
            (
                size,
                MeasuredCluster(
                    name=f"producers-{size}", producers=size, records_per_s=1_000, duration_s=10, faults=False
                ),
            )
            for size in (1, 2, 5, 10, 20, 50)
        ),
    ),
    Growth(
        name="length",
        unit="simulated minutes",
        sizes=tuple(
            (
                minutes,
                MeasuredCluster(
                    name=f"length-{minutes}",
                    producers=1,
                    records_per_s=1,
                    duration_s=minutes * MINUTE_S,
                    seeds=max(1, 10 // minutes),
                    behaviours=_SOUND,
                ),
            )
            for minutes in (1, 10, 60, 360, 1_440)
        ),
    ),
)
