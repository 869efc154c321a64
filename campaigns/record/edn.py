"""EDN, the notation of Clojure: elements of it as the values that JSON would have.

Jepsen writes its histories so (``history.edn``). Keywords and symbols become strings without their colon, and so do keys of maps;
lists, vectors and sets become lists, and a tagged element, ``#jepsen.history.Op{...}``, what it tags. A map with a collection as
a key becomes a list of pairs, because no JSON object has such keys.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final

_TOKEN: Final = re.compile(
    r"""[\s,]*(?:
        (?P<discard>\#_)
      | (?P<open>\#\{|[\[({])
      | (?P<close>[\])}])
      | "(?P<text>(?:[^"\\]++|\\.)*+)"
      | (?P<comment>;.*)
      | \#(?P<tag>[^\s,"\[\](){}]+)
      | (?P<atom>[^\s,"\[\](){}\#;][^\s,"\[\](){};]*)
    )""",
    re.VERBOSE,
)
_BEGINS: Final = re.compile(rb"\s*(?:#[^\s{]+\s*)?\{\s*:")
_BEGINS_VECTOR: Final = re.compile(rb"(?:\s|;[^\n]*\n)*[\[(](?:\s|;[^\n]*\n)*(?:#[^\s{]+\s*)?\{\s*:")
_INTEGER: Final = re.compile(r"[+-]?\d+N?")
_NUMBER: Final = re.compile(r"[+-]?\d+(?:\.\d*)?(?:[eE][+-]?\d+)?M?")
_ESCAPED: Final = re.compile(r"\\(u[0-9a-fA-F]{4}|.)")
_ESCAPES: Final = {"n": "\n", "t": "\t", "r": "\r", "b": "\b", "f": "\f"}
_CLOSES: Final = {"[": "]", "(": ")", "{": "}", "#{": "}"}
_DIGITS_MAX: Final = 1_000
_DEPTH_MAX: Final = 200
"""Elements that are nested deeper are refused, as they are in JSON."""
_BLANKS: Final = " \t\r\n,"
_WORDS: Final[dict[str, Any]] = {"nil": None, "true": True, "false": False}


class EdnError(ValueError):
    """Text that is no EDN; ``position`` is where in it."""

    def __init__(self, position: int, reason: str) -> None:
        super().__init__(reason)
        self.position = position
        self.reason = reason


def looks_like_edn(line: bytes) -> bool:
    """Return whether a line begins a map with a keyword, which no JSON does."""
    return _BEGINS.match(line) is not None


def parse_edn(text: str) -> Any:
    """Return the one element of a text.

    Raises `EdnError` where it is none, or more than one.
    """
    nest = _Nest()
    place = 0
    while (match := _TOKEN.match(text, place)) is not None:
        kind = match.lastgroup
        assert kind is not None
        nest.take(kind, match[kind], match.start(kind))
        place = match.end()
    rest = text[place:].strip(_BLANKS)
    if rest:
        raise EdnError(text.index(rest, place), "not EDN")
    return nest.only_element(len(text))


def begins_vector_of_maps(lines: Sequence[bytes]) -> bool:
    """Return whether lines begin a vector of maps, as a whole history may be written; no line of JSON does."""
    return _BEGINS_VECTOR.match(b"".join(lines)) is not None


class ElementsOfVector:
    """The elements of the one vector that texts make together, each with its position, in characters from the beginning.

    No more is kept of the texts than the element that is being read, which may have up to *size_max* characters. Iterating
    raises `EdnError` where the texts make no vector; its position, and that of the last element, have a `place`.
    """

    def __init__(self, texts: Iterable[str], size_max: int) -> None:
        self._texts = iter(texts)
        self._size_max = size_max
        self._kept = ""
        self._kept_from = 0
        self._line, self._column = 1, 1
        self._nest = _Nest()
        self._begins: int | None = None

    def __iter__(self) -> Iterator[tuple[int, Any]]:
        nest = self._nest
        is_over = False
        for match in self._tokens():
            kind = match.lastgroup
            assert kind is not None
            at = self._kept_from + match.start(kind)
            if nest.depth > 1:
                # Most tokens stand within an element and do not end it.
                nest.take(kind, match[kind], at)
                if nest.depth > 1:
                    continue
                yield from self._taken()
                continue
            if is_over and kind != "comment":
                raise EdnError(at, "there is more after the end of the vector")
            if self._begins is None and nest.depth == 1 and kind not in ("comment", "discard", "close"):
                # A tag stands before its element, and is no token of the nest's.
                self._begins = at - (kind == "tag")
            nest.take(kind, match[kind], at)
            is_over = is_over or (nest.depth == 0 and kind == "close")
            if nest.depth == 1 and kind in ("close", "text", "atom"):
                yield from self._taken()
        nest.only_element(self._kept_from + len(self._kept))

    def _taken(self) -> Iterator[tuple[int, Any]]:
        """Yield the element that has ended; one that is to be left out (``#_``) is none."""
        begins, self._begins = self._begins or 0, None
        for element in self._nest.pop_elements():
            yield begins, element

    def place(self, position: int) -> tuple[int, int]:
        """Return the line and the column of a position that has not been passed by; both begin with 1."""
        return self._after(self._kept[: max(position - self._kept_from, 0)])

    def _tokens(self) -> Iterator[re.Match[str]]:
        """Yield the tokens of all texts; nothing is kept of what stands before the open element."""
        place = 0
        for more in self._texts:
            used = self._open_from(place)
            self._line, self._column = self._after(self._kept[:used])
            self._kept_from += used
            place -= used
            self._kept = self._kept[used:] + self._as_much_again(more, len(self._kept) - used)
            while (match := _TOKEN.match(self._kept, place)) is not None:
                place = match.end()
                yield match
            open_from = self._open_from(place)
            if len(self._kept) - open_from > self._size_max:
                raise EdnError(
                    self._kept_from + open_from,
                    f"an element of more than {self._size_max} characters (--max-line)",
                )
        rest = self._kept[place:].strip(_BLANKS)
        if rest:
            raise EdnError(self._kept_from + self._kept.index(rest, place), "not EDN")

    def _open_from(self, place: int) -> int:
        return place if self._begins is None else self._begins - self._kept_from

    def _as_much_again(self, text: str, size: int) -> str:
        """Return a text with those after it until they are as long as what is kept: that is looked through again."""
        texts, read = [text], len(text)
        while read < size and (more := next(self._texts, None)) is not None:
            texts.append(more)
            read += len(more)
        return "".join(texts)

    def _after(self, text: str) -> tuple[int, int]:
        lines = text.count("\n")
        column = len(text) - text.rfind("\n") if lines else self._column + len(text)
        return self._line + lines, column


class _Nest:
    """What is open: how it began, what is in it so far, and how many of its next elements are to be left out (``#_``)."""

    def __init__(self) -> None:
        self._levels: list[tuple[str, list[Any]]] = [("", [])]
        self._discarded = [0]
        self.depth = 0
        """In how many elements the next token is."""

    def take(self, kind: str, token: str, at: int) -> None:
        if kind == "atom":
            self._add(_atom(token, at))
        elif kind == "text":
            self._add(_unescaped(token))
        elif kind == "open":
            if self.depth >= _DEPTH_MAX:
                raise EdnError(at, f"more than {_DEPTH_MAX} elements are open")
            self._levels.append((token, []))
            self._discarded.append(0)
            self.depth += 1
        elif kind == "close":
            self._add(self._close(token, at))
        elif kind == "discard":
            self._discarded[-1] += 1

    def pop_elements(self) -> list[Any]:
        """Return the elements of what is open so far, and forget them."""
        opened, elements = self._levels[-1]
        self._levels[-1] = (opened, [])
        return elements

    def only_element(self, end: int) -> Any:
        opened, elements = self._levels[-1]
        if opened:
            raise EdnError(end, f"`{opened}` is not closed")
        if len(elements) != 1:
            raise EdnError(0, f"{len(elements)} elements in one line")
        return elements[0]

    def _close(self, token: str, at: int) -> Any:
        opened, elements = self._levels[-1]
        if _CLOSES.get(opened) != token:
            raise EdnError(at, f"`{token}` closes nothing that is open")
        self._levels.pop()
        self._discarded.pop()
        self.depth -= 1
        return _closed(opened, elements, at)

    def _add(self, element: Any) -> None:
        if self._discarded[-1]:
            self._discarded[-1] -= 1
        else:
            self._levels[-1][1].append(element)


def _closed(opened: str, elements: list[Any], at: int) -> Any:
    if opened != "{":
        return elements
    if len(elements) % 2:
        raise EdnError(at, "a map with a key that has no value")
    entries = zip(elements[::2], elements[1::2], strict=True)
    if any(isinstance(key, (list, dict)) for key in elements[::2]):
        return [list(entry) for entry in entries]
    return {key if isinstance(key, str) else str(key): value for key, value in entries}


def _atom(token: str, at: int) -> Any:
    if token in _WORDS:
        return _WORDS[token]
    if token[0] == ":":
        return token[1:]
    if token.isdecimal() and len(token) <= _DIGITS_MAX:
        return int(token)
    if _INTEGER.fullmatch(token):
        if len(token) > _DIGITS_MAX:
            raise EdnError(at, f"a number with more than {_DIGITS_MAX} digits")
        return int(token.rstrip("N"))
    if _NUMBER.fullmatch(token):
        return float(token.rstrip("M"))
    return token


def _unescaped(text: str) -> str:
    if "\\" not in text:
        return text
    return _ESCAPED.sub(
        lambda match: chr(int(match[1][1:], 16)) if len(match[1]) > 1 else _ESCAPES.get(match[1], match[1]),
        text,
    )
