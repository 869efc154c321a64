"""The catalogue of rules, and what `explain` prints of each."""

from importlib import import_module

import pytest

from checks.catalogue import RULES
from checks.promise import PROMISES


def test_rules_are_listed_in_order() -> None:
    assert list(RULES) == [
        "lost-write",
        "duplicate",
        "nonmonotonic-send",
        "inconsistent-offsets",
        "unseen",
        "read-above-hw",
        "log-divergence",
        "two-leaders",
    ]
    assert RULES.keys() == PROMISES.keys()


@pytest.mark.parametrize("name", RULES)
def test_each_rule_has_a_file_of_its_name(name: str) -> None:
    assert import_module(f"checks.{name.replace('-', '_')}").RULE is RULES[name]


@pytest.mark.parametrize("name", RULES)
def test_the_doc_says_what_promises_it_and_where_that_is_written(name: str) -> None:
    rule = RULES[name]
    assert rule.doc.startswith(rule.definition)
    for setting in (*PROMISES[name].promised_by, *PROMISES[name].permitted_by):
        assert setting in rule.doc
    assert rule.doc.endswith(f"Source: {rule.source}")
