"""Suggests names for misspelled ones, and quotes, counts and lists names in messages."""

import re
from collections.abc import Collection, Sequence
from difflib import get_close_matches
from functools import lru_cache
from typing import Final

# Beyond these limits a suggestion does not help, and to find one could take long with a hostile
# file.
_LONGEST_WORD = 60
_MOST_NAMES = 1_000
_MOST_NAMES_LISTED = 12

LOG_COMMAND: Final = r"##\w{0,20}\["
"""The start of a command that a CI system executes wherever it finds it in a line of a log.

GitHub Actions looks for ``##[`` anywhere in a line (``ActionCommand.TryParse``), Azure Pipelines
for ``##vso[`` (``Command.TryParse``; its log viewer also interprets ``##[group]`` and similar), and
TeamCity for ``##teamcity[name ...]`` ("Service Messages"). Commands that begin with ``::`` are
executed only if nothing but blanks precedes them in a line (``ActionCommand.TryParseV2``).
`harrow.cli.output_stream` escapes those commands, because it knows where lines start.
"""
_LOG_COMMAND: Final = re.compile(LOG_COMMAND)
_LONG: Final = 500
_SHOWN_OF_LONG: Final = 400
_LONG_WORDS: Final = rf"\S{{{_LONG},}}[^\s:,;.]"


def nearest(word: str, names: Collection[str], likeness_min: float = 0.6) -> str | None:
    """Return the name whose spelling is nearest to *word*; None if no name is near."""
    if len(word) > _LONGEST_WORD or len(names) > _MOST_NAMES:
        return None
    return _nearest(word, tuple(sorted(names)), likeness_min)


@lru_cache(maxsize=4096)
def _nearest(word: str, names: tuple[str, ...], likeness_min: float) -> str | None:
    folded = {_folded(name): name for name in names}
    close = get_close_matches(_folded(word), folded, n=1, cutoff=likeness_min)
    return folded[close[0]] if close else None


def _folded(name: str) -> str:
    return name.lower().replace("_", "-").replace(".", "-")


def suggestion(word: str, names: Collection[str]) -> str:
    """Return a hint about an unknown name: the nearest name, or all names if there are few."""
    is_short_list = 0 < len(names) <= _MOST_NAMES_LISTED
    close = nearest(word, names)
    # If the message can list all names, a poor suggestion such as `topic` for `stop` would only
    # mislead. A name with the same beginning, such as `ok` for `okay`, is a good suggestion.
    if close is not None and is_short_list and not _begins_like(word, close):
        close = nearest(word, names, 0.7)
    if close is not None:
        return f"; did you mean {quoted(close)}?"
    if is_short_list:
        return f"; known: {listed(sorted(names) if isinstance(names, frozenset) else names)}"
    return ""


def _begins_like(word: str, name: str) -> bool:
    shorter, longer = sorted((_folded(word), _folded(name)), key=len)
    return longer.startswith(shorter)


def listed(names: Collection[str | int]) -> str:
    """Return names separated by commas, shortened if there are many."""
    shown = [printable(str(name)) for name in names]
    if len(shown) > _MOST_NAMES_LISTED:
        return ", ".join([*shown[: _MOST_NAMES_LISTED - 1], f"... ({len(shown)} in all)"])
    return ", ".join(shown)


def counted(number: int, noun: str) -> str:
    """Return a number with its noun, as in ``1 replica`` and ``2 replicas``."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def shortlist(names: Sequence[str], shown_max: int) -> str:
    """Return the names; if there are many, the first ones and the number of the others."""
    shown = ", ".join(map(printable, names[:shown_max]))
    return f"{shown} and {len(names) - shown_max} more" if len(names) > shown_max else shown


def run_name(campaign: str, variant: str | None) -> str:
    """Return the name of a campaign's runs: ``loss``, or ``loss[0.11]`` for a variant."""
    return campaign if variant is None else f"{campaign}[{variant}]"


def printable(text: str) -> str:
    """Escape characters that disturb a terminal, break a line, or start a command in a CI log."""
    if not text.isprintable():
        text = "".join(
            char if char.isprintable() else char.encode("unicode_escape").decode("ascii") for char in text
        )
    return _LOG_COMMAND.sub(_without_bracket, text) if "##" in text else text


def in_message(text: str) -> str:
    """Return printable text with very long words shortened, because they would hide the message."""
    return re.sub(_LONG_WORDS, _shortened_word, printable(text))


def _shortened_word(word: re.Match[str]) -> str:
    return f"{word[0][:_SHOWN_OF_LONG]}...({len(word[0])} characters)"


def _without_bracket(command: re.Match[str]) -> str:
    return f"{command[0][:-1]}\\x5b"


def quoted(text: str) -> str:
    """Quote a piece of a file for a message: on one line, and shortened."""
    shown = printable(text)
    return f"`{shown}`" if len(shown) <= _LONGEST_WORD else f"`{shown[:_LONGEST_WORD]}...`"


CLUSTER_OPTION: Final = "--cluster"
"""The option whose text is a path, not YAML. Among others it stands as ``--cluster=PATH``."""


def option_words(option: str) -> tuple[str, str]:
    """Return the words as typed: ``--set`` and ``key=value``, or ``--cluster`` and a path."""
    name, _, path = option.partition("=")
    return (name, path) if name == CLUSTER_OPTION else ("--set", option)
