"""JSON that a terminal, a log or a reader of lines shows as it is.

Letters of all languages stay as they are. What else Unicode has, such as control characters, ends of lines and
changes of direction, is escaped, and so is the bracket of a command to a CI system: these can stand in strings alone,
where JSON allows that.
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
_UNUSUAL: Final = re.compile(rf"[^\x20-\x7e\n]|{LOG_COMMAND}")


def json_line(value: Any) -> str:
    """Return a value as one line of JSON."""
    text = _encode(value)
    return text if text.isprintable() and "##" not in text else _UNUSUAL.sub(_escaped, text)


def json_document(value: Any) -> str:
    """Return a value as lines of JSON that people can read too."""
    return "".join(json_parts(value))


def json_parts(value: Any) -> Iterator[str]:
    """Yield the same in parts, because a document may be large."""
    parts = _encode_for_people(value)
    while part := "".join(islice(parts, _PARTS_AT_ONCE)):
        yield _UNUSUAL.sub(_escaped, part)
    yield "\n"


def _escaped(found: re.Match[str]) -> str:
    if len(found[0]) > 1:
        return f"{found[0][:-1]}\\u005b"
    return found[0] if found[0].isprintable() else json.dumps(found[0])[1:-1]
