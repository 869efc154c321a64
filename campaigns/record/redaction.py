"""Removes secrets from text that leaves the machine, such as a bug report."""

import os
import re
from collections.abc import Mapping
from typing import Final

HIDDEN: Final = "..."
_SOUNDS_SECRET: Final = re.compile(
    r"passw(?:or)?d|passphrase|secret|token|credential|jaas[._]config|(?:api|access|private|account|keystore)[._-]?key",
    re.IGNORECASE,
)
_ASSIGNED: Final = re.compile(
    rf"""(?<![\w.-])(?=[\w.-]*?(?:{_SOUNDS_SECRET.pattern}))([\w.-]+['"]?\s*[=:]\s*)"""
    r"""(?:'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*"|[^\s;&'"]+)""",
    re.IGNORECASE,
)
"""A name that sounds secret and its value, as in an address, an option, a file or a mapping.

A match begins with a whole word, so that a long word is searched only once.
"""
_LOGIN: Final = re.compile(r"(?<![a-z0-9+.-])([a-z0-9+.-]+://)[^\s/@'\"]+@", re.IGNORECASE)
_LENGTH_MIN: Final = 6
"""A value shorter than this is hardly a secret, but may occur in a text by chance."""

_secrets: Final[set[str]] = set()


def keep_secret(value: str) -> None:
    """Register a value that must not appear in any text, such as a password."""
    _secrets.add(value)


def sounds_secret(name: str) -> bool:
    """Return whether a setting or a variable with this name probably has a secret value."""
    return _SOUNDS_SECRET.search(name) is not None


def without_secrets(text: str, environ: Mapping[str, str] = os.environ) -> str:
    """Return a text without its secrets.

    Secrets are logins in addresses, values that are assigned to names that sound secret, values of
    environment variables with such names, and values registered with `keep_secret`.
    """
    values = _secrets.union(value for name, value in environ.items() if sounds_secret(name))
    for value in sorted(values, key=len, reverse=True):
        if len(value) >= _LENGTH_MIN:
            text = text.replace(value, HIDDEN)
    return _LOGIN.sub(rf"\1{HIDDEN}@", _ASSIGNED.sub(rf"\1{HIDDEN}", text))
