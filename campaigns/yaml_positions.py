"""YAML as a tree in which every key and every value knows its line and column.

Scalars stay as they are written: what ``2.10``, ``on`` or ``1:30`` mean is decided
where it is known what is wanted there, so YAML 1.1 has no surprises to offer. The
sizes of what is read are bounded, and so is what aliases make of it.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

import yaml

from campaigns.spelling import quoted

MAX_BYTES: Final = 1 << 20
MAX_NODES: Final = 100_000
MAX_DEPTH: Final = 64

_NULLS: Final = frozenset({"", "~", "null", "Null", "NULL"})
_NOT_ALLOWED: Final = re.compile(
    "[^\t\n\r\x20-\x7e\x85\xa0-\ud7ff\ue000-\ufefe\uff00-\ufffd\U00010000-\U0010ffff]"
)
_SURROGATE: Final = re.compile("[\ud800-\udfff]")
_TAB_INDENT: Final = re.compile(r"^[ ]*\t", re.MULTILINE)

# libyaml is ten times as fast; where PyYAML was built without it, its own parser reads the same.
_Loader: Final[Any] = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


class Mark(NamedTuple):
    """A place: line and column in the file, from 1, or the ``--set`` option that it came with."""

    line: int
    column: int
    option: str | None = None


@dataclass(frozen=True, slots=True)
class Scalar:
    """Text as written. ``plain`` is whether it stands without quotes."""

    text: str
    mark: Mark
    plain: bool = True

    def is_null(self) -> bool:
        """Return whether nothing was written here, or YAML's word for it."""
        return self.plain and self.text in _NULLS


@dataclass(frozen=True, slots=True)
class ListNode:
    """A list. ``lost`` is whether something that was not valid has been taken out of it."""

    items: tuple["Node", ...]
    mark: Mark
    lost: bool = False


@dataclass(frozen=True, slots=True)
class Entry:
    """A value of a mapping, and where its key stands."""

    key_mark: Mark
    value: "Node"


@dataclass(frozen=True, slots=True)
class MapNode:
    """A mapping, in the order of the file. ``lost`` are keys that were taken out of it."""

    entries: dict[str, Entry]
    mark: Mark
    lost: frozenset[str] = frozenset()


Node = Scalar | ListNode | MapNode
Path = tuple[str | int, ...]


class Mistake(NamedTuple):
    """What is wrong, and where."""

    mark: Mark
    message: str


class YamlError(Exception):
    """Text that is no YAML, or more than is read; ``mistakes`` are what was found up to there."""

    def __init__(self, mistakes: Sequence[Mistake]) -> None:
        super().__init__(mistakes)
        self.mistakes = mistakes


@dataclass(frozen=True, slots=True)
class Document:
    """A file's only document, and the mistakes that did not keep it from being read."""

    root: Node
    mistakes: tuple[Mistake, ...]


def compose(text: str) -> Document:
    """Return the document in *text*.

    Raises:
        YamlError: it cannot be read.

    """
    text = text.removeprefix("\ufeff")
    _check_characters(text)
    composer = _Composer(text)
    try:
        return Document(composer.document(), tuple(composer.mistakes))
    except _FatalError as error:
        raise YamlError([*composer.mistakes, error.mistake]) from None
    except yaml.MarkedYAMLError as error:
        raise YamlError([*composer.mistakes, _syntax_mistake(error)]) from None
    except yaml.YAMLError as error:
        raise YamlError([*composer.mistakes, Mistake(Mark(1, 1), f"not valid YAML: {error}")]) from None
    finally:
        composer.close()


def lookup(root: Node, path: Path) -> tuple[Path, Mark, Node]:
    """Follow *path* as far as the tree goes.

    What is not in the tree is passed over: a value written in short form is shorter
    than what it stands for. Returns the path that exists, where its last key (or list
    item) stands, and the node there.
    """
    found: list[str | int] = []
    mark, node = root.mark, root
    for part in path:
        if isinstance(node, MapNode) and isinstance(part, str) and part in node.entries:
            entry = node.entries[part]
            mark, node = entry.key_mark, entry.value
        elif isinstance(node, ListNode) and isinstance(part, int) and part < len(node.items):
            node = node.items[part]
            mark = node.mark
        else:
            continue
        found.append(part)
    return tuple(found), mark, node


def without(root: Node, paths: Sequence[Path]) -> Node:
    """Return the tree without what stands at *paths*, which exist in it."""
    removals: dict[str | int, Any] = {}
    # Shorter paths come last, so that they take what is below them along.
    for path in sorted(paths, key=len, reverse=True):
        level = removals
        for part in path[:-1]:
            level = level.setdefault(part, {})
        level[path[-1]] = None
    return _without(root, removals)


def _without(node: Node, removals: dict[str | int, Any]) -> Node:
    gone = frozenset(part for part, inner in removals.items() if inner is None)
    if isinstance(node, MapNode):
        entries = {
            key: Entry(entry.key_mark, _without(entry.value, removals[key])) if key in removals else entry
            for key, entry in node.entries.items()
            if key not in gone
        }
        return MapNode(entries, node.mark, node.lost | frozenset(map(str, gone)))
    if isinstance(node, ListNode):
        items = tuple(
            _without(item, removals[index]) if index in removals else item
            for index, item in enumerate(node.items)
            if index not in gone
        )
        return ListNode(items, node.mark, lost=node.lost or bool(gone))
    return node


def _check_characters(text: str) -> None:
    """Raise YamlError for characters that YAML has no place for, and for tabs as indentation."""
    wrong = _NOT_ALLOWED.search(text)
    if wrong:
        name = f"U+{ord(wrong[0]):04X}"
        raise YamlError([Mistake(_mark_at(text, wrong.start()), f"YAML does not allow the character {name}")])
    tabs = [match.end() - 1 for match in _TAB_INDENT.finditer(text)]
    if tabs:
        message = "a tab at the beginning of a line: YAML is indented with spaces"
        raise YamlError([Mistake(_mark_at(text, tab), message) for tab in tabs[:20]])


def _mark_at(text: str, index: int) -> Mark:
    # The sentinel keeps a line that is still empty at the index from being left out.
    lines = (text[:index] + "|").splitlines()
    return Mark(len(lines), len(lines[-1]))


class _FatalError(Exception):
    """A mistake after which there is no sense in reading on."""

    def __init__(self, mark: Mark, message: str) -> None:
        super().__init__(message)
        self.mistake = Mistake(mark, message)


class _Measured(NamedTuple):
    """A node, and what repeating it through an alias would cost."""

    node: Node
    nodes: int
    height: int


@dataclass(slots=True)
class _Composer:
    """Builds the tree from the parser's events, one at a time, so that bounds end it early."""

    text: str
    mistakes: list[Mistake] = field(default_factory=list)
    _parser: Any = None
    _nodes: int = 0
    _anchors: dict[str, _Measured | None] = field(default_factory=dict)

    def document(self) -> Node:
        """Return the only document's root."""
        self._parser = _Loader(self.text)
        self._parser.get_event()
        if self._parser.check_event(yaml.StreamEndEvent):
            raise _FatalError(Mark(1, 1), "the file is empty; `harrow new NAME` writes one to start from")
        self._parser.get_event()
        root = self._node(self._parser.get_event(), 0).node
        self._parser.get_event()
        if not self._parser.check_event(yaml.StreamEndEvent):
            second = _mark(self._parser.peek_event())
            raise _FatalError(second, "a second document begins here; a campaign file has only one")
        return root

    def close(self) -> None:
        """Let the parser go."""
        if self._parser is not None:
            self._parser.dispose()

    def _node(self, event: Any, depth: int) -> _Measured:
        if isinstance(event, yaml.AliasEvent):
            return self._alias(event, depth)
        mark = _mark(event)
        self._count(1, mark)
        if depth > MAX_DEPTH:
            raise _FatalError(mark, f"nested more than {MAX_DEPTH} levels deep")
        if event.tag is not None:
            tag = quoted(event.tag.replace("tag:yaml.org,2002:", "!!"))
            self.mistakes.append(Mistake(mark, f"the tag {tag}: campaign files have no tags; leave it out"))
        if event.anchor is not None:
            self._anchors[event.anchor] = None
        if isinstance(event, yaml.ScalarEvent):
            if _SURROGATE.search(event.value):
                self.mistakes.append(Mistake(mark, "half of a surrogate pair is no character"))
            measured = _Measured(Scalar(event.value, mark, plain=not event.style), 1, 0)
        elif isinstance(event, yaml.SequenceStartEvent):
            measured = self._list(mark, depth)
        else:
            measured = self._mapping(mark, depth)
        if event.anchor is not None:
            self._anchors[event.anchor] = measured
        return measured

    def _alias(self, event: Any, depth: int) -> _Measured:
        mark = _mark(event)
        if event.anchor not in self._anchors:
            raise _FatalError(mark, f"the alias *{event.anchor} has no anchor &{event.anchor} before it")
        measured = self._anchors[event.anchor]
        if measured is None:
            raise _FatalError(mark, f"the alias *{event.anchor} stands inside of what it repeats")
        self._count(measured.nodes, mark)
        if depth + measured.height > MAX_DEPTH:
            raise _FatalError(
                mark, f"nested more than {MAX_DEPTH} levels deep through the alias *{event.anchor}"
            )
        return measured

    def _count(self, nodes: int, mark: Mark) -> None:
        self._nodes += nodes
        if self._nodes > MAX_NODES:
            raise _FatalError(mark, f"more than {MAX_NODES} keys and values, aliases counted in full")

    def _list(self, mark: Mark, depth: int) -> _Measured:
        items: list[Node] = []
        nodes, height = 1, 0
        while not isinstance(event := self._parser.get_event(), yaml.SequenceEndEvent):
            item = self._node(event, depth + 1)
            items.append(item.node)
            nodes += item.nodes
            height = max(height, item.height + 1)
        return _Measured(ListNode(tuple(items), mark), nodes, height)

    def _mapping(self, mark: Mark, depth: int) -> _Measured:
        entries: dict[str, Entry] = {}
        nodes, height = 1, 0
        while not isinstance(event := self._parser.get_event(), yaml.MappingEndEvent):
            key_mark = _mark(event)
            key = self._node(event, depth + 1)
            value = self._node(self._parser.get_event(), depth + 1)
            nodes += key.nodes + value.nodes
            height = max(height, key.height + 1, value.height + 1)
            name = self._key(key.node, key_mark, entries)
            if name is not None:
                entries[name] = Entry(key_mark, _placed(value.node, key_mark))
        return _Measured(MapNode(entries, mark), nodes, height)

    def _key(self, key: Node, mark: Mark, entries: dict[str, Entry]) -> str | None:
        """Return a key's text, None for one that cannot be used."""
        if not isinstance(key, Scalar):
            kind = "list" if isinstance(key, ListNode) else "mapping"
            message = f"a key has to be text, not a {kind}; quote text that begins with a bracket or a brace"
        elif key.is_null():
            message = "a value without a key"
        elif key.plain and key.text == "<<":
            message = "merge keys (`<<`) are not supported; repeat the keys, or use `variants`"
        elif key.text in entries:
            message = (
                f"duplicate key {quoted(key.text)}; the first is in line {entries[key.text].key_mark.line}"
            )
        else:
            return key.text
        self.mistakes.append(Mistake(mark, message))
        return None


def _placed(node: Node, key_mark: Mark) -> Node:
    """Return a value; where nothing is written, its place is that of its key."""
    if isinstance(node, Scalar) and node.plain and not node.text:
        return Scalar(node.text, key_mark)
    return node


def _mark(event: Any) -> Mark:
    return Mark(event.start_mark.line + 1, event.start_mark.column + 1)


_HINTS: Final = (
    ("mapping values are not allowed", "a colon and a space inside of a value: put the value in quotes"),
    ("character that cannot start any token", "put the text in quotes"),
    ("could not find expected ':'", "a key needs a colon, and a space after it"),
    ("end of stream", "a quote is not closed"),
    ("expected node content", "a value is missing, or a bracket is not closed"),
    ("expected the node content", "a value is missing, or a bracket is not closed"),
)


def _syntax_mistake(error: yaml.MarkedYAMLError) -> Mistake:
    """Return what the parser did not like, with a hint where its words are hard to understand."""
    place = error.problem_mark or error.context_mark
    mark = Mark(place.line + 1, place.column + 1) if place else Mark(1, 1)
    problem = error.problem or "it cannot be parsed"
    message = f"not valid YAML: {problem}"
    if error.context and error.context_mark and error.context_mark.line != mark.line - 1:
        message += f" {error.context} that begins in line {error.context_mark.line + 1}"
    hint = next((hint for words, hint in _HINTS if words in problem), None)
    if hint:
        message += f" ({hint})"
    return Mistake(mark, message)
