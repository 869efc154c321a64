"""Knows which settings Kafka has in a release, whether or not the model has them.

``kafka_settings.txt`` has a line for each setting of brokers, topics, producers and consumers: the
scope, the name, and the releases whose ConfigDef has the setting. ``python -m docs.setting_names``
wrote the file. ``lacking_settings.txt`` says what a run can hide because the model lacks a setting.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Final

from harrow.cluster_model.registry import derived
from harrow.cluster_model.release.profiles import RELEASES
from harrow.cluster_model.release.switch import version_of
from harrow.cluster_model.settings import BROKER, CLIENTS, SCOPES, SETTINGS

_UNDEFINED: Final = ("listener.name.", "super.users")
"""How settings begin that brokers or their plug-ins read although no ConfigDef has them."""
_NUMBER: Final = r"[+-]?[0-9]{1,19}(\.[0-9]{1,19})?([eE][+-]?[0-9]{1,2})?"
TABLE: Final = Path(__file__).with_name("kafka_settings.txt")
VALUES: Final = Path(__file__).with_name("kafka_values.txt")
"""The types of settings and the values that their validators accept, in the release that the first
line names: ``broker log.cleaner.threads int 0..``, ``consumer isolation.level string a|b``."""
ANY_CASE: Final = "(?i)"
"""Precedes words that Kafka also accepts in capital letters."""
_LACKING: Final = Path(__file__).with_name("lacking_settings.txt")


def _lines(table: Path) -> list[str]:
    """Return the lines of a table, which may lie in an archive with the code."""
    from pkgutil import get_data  # noqa: PLC0415 - few commands read the tables

    content = get_data(__name__, table.name)
    assert content is not None, f"{table.name} is missing"
    return content.decode("utf-8").splitlines()


@derived
def setting_names() -> Mapping[tuple[str, str], frozenset[str]]:
    """Return the releases that have each setting, by scope and name."""
    rows = (line.split() for line in _lines(TABLE))
    return {(scope, name): frozenset(releases) for scope, name, *releases in rows}


def kafka_has(scope: str, name: str, release: str) -> bool:
    """Return whether Kafka has a setting in a release.

    The table lacks some releases, such as 1.1. Such a release has the settings of the release
    before it and of the release after it.
    """
    if scope == BROKER and name.startswith(_UNDEFINED):
        return True
    present = setting_names().get((scope, name), frozenset())
    return any(near in present for near in _nearest(release))


@derived
def _covered_releases() -> Sequence[str]:
    """Return the releases that the table covers, oldest first."""
    return sorted(frozenset().union(*setting_names().values()), key=version_of)


def _nearest(release: str) -> Iterator[str]:
    covered = _covered_releases()
    version = RELEASES[release].version
    yield from [name for name in covered if version_of(name) <= version][-1:]
    yield from [name for name in covered if version_of(name) >= version][:1]


def releases_with(name: str, scopes: tuple[str, ...] = SCOPES) -> tuple[str, ...]:
    """Return the releases in which Kafka has a setting of any of these scopes, oldest first."""
    present = frozenset().union(*(setting_names().get((scope, name), frozenset()) for scope in scopes))
    return tuple(release for release in RELEASES if release in present)


@derived
def _hidden_by_pattern() -> Mapping[str, str]:
    """Return what the model can hide by the patterns of settings; empty if nothing."""
    lines = _lines(_LACKING)
    rows = (line.partition(":") for line in lines if line and not line.startswith("#"))
    return {pattern: hides.strip() for pattern, _, hides in rows}


def _hidden(name: str) -> str | None:
    """Return what the model can hide because it lacks a setting; None if that is unknown."""
    return next(
        (hides for pattern, hides in _hidden_by_pattern().items() if fnmatchcase(name, pattern)), None
    )


def is_without_effect(name: str) -> bool:
    """Return whether a setting that the model lacks changes nothing that the model is about."""
    return _hidden(name) == ""


def hidden_without(name: str) -> str:
    """Return what the model can hide because it lacks a setting; empty if that is unknown."""
    return _hidden(name) or ""


@derived
def _accepted_values() -> tuple[str, Mapping[tuple[str, str], list[str]]]:
    head, *lines = _lines(VALUES)
    rows = (line.split() for line in lines)
    return head.removeprefix("# "), {(scope, name): words for scope, name, *words in rows}


def type_of(scope: str, name: str) -> str:
    """Return the type of a setting (``ConfigDef.Type``); empty if the table lacks the setting."""
    _, accepted = _accepted_values()
    return accepted.get((scope, name), [""])[0]


def refusal(scope: str, name: str, text: str) -> str:
    """Return why Kafka refuses a value; empty if it accepts it, or the table does not say."""
    release, accepted = _accepted_values()
    kind, *values = accepted.get((scope, name), [""])
    if kind == "boolean":
        problem = "" if text.lower() in ("true", "false") else "expected true or false"
    elif kind in ("short", "int", "long", "double"):
        problem = _out_of_range(text, *(values[0] if values else "..").split("..", 1))
    elif kind in ("string", "list") and values:
        problem = _other_word(text, values[0], is_list=kind == "list")
    else:
        problem = ""
    return problem and f"Kafka {release} refuses the value: {problem}"


def accepts(scope: str, name: str, text: str) -> bool:
    """Return whether Kafka is known to accept a value."""
    _, accepted = _accepted_values()
    kind, *values = accepted.get((scope, name), [""])
    return bool(values or kind in ("string", "list", "class")) and not refusal(scope, name, text)


def _other_word(text: str, accepted: str, *, is_list: bool) -> str:
    """Return why a text is none of the accepted words, or not a list of them; empty if it is."""
    patterns = accepted.removeprefix(ANY_CASE).split("|")
    words = [word.strip() for word in text.split(",")] if is_list else [text]
    if accepted.startswith(ANY_CASE):
        words = [word.lower() for word in words]
    if all(any(fnmatchcase(word, pattern) for pattern in patterns) for word in words):
        return ""
    return f"expected one of {', '.join(patterns)}"


def _out_of_range(text: str, low: str, high: str) -> str:
    if not re.fullmatch(_NUMBER, text):
        return "expected a number"
    if low and float(text) < float(low):
        return f"at least {low}"
    return f"at most {high}" if high and float(text) > float(high) else ""


def prefix_hint(name: str) -> str | None:
    """Return the hint about a prefix that is only for settings of producers and of consumers."""
    scope, _, plain = name.partition(".")
    if scope in CLIENTS and (scope, plain) in SETTINGS:
        return f"; only {scope}s have it: write `{plain}`"
    return None


def unmodelled_hint(name: str) -> str | None:
    """Return the hint about a setting that the model lacks; None if Kafka has no such setting."""
    if not releases_with(name):
        return None
    if is_without_effect(name):
        return "; Kafka has it and the model is not affected: leave it out"
    hides = hidden_without(name)
    return f"; Kafka has it and the model lacks it{f', which can hide {hides}' if hides else ''}"
