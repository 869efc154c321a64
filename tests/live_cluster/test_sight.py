"""The declaration of an event says whether runs on real brokers show it."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

import harrow
from harrow.cluster_model.events import EVENTS, FieldTrait, Sight, events_seen_by, fields_with

ROOMS = ("live_cluster", "campaigns/run/injection")
"""What makes events of a run on real brokers; faults are told by the injector of every target."""


def words_of(room: str) -> Iterator[str]:
    for file in (Path(str(harrow.__file__)).parent / room).rglob("*.py"):
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Name):
                yield node.id
            elif isinstance(node, ast.Attribute):
                yield node.attr


def test_an_event_is_declared_as_seen_on_real_brokers_if_and_only_if_something_there_reports_it() -> None:
    words = {word for room in ROOMS for word in words_of(room)}
    reported = {name for name, kind in EVENTS.items() if kind.__name__ in words}
    assert reported == events_seen_by(Sight.STARTED_BROKERS)


@pytest.mark.parametrize("name", [name for name in EVENTS if fields_with(name, FieldTrait.MAY_BE_EMPTY)])
def test_only_an_event_that_real_brokers_show_has_fields_that_they_leave_empty(name: str) -> None:
    assert EVENTS[name].seen_by > Sight.MODEL
