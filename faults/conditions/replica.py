"""What a replica is and has: a row of a LEO/HW table."""

from dataclasses import dataclass
from typing import ClassVar, Final, Literal

from harrow.cluster_model import fields
from harrow.cluster_model.fields import described
from harrow.faults.conditions.fact import Fact, difference
from harrow.faults.observer import Observer

_COLUMNS: Final = {
    "role": "role",
    "leo": "LEO",
    "hw": "HW",
    "leader_epoch": "leader epoch",
    "flushed": "flushed",
    "epochs": "epochs",
    "log": "log",
}
"""What is compared as it is, and what it is called."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplicaIs(Fact):
    """Replicas by partition and broker; a list of these tells more of one. What is left out does not matter."""

    name: ClassVar[str] = "replicas"
    keyed_by: ClassVar[tuple[str, ...]] = ("partition", "broker")
    repeats: ClassVar[bool] = True

    partition: fields.Partition = described("Of which partition.")
    broker: fields.BrokerId = described("On which broker.")
    role: Literal["leader", "follower"] | None = described("What it is.", default=None)
    leo: fields.Skip | None = described("Its log end offset.", default=None)
    hw: fields.Skip | None = described("Its high watermark.", default=None)
    leader_epoch: int | None = described("The leader epoch that it knows.", default=None, minimum=-1)
    flushed: fields.Skip | None = described("The offset up to which its log is on disk.", default=None)
    remote: fields.OffsetsByBroker | None = described(
        "As a leader: the LEO that it knows of each follower.", default=None
    )
    epochs: fields.EpochStarts | None = described(
        "Its leader epoch cache, as pairs of epoch and start offset.", default=None
    )
    log: tuple[str, ...] | None = described("The values in its log.", default=None)

    def asked(self) -> tuple[str, ...]:
        """Return which of its fields say something."""
        return tuple(name for name in (*_COLUMNS, "remote") if getattr(self, name) is not None)

    def mismatches(self, observer: Observer) -> list[str]:
        where = f"{self.partition} on broker {self.broker}"
        view = observer.replica(self.partition, self.broker)
        if view is None:
            return [f"{where}: there is no such replica now"]
        found: list[str] = []
        for name, words in _COLUMNS.items():
            wanted = getattr(self, name)
            if wanted is not None:
                found += difference(f"{where}: {words}", getattr(view, name), wanted)
        for follower, leo in self.remote or ():
            found += difference(f"{where}: remote LEO of {follower}", view.remote.get(follower), leo)
        return found
