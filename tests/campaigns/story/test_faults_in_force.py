"""The faults in force follow from strikes and ends in a trace."""

from collections.abc import Sequence
from typing import Any

import pytest

from harrow.campaigns.story.faults_in_force import brokers_of, struck_fault
from harrow.campaigns.story.run_state import RunState
from harrow.cluster_model.trace import TraceEvent
from harrow.faults.catalogue import FAULTS
from harrow.faults.fault import LastingFault


def strike_event(fault: str, **details: Any) -> TraceEvent:
    return (0, "fault", fault, "inject", tuple(details.items()), 1)


def in_force(events: Sequence[TraceEvent]) -> list[int]:
    """Return the strikes that are in force after these events of three brokers."""
    state = RunState({"t-0": (0, 1, 2)}, (0, 1, 2))
    for broker in (0, 1, 2):
        state.advance((0, "broker_started", broker))
    for event in events:
        state.advance(event)
    return [fault.strike for fault in state.faults]


def test_healing_a_core_ends_faults_that_name_no_broker_outside() -> None:
    # `count: 2` means two responses, not broker 2.
    losses = strike_event("network_ack_loss", broker=0, count=2)
    assert in_force([losses, (0, "core_healed", (0, 1))]) == []
    assert in_force([strike_event("network_ack_loss", broker=2), (0, "core_healed", (0, 1))]) == [1]
    cut = strike_event("partition", between=(0,), **{"and": ("zookeeper", 2)})
    assert in_force([cut, (0, "core_healed", (0, 1))]) == [1]


def test_only_fields_declared_as_brokers_count_as_brokers() -> None:
    details: dict[str, Any] = {
        "action": "delay",
        "from": 1,
        "to": "producer-0",
        "count": 2,
        "skip": 3,
        "delay": "5ms",
    }
    assert brokers_of(struck_fault("message", details.items())) == {1}


@pytest.mark.parametrize("name", [name for name, fault in FAULTS.items() if issubclass(fault, LastingFault)])
def test_every_lasting_fault_is_in_force_from_its_strike(name: str) -> None:
    fault_details: dict[str, dict[str, Any]] = {
        "partition": {"between": (0,), "and": (1,)},
        "link_slow": {"between": (0,), "and": (1,)},
        "network_split": {"nodes": (0, 1), "order": "given"},
        "message": {"action": "drop"},
        "network_ack_loss": {},
        "clock_skew": {"of": (1,)},
        **{key: {"client": "producer-0"} for key in FAULTS if key.startswith(("client_", "application_"))},
        "slow_poll": {"client": "producer-0"},
    }
    details = fault_details.get(name, {"broker": 1})
    assert in_force([strike_event(name, **details)]) == [1]
    assert in_force([strike_event(name, **details), (0, "healed")]) == []


def test_a_pause_ends_with_its_broker_and_a_crash_with_its_start() -> None:
    pause = [strike_event("broker_pause", broker=1), (0, "broker_paused", 1)]
    assert in_force(pause) == [1]
    crash = [*pause, (*strike_event("broker_crash", broker=1)[:-1], 2), (0, "broker_stopped", 1, "process")]
    assert in_force(crash) == [2]
    assert in_force([*crash, (0, "broker_started", 1)]) == []
    assert in_force([*crash, (0, "broker_started", 2)]) == [2]
