"""What `harrow explain` prints about rules and settings."""

import pytest

from harrow.checks.rules.catalogue import RULES
from harrow.cli.render.catalogue import explain


@pytest.mark.parametrize("name", RULES)
def test_the_explanation_of_a_rule_has_its_promise_its_permissions_and_its_source(name: str) -> None:
    rule = RULES[name]
    (entry,) = (entry for entry in explain(name) if entry.kind == "rule")
    shown = entry.sections["promise"]
    assert " ".join(rule.definition.split()).startswith(entry.summary)
    for fact, texts in (
        ("promised by", rule.promise.promised_by),
        ("permitted by", rule.promise.permitted_by),
    ):
        assert [line.removeprefix("- ") for line in shown.get(fact, "").splitlines()] == (
            list(texts) or (["nothing"] if fact == "promised by" else [])
        )
    assert shown["source"] == rule.source


@pytest.mark.parametrize(
    ("name", "scopes"), [("acks", ["producer"]), ("min.insync.replicas", ["broker", "topic"])]
)
def test_the_explanation_of_a_setting_gives_each_meaning_once(name: str, scopes: list[str]) -> None:
    (entry,) = (entry for entry in explain(name) if entry.kind == "setting")
    meanings = [entry.summary, *(entry.sections[scope].get("meaning", "") for scope in scopes)]
    assert [meaning for meaning in meanings if meaning == entry.summary] == [entry.summary]
    assert all(meanings[2:]), "the other scopes say what differs there"
