"""Texts that pretend to be something else, and functions that put them into documents."""

from collections.abc import Callable, Iterator
from random import Random
from typing import Any, Final

COMMAND: Final = "::error::planted"
"""A command that a runner of GitHub Actions would obey at the start of a line."""
BROKEN_OUT: Final = f"{COMMAND}-line"
"""A command that follows a line end in a hostile text.

harrow must escape the line end, so that the command does not start a line of the output. Other text
comes before the line end, because descriptions lose leading line ends.
"""

TEXTS: Final = (
    f"a\n{BROKEN_OUT}",
    f"\n{COMMAND}",
    f"a\r{BROKEN_OUT}",
    f"a\r\n{BROKEN_OUT}\r\n",
    f"a\u2028{BROKEN_OUT}\u2029b\x85c\x0bd\x0ce",
    f"a\n\t {BROKEN_OUT}",
    COMMAND,
    f"  {COMMAND}",
    f"wide {COMMAND} {COMMAND}",
    "\x1b[31mred\x1b[2J\x1b]0;title\x07",
    "\x9b31m\x9d0;title\x9c",
    "\u202etxt.exe\u2066\u200f",
    "[red]markup[/red] [/] [link=file:///etc/passwd]",
    "%0A::error::%0D",
    "##[error]planted",
    "a ##[group]b ##vso[task.setvariable variable=x]y",
    "#",
    "##teamcity[message text='x']",
    "\x00",
    "\x7f\x08\x08\x08",
    "\ud800",
    "a\udfffb",
    "\ufeffmark",
    "<script>alert(1)</script>",
    "</script><!--",
    "]]>&amp;&#10;<failure/>",
    "`code` | cell | [x](javascript:1)",
    "=cmd()",
    "../../../etc/passwd",
    "$(touch planted)",
    "'; touch planted; '",
    '"; touch planted; "',
    "x" * 5_000,
    "e\u0301" * 300,
    "\U0001f468\u200d\U0001f469",
    "{0} {name} %s %(x)s",
    "",
    " ",
    "-",
    "- a: b # c",
    "null",
    "1e999",
    "\u0660",
)
ODDITIES: Final[tuple[Any, ...]] = (
    None,
    True,
    -1,
    10**30,
    2**63,
    1e308,
    float("nan"),
    [],
    {},
    [[]],
    {"a": [1]},
)


def text(draws: Random) -> str:
    """Return a hostile text, sometimes several in one."""
    return "".join(draws.choices(TEXTS, k=draws.choice((1, 1, 1, 2))))


def places(document: Any) -> Iterator[tuple[Any, Any]]:
    """Yield every container in a document, with each of its keys."""
    pending = [document]
    while pending:
        inner = pending.pop()
        keys = inner if isinstance(inner, dict) else range(len(inner)) if isinstance(inner, list) else ()
        for key in list(keys):
            yield inner, key
            pending.append(inner[key])


def poisoned(document: Any, draws: Random) -> Any:
    """Put hostile texts into a document: instead of a few values, after them, or as keys."""
    candidates = list(places(document))
    for container, key in draws.sample(candidates, min(len(candidates), draws.choice((1, 1, 2, 4)))):
        if key not in container if isinstance(container, dict) else key >= len(container):
            continue
        kind, old = draws.randrange(8), container[key]
        if kind == 0 and isinstance(container, dict):
            container[text(draws)] = container.pop(key)
        elif kind == 1:
            container[key] = draws.choice(ODDITIES)
        elif kind in (2, 3) and isinstance(old, str):
            container[key] = old + text(draws)
        elif kind == 4 and isinstance(container, dict):
            container[text(draws)] = text(draws)
        else:
            container[key] = text(draws)
    return document


def renamed(document: Any, names: Callable[[str], str]) -> Any:
    """Return a document in which some texts are renamed consistently."""
    if isinstance(document, dict):
        return {names(key): renamed(value, names) for key, value in document.items()}
    if isinstance(document, list):
        return [renamed(value, names) for value in document]
    return names(document) if isinstance(document, str) else document
