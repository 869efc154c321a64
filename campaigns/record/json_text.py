"""Writes JSON that is safe to print on a terminal, to log and to read line by line.

Letters of all languages stay as they are. Characters that cannot be printed, such as control
characters, line ends and changes of direction, are escaped. So is the bracket in ``##[``, with
which a log can command a CI system. All these occur only in strings, where JSON allows escapes.
"""

import json
import re
from collections.abc import Iterator
from itertools import islice
from typing import Any, Final

from harrow.campaigns.language.spelling import LOG_COMMAND

_encode: Final = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode
_encode_for_people: Final = json.JSONEncoder(ensure_ascii=False, indent=2).iterencode
_PARTS_AT_ONCE: Final = 1_000
_UNUSUAL: Final = rf"[^\x20-\x7e\n]|{LOG_COMMAND}"


def json_line(value: Any) -> str:
    """Return a value as one line of JSON."""
    text = _encode(value)
    return text if text.isprintable() and "##" not in text else re.sub(_UNUSUAL, _escaped, text)


def json_document(value: Any) -> str:
    """Return a value as indented JSON."""
    return "".join(json_parts(value))


def json_parts(value: Any) -> Iterator[str]:
    """Yield indented JSON in parts, because a document may be large."""
    parts = _encode_for_people(value)
    while part := "".join(islice(parts, _PARTS_AT_ONCE)):
        yield re.sub(_UNUSUAL, _escaped, part)
    yield "\n"


def _escaped(match: re.Match[str]) -> str:
    if len(match[0]) > 1:
        return f"{match[0][:-1]}\\u005b"
    return match[0] if match[0].isprintable() else json.dumps(match[0])[1:-1]
