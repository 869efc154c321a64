"""JSON that a terminal, a log or a reader of lines shows as it is.

Letters of all languages stay as they are. What else Unicode has, such as control characters, ends of lines and
changes of direction, is escaped: it can stand in strings alone, where JSON allows that.
"""

import json
import re
from typing import Any, Final

_encode: Final = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode
_UNUSUAL: Final = re.compile(r"[^\x20-\x7e\n]")


def json_line(value: Any) -> str:
    """Return a value as one line of JSON."""
    text = _encode(value)
    return text if text.isprintable() else _UNUSUAL.sub(_escaped, text)


def json_document(value: Any) -> str:
    """Return a value as lines of JSON that people can read too."""
    return _UNUSUAL.sub(_escaped, json.dumps(value, ensure_ascii=False, indent=2)) + "\n"


def _escaped(found: re.Match[str]) -> str:
    return found[0] if found[0].isprintable() else json.dumps(found[0])[1:-1]
