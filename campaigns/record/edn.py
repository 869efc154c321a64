"""Parses EDN, the notation of Clojure, into the values that a JSON parser returns.

Jepsen writes its histories as EDN (``history.edn``). Keywords and symbols become strings without
the colon, also as keys of maps. Lists, vectors and sets become lists. A tagged element such as
``#jepsen.history.Op{...}`` loses its tag. A map with a collection as a key becomes a list of pairs,
because JSON objects have no such keys.

A regular expression splits a text into tokens without their positions, which is fast. If a position
is needed, for a mistake or for an element that continues in a later text, a second pass finds it.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import Any, Final, NamedTuple

_TOKEN: Final = re.compile(
    r"""
        "(?:[^"\\]++|\\.)*+"                        # a string
      | \#[_{] | [\[\](){}]
      | ;.*
      | \#[^\s,"\[\](){}]+                          # a tag
      | [^\s,"\[\](){}\#;][^\s,"\[\](){};]*         # an atom
      | "[\s\S]* | \#                               # a string without its end, and what begins nothing
    """,
    re.VERBOSE,
)
_STRING: Final = re.compile(r'"(?:[^"\\]++|\\.)*+"')
_MAP_START: Final = re.compile(rb"\s*(?:#[^\s{]+\s*)?\{\s*:")
_VECTOR_START: Final = re.compile(rb"(?:\s|;[^\n]*\n)*[\[(](?:\s|;[^\n]*\n)*(?:#[^\s{]+\s*)?\{\s*:")
_OUTER_BRACKET: Final = re.compile(r"(?:\s|;[^\n]*\n)*([\[(])")
_INTEGER: Final = re.compile(r"[+-]?\d+N?")
_NUMBER: Final = re.compile(r"[+-]?\d+(?:\.\d*)?(?:[eE][+-]?\d+)?M?")
_ESCAPED: Final = re.compile(r"\\(u[0-9a-fA-F]{4}|.)")
_ESCAPES: Final = {"n": "\n", "t": "\t", "r": "\r", "b": "\b", "f": "\f"}
_CLOSER_OF: Final = {"[": "]", "(": ")", "{": "}", "#{": "}"}
_CLOSERS: Final = frozenset(_CLOSER_OF.values())
_DISCARD: Final = "#_"
_DIGITS_MAX: Final = 1_000
_DEPTH_MAX: Final = 200
"""The deepest nesting that is accepted, as for JSON."""
_WORDS: Final[dict[str, Any]] = {"nil": None, "true": True, "false": False}
_KEYWORDS_MAX: Final = 1_000
_KEYWORD_MAX: Final = 50
_DISCARDED: Final = object()
"""Stands for a ``#_`` among elements, which discards the element after it."""
_STRINGS: Final = frozenset({str})

_Level = tuple[str, list[Any]]
"""The opening token of a collection that is still open, and the elements read in it."""


class EdnError(ValueError):
    """Text that is not EDN; ``position`` is the index of the mistake."""

    def __init__(self, position: int, reason: str) -> None:
        super().__init__(reason)
        self.position = position
        self.reason = reason


class _ParseResult(NamedTuple):
    """The elements of a text, and the problem that stopped the parser, if any.

    If ``is_cut`` is set, the text ends within an element, which a later text may continue.
    """

    elements: list[Any]
    problem: EdnError | None = None
    is_cut: bool = False
    is_closed: bool = False
    """Whether the vector around the elements ends in this text."""


def looks_like_edn(line: bytes) -> bool:
    """Return whether a line starts a map whose first key is a keyword, which JSON never does."""
    return _MAP_START.match(line) is not None


def parse_edn(text: str) -> Any:
    """Return the only element of a text.

    Raises `EdnError` if it has none, or several.
    """
    elements, problem, *_ = _parse(text)
    if problem is not None:
        raise problem
    if len(elements) != 1:
        raise EdnError(0, f"expected one element, not {len(elements)}")
    return elements[0]


def begins_vector_of_maps(lines: Sequence[bytes]) -> bool:
    """Return whether lines start an EDN vector of maps, which may be a whole history."""
    return _VECTOR_START.match(b"".join(lines)) is not None


class ElementsOfVector:
    """The elements of a vector that is split over several texts.

    Iteration yields, for each text, the list of elements that end in it. Only the text of the
    element that is being read is kept, up to *size_max* characters. Iteration raises `EdnError` if
    the texts are not a vector. `place` converts the error's position to a line and a column, and
    `place_of` locates an element of the last list that was yielded.
    """

    def __init__(self, texts: Iterable[str], size_max: int) -> None:
        self._texts = iter(texts)
        self._size_max = size_max
        self._text = ""
        self._line, self._column = 1, 1

    def __iter__(self) -> Iterator[list[Any]]:
        around, parsed = "", _ParseResult([])
        for more in self._texts:
            self._text += self._as_much_again(more, len(self._text))
            if not around and (head := _OUTER_BRACKET.match(self._text)) is not None:
                around = head[1]
                self._forget(head.end())
            parsed = _parse(self._text, around)
            if parsed.elements:
                yield parsed.elements
            if parsed.problem is not None and not parsed.is_cut:
                raise parsed.problem
            if parsed.is_closed:
                self._expect_no_more()
                return
            self._forget(self._element_start(len(parsed.elements)) if parsed.is_cut else len(self._text))
            if len(self._text) > self._size_max:
                raise EdnError(0, f"an element has more than {self._size_max} characters (--max-line)")
        raise _parse(self._text).problem or EdnError(len(self._text), f"`{around}` is not closed")

    def place_of(self, number: int) -> tuple[int, int]:
        """Return the line and column of an element of the last list that was yielded."""
        return self.place(self._element_start(number))

    def place(self, position: int) -> tuple[int, int]:
        """Return the line and column of a position. Both count from 1."""
        lines = self._text.count("\n", 0, position)
        column = position - self._text.rfind("\n", 0, position) if lines else self._column + position
        return self._line + lines, column

    def _element_start(self, number: int) -> int:
        """Return the start of an element. The unfinished one has the number after the last."""
        return next(islice(_element_starts(self._text), number, None))

    def _forget(self, end: int) -> None:
        self._line, self._column = self.place(end)
        self._text = self._text[end:]

    def _as_much_again(self, text: str, size: int) -> str:
        """Append texts until they are *size* long, like the kept text.

        The kept text is scanned again with them. As the text doubles each time, the total time
        stays linear.
        """
        texts, read = [text], len(text)
        while read < size and (more := next(self._texts, None)) is not None:
            texts.append(more)
            read += len(more)
        return "".join(texts)

    def _expect_no_more(self) -> None:
        for more in self._texts:
            self._forget(len(self._text))
            self._text = more
            if (position := _start_of_more(more, 0)) is not None:
                raise EdnError(position, _MORE_AFTER_END)


_MORE_AFTER_END: Final = "there is more after the end of the vector"


def _start_of_more(text: str, number: int) -> int | None:
    """Return the start of the first token that is not a comment, from token *number* on."""
    tokens = islice(_TOKEN.finditer(text), number, None)
    return next((match.start() for match in tokens if match[0][0] != ";"), None)


class _MisplacedToken(Exception):
    """A token in the wrong place: its number, and the reason."""


def _parse(text: str, around: str = "") -> _ParseResult:
    """Return the elements of a text. *around* is the bracket that opened the vector, if any."""
    tokens = _TOKEN.findall(text)
    is_open = bool(tokens) and _is_open_string(tokens[-1])
    last = len(tokens) - is_open
    levels: list[_Level] = [(around, [])]
    try:
        end = _nest(levels, tokens[:last] if is_open else tokens)
    except _MisplacedToken as refused:
        number, reason = refused.args
        return _ParseResult(_without_discarded(levels[0][1])[0], EdnError(_token_start(text, number), reason))
    elements, is_waiting = _without_discarded(levels[0][1])
    if end < last:
        more = _start_of_more(text, end + 1)
        return _ParseResult(
            elements, None if more is None else EdnError(more, _MORE_AFTER_END), is_closed=True
        )
    if is_open:
        return _ParseResult(elements, EdnError(_token_start(text, last), "not EDN"), is_cut=True)
    if len(levels) > 1:
        return _ParseResult(elements, EdnError(len(text), f"`{levels[-1][0]}` is not closed"), is_cut=True)
    return _ParseResult(elements, is_cut=is_waiting or (bool(tokens) and tokens[-1][0] == "#"))


def _nest(levels: list[_Level], tokens: Sequence[str]) -> int:
    """Add the elements that tokens denote to the open collections.

    Return the number of the token that closes the outermost collection. If it stays open, return
    how many tokens there are.

    Raises `_MisplacedToken`.
    """
    opened, elements = levels[-1]
    has_discarded = _DISCARD in tokens
    keywords = _keywords
    for number, token in enumerate(tokens):
        keyword = keywords.get(token)
        if keyword is not None:
            elements.append(keyword)
        elif token in _CLOSER_OF:
            if len(levels) > _DEPTH_MAX:
                raise _MisplacedToken(number, f"more than {_DEPTH_MAX} elements are open")
            levels.append((token, []))
            opened, elements = levels[-1]
        elif token in _CLOSERS:
            if token != _CLOSER_OF.get(opened):
                raise _MisplacedToken(number, f"`{token}` closes nothing that is open")
            if len(levels) == 1:
                return number
            closed = _collection(
                opened, _without_discarded(elements)[0] if has_discarded else elements, number
            )
            levels.pop()
            opened, elements = levels[-1]
            elements.append(closed)
        elif token.isdecimal() and len(token) <= _DIGITS_MAX:
            elements.append(int(token))
        else:
            elements.extend(_other_elements(token, number))
    return len(tokens)


def _token_start(text: str, number: int) -> int:
    """Return the start of the token that has this number, from 0."""
    return next(islice(_TOKEN.finditer(text), number, None)).start()


def _element_starts(text: str) -> Iterator[int]:
    """Yield where each element starts that is not discarded. An unfinished one comes last."""
    depth = discarded = 0
    begins: int | None = None
    for match in _TOKEN.finditer(text):
        token = match[0]
        if token[0] == ";":
            continue
        begins = match.start() if begins is None else begins
        depth += (token in _CLOSER_OF) - (token in _CLOSERS)
        if depth or _is_open_string(token):
            continue
        if token[0] == "#" and token not in _CLOSER_OF:
            discarded += token == _DISCARD
        elif discarded:
            discarded -= 1
            begins = begins if discarded else None
        else:
            yield begins
            begins = None
    if begins is not None:
        yield begins


def _is_open_string(token: str) -> bool:
    return token[0] == '"' and not _STRING.fullmatch(token)


def _without_discarded(elements: list[Any]) -> tuple[list[Any], bool]:
    """Return elements without discarded ones, and whether a ``#_`` has no element after it yet."""
    remaining: list[Any] = []
    discarded = 0
    for element in elements:
        if element is _DISCARDED:
            discarded += 1
        elif discarded:
            discarded -= 1
        else:
            remaining.append(element)
    return remaining, discarded > 0


def _collection(opened: str, elements: list[Any], number: int) -> Any:
    if opened != "{":
        return elements
    if len(elements) % 2:
        raise _MisplacedToken(number, "a map with a key that has no value")
    keys, values = elements[::2], elements[1::2]
    if _STRINGS.issuperset(map(type, keys)):
        return dict(zip(keys, values, strict=True))
    if any(isinstance(key, (list, dict)) for key in keys):
        return [list(entry) for entry in zip(keys, values, strict=True)]
    return {key if isinstance(key, str) else str(key): value for key, value in zip(keys, values, strict=True)}


_keywords: dict[str, str] = {}
"""A cache of keywords as strings, because all operations have the same few keywords as fields."""


def _other_elements(token: str, number: int) -> list[Any]:
    """Return the element of a token that is no bracket and no plain number.

    A comment and a tag have no element.
    """
    first = token[0]
    if first == ":":
        if len(_keywords) < _KEYWORDS_MAX and len(token) <= _KEYWORD_MAX:
            _keywords[token] = token[1:]
        return [token[1:]]
    if first == '"':
        return [_unescape(token[1:-1])]
    if first in ";#":
        if len(token) == 1 and first == "#":
            raise _MisplacedToken(number, "not EDN")
        return [_DISCARDED] if token == _DISCARD else []
    return [_atom(token, number)]


def _atom(token: str, number: int) -> Any:
    if token in _WORDS:
        return _WORDS[token]
    if _INTEGER.fullmatch(token):
        if len(token) > _DIGITS_MAX:
            raise _MisplacedToken(number, f"a number with more than {_DIGITS_MAX} digits")
        return int(token.rstrip("N"))
    if _NUMBER.fullmatch(token):
        return float(token.rstrip("M"))
    return token


def _unescape(text: str) -> str:
    if "\\" not in text:
        return text
    return _ESCAPED.sub(
        lambda match: chr(int(match[1][1:], 16)) if len(match[1]) > 1 else _ESCAPES.get(match[1], match[1]),
        text,
    )
