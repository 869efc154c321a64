"""Each event declares whether runs on real brokers show it."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

import harrow
from harrow.cluster_model.events import EVENTS, FieldTrait, Sight, events_seen_by, fields_with

ROOMS = ("live_cluster", "campaigns/run/injection")
"""Folders that report events of runs on real brokers. The injector reports faults of any target."""
MODEL = "live_cluster/serve"
"""A folder among them whose brokers are the model's."""


def words_in(room: str) -> Iterator[str]:
    folder = Path(str(harrow.__file__)).parent
    for file in (folder / room).rglob("*.py"):
        if file.is_relative_to(folder / MODEL):
            continue
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Name):
                yield node.id
            elif isinstance(node, ast.Attribute):
                yield node.attr


def test_an_event_is_declared_as_seen_on_real_brokers_exactly_if_code_there_reports_it() -> None:
    words = {word for room in ROOMS for word in words_in(room)}
    reported = {name for name, kind in EVENTS.items() if kind.__name__ in words}
    assert reported == events_seen_by(Sight.STARTED_BROKERS)


@pytest.mark.parametrize("name", [name for name in EVENTS if fields_with(name, FieldTrait.MAY_BE_EMPTY)])
def test_only_events_of_real_brokers_declare_fields_that_may_be_empty(name: str) -> None:
    assert EVENTS[name].seen_by > Sight.MODEL
