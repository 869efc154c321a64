"""Hypothesis strategies for sequences of steps for controllers."""

from itertools import chain
from typing import Final

from hypothesis import strategies as st

from harrow.live_cluster.requests.controllers.steps import (
    ASSIGNMENT,
    BROKERS,
    AlterPartitionStep,
    ControllerStep,
    HeartbeatStep,
    PreferredStep,
    RegisterStep,
)
from harrow.live_cluster.requests.drawing import single, weighted

LENGTH: Final = 24
"""The maximum number of parts in a sequence, without the opening; a restart counts as one."""

_BROKER: Final = st.sampled_from(BROKERS)
_SELDOM: Final = st.sampled_from((False, False, False, False, True))
_EPOCH: Final = st.sampled_from((0, 0, 0, 0, 0, -1, 1))

_REGISTER: Final = st.builds(RegisterStep, broker=_BROKER, again=_SELDOM, stopped=st.booleans())
_HEARTBEAT: Final = st.builds(
    HeartbeatStep,
    broker=_BROKER,
    stale=_SELDOM,
    behind=_SELDOM,
    want_fence=st.sampled_from((False, False, True)),
    want_shut_down=st.sampled_from((False, False, False, True)),
)


@st.composite
def _alterations(draw: st.DrawFn) -> AlterPartitionStep:
    partition = draw(st.sampled_from(range(len(ASSIGNMENT))))
    replicas = ASSIGNMENT[partition]
    return AlterPartitionStep(
        partition=partition,
        broker=draw(st.sampled_from((None, None, None, None, *replicas))),
        stale=draw(_SELDOM),
        leader_epoch=draw(_EPOCH),
        partition_epoch=draw(_EPOCH),
        isr=tuple(draw(st.lists(st.sampled_from(replicas), min_size=1, unique=True))),
        members=draw(st.sampled_from(("present", "present", "present", "unknown", "stale"))),
    )


def _restart(broker: int, *, stopped: bool) -> tuple[ControllerStep, ...]:
    """Return the steps of a restart, which single steps seldom make up."""
    goes = (HeartbeatStep(broker=broker, want_shut_down=True),) * 2 if stopped else ()
    fenced = () if stopped else (HeartbeatStep(broker=broker, want_fence=True),)
    return (*goes, *fenced, RegisterStep(broker=broker, stopped=stopped), HeartbeatStep(broker=broker))


_RESTART: Final = st.builds(lambda broker, stopped: _restart(broker, stopped=stopped), _BROKER, st.booleans())


def controller_sequences() -> st.SearchStrategy[tuple[ControllerStep, ...]]:
    step: st.SearchStrategy[ControllerStep] = weighted(
        (3, _alterations()), (3, _HEARTBEAT), (1, _REGISTER), (1, st.just(PreferredStep()))
    )
    parts = weighted((5, single(step)), (1, _RESTART))
    return st.lists(parts, min_size=LENGTH // 2, max_size=LENGTH).map(
        lambda steps: tuple(chain.from_iterable(steps))
    )
