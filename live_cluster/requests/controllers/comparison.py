"""Compares a sequence on two controllers, up to the first difference."""

from collections.abc import Sequence
from functools import partial
from typing import Final

from harrow.cluster_model import errors
from harrow.cluster_model.kraft import protocol
from harrow.cluster_model.protocol import AlterPartition, AlterPartitionRequest
from harrow.live_cluster.errors import LiveError
from harrow.live_cluster.requests.answers import Answer
from harrow.live_cluster.requests.comparison import (
    ComparedRequest,
    ComparedSequence,
    difference_text,
    finish_exchange,
)
from harrow.live_cluster.requests.controllers.driver import (
    ControllerDriver,
    ControllerPartitions,
    RequestToController,
)
from harrow.live_cluster.requests.controllers.model_controller import ALL_METADATA, ModelController
from harrow.live_cluster.requests.controllers.steps import (
    BROKERS,
    OPENING,
    AlterPartitionStep,
    ControllerStep,
    HeartbeatStep,
    PreferredStep,
    RegisterStep,
    partition_name,
)

_BROKER_EPOCH: Final = "broker_epoch"
_PARTITIONS: Final = "partitions_seen"
_UNKNOWN: Final = -1
_NO_METADATA: Final = -1


class _Controller:
    """One of the two controllers, with the broker epochs that it assigned: offsets of its log."""

    def __init__(self, driver: ControllerDriver, model: ModelController) -> None:
        self._driver = driver
        self._model = model
        self._epochs: dict[int, list[int]] = {broker: [] for broker in BROKERS}
        self._incarnations = dict.fromkeys(BROKERS, 0)

    def take(
        self, step: ControllerStep, request: RequestToController | None, expected: Answer | None
    ) -> Answer:
        """Take a step with its *request*, and return the result."""
        if request is None:
            self._driver.elect_preferred_leaders()
            return {_PARTITIONS: self._partitions(expected)}
        answer = self._driver.ask(request)
        if isinstance(step, RegisterStep):
            epoch, epochs = answer.pop(_BROKER_EPOCH), self._epochs[step.broker]
            if answer["error"] == errors.NONE and epoch not in epochs:
                epochs.append(epoch)
        return {**answer, _PARTITIONS: self._partitions(expected)}

    def _partitions(self, expected: Answer | None) -> ControllerPartitions:
        return self._driver.partitions(None if expected is None else expected[_PARTITIONS])

    def request(self, step: ControllerStep) -> RequestToController | None:
        """Return the request of a step in the current state, None for an election."""
        if isinstance(step, PreferredStep):
            return None
        if isinstance(step, RegisterStep):
            if not step.again:
                self._incarnations[step.broker] += 1
            previous = self._epoch(step.broker) if step.stopped else _UNKNOWN
            return protocol.BrokerRegistrationRequest(step.broker, self._incarnations[step.broker], previous)
        if isinstance(step, HeartbeatStep):
            return protocol.BrokerHeartbeatRequest(
                step.broker,
                self._epoch(step.broker, stale=step.stale),
                _NO_METADATA if step.behind else ALL_METADATA,
                want_fence=step.want_fence,
                want_shut_down=step.want_shut_down,
            )
        assert isinstance(step, AlterPartitionStep)
        name = partition_name(step.partition)
        partition = self._model.partition(name)
        broker = partition.leader if step.broker is None else step.broker
        # Without a leader, any broker sends the request.
        broker = broker if broker in BROKERS else BROKERS[0]
        isr = tuple(
            (
                member,
                _UNKNOWN
                if step.members == "unknown"
                else self._epoch(member, stale=step.members == "stale" and member != broker),
            )
            for member in step.isr
        )
        return AlterPartitionRequest(
            broker,
            self._epoch(broker, stale=step.stale),
            {
                name: AlterPartition(
                    partition.leader_epoch + step.leader_epoch,
                    partition.partition_epoch + step.partition_epoch,
                    isr,
                )
            },
        )

    def _epoch(self, broker: int, *, stale: bool = False) -> int:
        """Return the current or a *stale* epoch of a broker; -1 before its first registration."""
        epochs = self._epochs[broker]
        if not epochs:
            return _UNKNOWN
        if not stale:
            return epochs[-1]
        return epochs[-2] if len(epochs) > 1 else epochs[-1] - 1


def compare_controllers(
    steps: Sequence[ControllerStep], model: ModelController, real: ControllerDriver
) -> ComparedSequence:
    """Take the steps on both controllers, with new names, up to the first difference.

    Raise `LiveError` if the brokers cannot register, `SequenceEndedError` if the real controller
    fails.
    """
    ours, theirs = _Controller(model, model), _Controller(real, model)
    for step in OPENING:
        opening = _exchange((), step, ours, theirs)
        if opening.differs:
            raise LiveError(f"the brokers cannot register: {difference_text(opening)}")
    for driver in (model, real):
        driver.create_topic()
    exchanges: list[ComparedRequest] = []
    for step in steps:
        exchanges.append(_exchange(exchanges, step, ours, theirs))
        if exchanges[-1].differs:
            break
    return ComparedSequence(tuple(exchanges))


def _exchange(
    before: Sequence[ComparedRequest], step: ControllerStep, ours: _Controller, theirs: _Controller
) -> ComparedRequest:
    # Both requests are relative to the model's state before the step.
    request, their_request = ours.request(step), theirs.request(step)
    modelled = ours.take(step, request, None)
    return finish_exchange(
        before, step, request, modelled, partial(theirs.take, step, their_request, modelled)
    )
