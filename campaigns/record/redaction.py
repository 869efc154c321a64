"""Text that leaves the machine, as a report of a bug does, without what is secret in it."""

import os
import re
from collections.abc import Mapping
from typing import Final

_HIDDEN: Final = "..."
_SOUNDS_SECRET: Final = re.compile(
    r"passw(?:or)?d|passphrase|secret|token|credential|jaas[._]config|(?:api|access|private|account)[._-]?key",
    re.IGNORECASE,
)
_ASSIGNED: Final = re.compile(
    rf"""([\w.-]*(?:{_SOUNDS_SECRET.pattern})[\w.-]*['"]?\s*[=:]\s*)"""
    r"""(?:'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*"|[^\s;&'"]+)""",
    re.IGNORECASE,
)
"""A name that sounds secret, and its value: in an address, an option, a file of settings or the text of a mapping."""
_LOGIN: Final = re.compile(r"([a-z][a-z0-9+.-]*://)[^\s/@'\"]+@", re.IGNORECASE)
_LENGTH_MIN: Final = 6
"""A shorter value of the environment is no secret, and stands everywhere in a text by chance."""

_kept: Final[set[str]] = set()


def keep_secret(value: str) -> None:
    """Remember a value that no text may have, whatever stands around it: one of the settings that log in somewhere."""
    _kept.add(value)


def sounds_secret(name: str) -> bool:
    """Return whether the value of a setting or a variable with this name is for nobody else."""
    return _SOUNDS_SECRET.search(name) is not None


def without_secrets(text: str, environ: Mapping[str, str] = os.environ) -> str:
    """Return a text without its secrets.

    These are logins in addresses, what is assigned to a name that sounds secret, the values of variables with such names, and
    what `keep_secret` remembers.
    """
    values = _kept.union(value for name, value in environ.items() if sounds_secret(name))
    for value in sorted(values, key=len, reverse=True):
        if len(value) >= _LENGTH_MIN:
            text = text.replace(value, _HIDDEN)
    return _LOGIN.sub(rf"\1{_HIDDEN}@", _ASSIGNED.sub(rf"\1{_HIDDEN}", text))
