"""Members of a consumer group (KIP-848): their ids, epochs and assigned partitions."""

from typing import Final

from harrow.cluster_model import errors
from harrow.cluster_model.coordinators import protocol as messages
from harrow.cluster_model.lazy_dataclass import replace
from harrow.cluster_model.sim.virtual_time import US_PER_SECOND
from harrow.live_cluster.requests.answers import Answer
from harrow.live_cluster.requests.brokers.broker_driver import PARTITIONS, partition_name
from harrow.live_cluster.requests.coordinators.steps import (
    GROUP,
    INSTANCES_OF_MEMBERS,
    MEMBERS,
    OTHER_INSTANCE,
    SUBSCRIPTIONS,
    ConsumerHeartbeatStep,
    MemberId,
)

_REBALANCE_US: Final = 600 * US_PER_SECOND
"""No member is fenced for keeping its partitions too long while a sequence lasts."""
_NO_EPOCH: Final = -3
_GHOST: Final = "ghost"


class ConsumerIdentities:
    """The members of one sequence, with their current epochs and assignments."""

    def __init__(self) -> None:
        self._incarnations: dict[int, int] = dict.fromkeys(MEMBERS, 0)
        self._epochs: dict[str, int] = {}
        self._assigned: dict[str, tuple[str, ...]] = {}

    @property
    def is_empty(self) -> bool:
        """Whether the group has no members."""
        return not self._epochs

    def heartbeat(self, step: ConsumerHeartbeatStep) -> messages.ConsumerGroupHeartbeatRequest:
        """Return the heartbeat of a step."""
        if step.does == "restarts":
            self._incarnations[step.member] += 1
        member = self._member(step.member, step.who)
        if step.does == "lives" and step.who == "own" and member not in self._epochs:
            # A new member joins first: a coordinator would always refuse any other heartbeat.
            step = replace(
                step, does="joins", subscription=step.subscription or 0, owned="nothing", has_timeout=True
            )
        epochs = {
            "lives": self._epochs.get(member, messages.JOIN_EPOCH) + step.epoch,
            "leaves": messages.LEAVE_EPOCH,
            "leaves-for-a-while": messages.LEAVE_STATIC_EPOCH,
            "strays": _NO_EPOCH,
        }
        owned = {
            None: None,
            "told": self._assigned.get(member, ()),
            "nothing": (),
            "all": tuple(partition_name(number) for number in PARTITIONS),
        }
        return messages.ConsumerGroupHeartbeatRequest(
            GROUP,
            member,
            epochs.get(step.does, messages.JOIN_EPOCH),
            self._instance(step),
            _REBALANCE_US if step.has_timeout else None,
            None if step.subscription is None else SUBSCRIPTIONS[step.subscription],
            step.assignor,
            owned[step.owned],
        )

    def member_in_epoch(self, slot: int, who: MemberId, epoch: int | None) -> tuple[str, int]:
        """Return a member id, and an epoch relative to the member's own.

        If *epoch* is None, the client is outside the group.
        """
        if epoch is None:
            return messages.NO_MEMBER, messages.NO_GENERATION
        member = self._member(slot, who)
        return member, max(messages.JOIN_EPOCH, self._epochs.get(member, messages.JOIN_EPOCH) + epoch)

    def answered(self, answer: Answer) -> None:
        """Remember the epoch and the assignment in an answer."""
        if answer.get("error") != errors.NONE or "consumer" not in answer:
            return
        member = answer["consumer"]
        if answer["epoch"] <= messages.JOIN_EPOCH:
            self._epochs.pop(member, None)
            self._assigned.pop(member, None)
            return
        self._epochs[member] = answer["epoch"]
        if answer["assignment"] is not None:
            self._assigned[member] = tuple(answer["assignment"])

    def _member(self, slot: int, who: MemberId) -> str:
        if who == "none":
            return messages.NO_MEMBER
        if who == "ghost":
            return _GHOST
        if who == "other":
            slot = (slot + 1) % len(MEMBERS)
        incarnation = self._incarnations[slot] - (who == "former")
        return f"consumer-{slot}-{max(0, incarnation)}"

    @staticmethod
    def _instance(step: ConsumerHeartbeatStep) -> str:
        if step.renames:
            return OTHER_INSTANCE
        instance = INSTANCES_OF_MEMBERS.get(step.member, messages.NO_INSTANCE)
        if step.strays:
            return messages.NO_INSTANCE if instance else INSTANCES_OF_MEMBERS[MEMBERS[-1]]
        return instance
