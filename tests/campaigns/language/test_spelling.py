"""Suggestions and lists of names stay safe to print if the names come from hostile files."""

import json

import pytest

from harrow.campaigns.language.loader import CampaignError, load_text
from harrow.campaigns.language.spelling import in_message, listed, printable, suggestion
from harrow.campaigns.record.json_text import json_document, json_line


def test_a_suggested_name_from_a_file_is_escaped() -> None:
    assert suggestion("after-the-write", ["aft\t\ter-the-write"]) == r"; did you mean `aft\t\ter-the-write`?"
    assert suggestion("x", ["one\x1b[31m", "two"]) == r"; known: one\x1b[31m, two"
    assert listed(["a\u2028b", 3]) == r"a\u2028b, 3"


@pytest.mark.parametrize(
    ("word", "hint"),
    [
        ("okay", "did you mean `ok`?"),
        ("inv", "did you mean `invoke`?"),
        ("fial", "did you mean `fail`?"),
        ("oops", "known: invoke, ok, fail, info"),
        ("pok", "did you mean `ok`?"),
        ("infer", "known: invoke, ok, fail, info"),
    ],
)
def test_a_short_list_is_shown_unless_a_name_begins_alike_or_is_very_similar(word: str, hint: str) -> None:
    assert suggestion(word, ("invoke", "ok", "fail", "info")) == f"; {hint}"


def test_a_message_shortens_a_word_that_is_longer_than_usual_paths() -> None:
    path = "x/" * 2_500
    assert (
        in_message(f"cannot read {path}: too long")
        == f"cannot read {path[:400]}...(5000 characters): too long"
    )
    assert in_message("\x1b" * 200) == r"\x1b" * 100 + "...(800 characters)"
    assert in_message(f"{'word ' * 1_000}{path[:500]}") == f"{'word ' * 1_000}{path[:500]}"


def test_no_message_has_a_control_character() -> None:
    text = (
        'workload: {producers: [{name: "p\\x1b[2J"}, {name: "p\\x1b[2J"}]}\n'
        'script: [{only: [base, "after-the-write"], do: {send: m}}]\nvariants: {"aft\\ter-the-write": {}}\n'
    )
    with pytest.raises(CampaignError) as refused:
        load_text(text, "hostile.yaml")
    assert all(problem.message.isprintable() for problem in refused.value.problems)


@pytest.mark.parametrize(
    "command", ["##[error]a", "b ##[group]c", "##vso[task.complete]", "##teamcity[message]"]
)
def test_no_text_is_a_command_to_a_ci_system_anywhere_in_its_line(command: str) -> None:
    assert printable(command) == command.replace("[", "\\x5b")
    assert json_line([command]) == command.replace("[", "\\u005b").join(('["', '"]'))
    assert json.loads(json_document({"a": [command]})) == {"a": [command]}
    assert command not in json_document({"a": [command]})
