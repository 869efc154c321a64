"""Single repairs: what a KIP or an issue changed in Kafka that keeps an anomaly from happening, and since when."""

from dataclasses import dataclass
from typing import Final

from harrow.cluster_model.release import Version, version_of


@dataclass(frozen=True, slots=True, kw_only=True)
class Repair:
    """A repair. ``since`` is the first release that has it; an opt-in one has to be switched on there.

    ``switch`` is the behaviour that it changed, None where that is not modelled.
    """

    name: str
    since: str
    text: str
    switch: str | None = None
    is_opt_in: bool = False

    @property
    def version(self) -> Version:
        return version_of(self.since)


REPAIRS: Final[dict[str, Repair]] = {
    repair.name: repair
    for repair in (
        Repair(
            name="KIP-101",
            since="0.11",
            switch="follower_truncation",
            text=(
                "a follower asks its leader where its leader epoch ends, instead of truncating to its own high "
                "watermark"
            ),
        ),
        Repair(
            name="KIP-279",
            since="2.0",
            switch="follower_truncation",
            text="the answer names the epoch, so a follower asks again about one that it does not have",
        ),
        Repair(
            name="KAFKA-7128",
            since="2.0.1",
            switch="isr_expansion_checks_epoch_start",
            text="a follower joins the ISR only when it has reached the start of the leader's epoch",
        ),
        Repair(
            name="KIP-320",
            since="2.1",
            switch="fetch_leader_epoch_fencing",
            text="fetches carry the leader epoch, so one of another epoch is refused",
        ),
        Repair(
            name="KIP-380",
            since="2.2",
            switch="broker_epoch",
            text="control requests carry the broker's epoch, so a broker that went and came back is noticed",
        ),
        Repair(
            name="KIP-966",
            since="4.0",
            is_opt_in=True,
            text="a replica that has stopped uncleanly is elected only when no other can lead",
        ),
    )
}
"""The repairs that findings name, oldest first."""
