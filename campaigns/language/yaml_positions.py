"""Reads YAML into a tree in which every key and every value has its line and column.

A scalar keeps its text. The field that reads the scalar decides what ``2.10``, ``on`` or ``1:30``
means, so the surprises of YAML 1.1 cannot happen. The size of a file is limited, and each alias
counts as much as the nodes that it repeats.
"""

import re
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from typing import Any, Final, NamedTuple, TypeVar

import yaml

from harrow.campaigns.language.spelling import quoted
from harrow.cluster_model.lazy_dataclass import dataclass, replace

MAX_BYTES: Final = 1 << 20
MAX_NODES: Final = 100_000
MAX_DEPTH: Final = 64

_NULLS: Final = frozenset({"", "~", "null", "Null", "NULL"})
_FORBIDDEN_ASCII: Final = re.compile("[^\t\n\r\x20-\x7e]")
_TAB_INDENT: Final = re.compile(r"^[ ]*\t", re.MULTILINE)

# libyaml is ten times as fast as the parser of PyYAML, which is used if PyYAML was built without
# libyaml. Both give the same result.
_Loader: Final[Any] = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


class Mark(NamedTuple):
    """A position: a line and a column of a file, counted from 1, or a ``--set`` option.

    ``file`` is a cluster file that the campaign or the option names. If it is None, the position is
    in the campaign.
    """

    line: int
    column: int
    option: str | None = None
    file: str | None = None


@dataclass(frozen=True, slots=True)
class Scalar:
    """A single value: its text as written. ``plain`` means that it is not in quotes."""

    text: str
    mark: Mark
    plain: bool = True

    def is_null(self) -> bool:
        """Return whether the value is empty, or one of YAML's words for null."""
        return self.plain and self.text in _NULLS


@dataclass(frozen=True, slots=True)
class ListNode:
    """A list of nodes."""

    items: tuple["Node", ...]
    mark: Mark


@dataclass(frozen=True, slots=True)
class MapEntry:
    """A value of a mapping, and the position of its key."""

    key_mark: Mark
    value: "Node"


@dataclass(frozen=True, slots=True)
class MapNode:
    """A mapping, in the order of the file."""

    entries: dict[str, MapEntry]
    mark: Mark


Node = Scalar | ListNode | MapNode
N = TypeVar("N", bound=Node)
R = TypeVar("R")
Path = tuple[str | int, ...]


class Mistake(NamedTuple):
    """A message about a position."""

    mark: Mark
    message: str


class YamlError(Exception):
    """A text is not YAML, or exceeds a limit. ``mistakes`` has all mistakes up to that point."""

    def __init__(self, mistakes: Sequence[Mistake]) -> None:
        super().__init__(mistakes)
        self.mistakes = mistakes


@dataclass(frozen=True, slots=True)
class Document:
    """The only document of a file, and its mistakes that did not prevent reading the rest."""

    root: Node
    mistakes: tuple[Mistake, ...]


def compose(text: str) -> Document:
    """Parse the document in *text*.

    Raises:
        YamlError: The document cannot be read.

    """
    return _compose(text, lambda composer: Document(composer.document(), tuple(composer.mistakes)))


def compose_others(text: str) -> tuple[Node, ...]:
    """Parse the documents of a file that is not harrow's. It may use merge keys (``<<``).

    Raises:
        YamlError: The file has mistakes.

    """

    def all_documents(composer: "_Composer") -> tuple[Node, ...]:
        roots = composer.documents()
        if composer.mistakes:
            raise YamlError([])
        return roots

    return _compose(text, all_documents, merges=True)


def _compose(text: str, read: Callable[["_Composer"], R], *, merges: bool = False) -> R:
    text = text.removeprefix("\ufeff")
    _check_characters(text)
    composer = _Composer(text, merges=merges)
    try:
        return read(composer)
    except YamlError as error:
        raise YamlError([*composer.mistakes, *error.mistakes]) from None
    except yaml.MarkedYAMLError as error:
        raise YamlError([*composer.mistakes, _syntax_mistake(error)]) from None
    except yaml.YAMLError as error:
        raise YamlError([*composer.mistakes, Mistake(Mark(1, 1), f"not valid YAML: {error}")]) from None
    finally:
        composer.close()


def lookup(root: Node, path: Path) -> tuple[Path, Mark, Node]:
    """Follow *path* as far as the tree goes.

    Keys that the tree lacks are skipped, because a value in short form has fewer levels than the
    full form. Return the keys of the path that exist, the position of the last of them, and the
    node there.
    """
    existing: list[str | int] = []
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
        existing.append(part)
    return tuple(existing), mark, node


def marks(node: Node) -> Iterator[Mark]:
    """Yield the positions of a node, of its keys, and of everything below them."""
    yield node.mark
    if isinstance(node, MapNode):
        for entry in node.entries.values():
            yield entry.key_mark
            yield from marks(entry.value)
    elif isinstance(node, ListNode):
        for item in node.items:
            yield from marks(item)


def located(node: N, file: str, option: str | None) -> N:
    """Return the tree with the positions of a cluster file, and of the *option* that names it."""

    def placed(mark: Mark) -> Mark:
        return mark._replace(file=file, option=option)

    if isinstance(node, MapNode):
        entries = {
            key: MapEntry(placed(entry.key_mark), located(entry.value, file, option))
            for key, entry in node.entries.items()
        }
        return replace(node, entries=entries, mark=placed(node.mark))
    if isinstance(node, ListNode):
        items = tuple(located(item, file, option) for item in node.items)
        return replace(node, items=items, mark=placed(node.mark))
    return replace(node, mark=placed(node.mark))


def without(root: N, paths: Sequence[Path]) -> N:
    """Return the tree without the nodes at *paths*."""
    removals: dict[str | int, Any] = {}
    # Shorter paths come last, so that they replace longer paths that begin with them.
    for path in sorted(paths, key=len, reverse=True):
        level = removals
        for part in path[:-1]:
            level = level.setdefault(part, {})
        level[path[-1]] = None
    return _without(root, removals)


def _without(node: N, removals: dict[str | int, Any]) -> N:
    removed = frozenset(part for part, inner in removals.items() if inner is None)
    if isinstance(node, MapNode):
        entries = {
            key: replace(entry, value=_without(entry.value, removals[key])) if key in removals else entry
            for key, entry in node.entries.items()
            if key not in removed
        }
        return replace(node, entries=entries)
    if isinstance(node, ListNode):
        items = tuple(
            _without(item, removals[index]) if index in removals else item
            for index, item in enumerate(node.items)
            if index not in removed
        )
        return replace(node, items=items)
    return node


@cache
def _forbidden_characters() -> re.Pattern[str]:
    """Return the pattern of characters that YAML does not allow.

    It is compiled only if needed: that takes a tenth of the time of a short run, and most campaigns
    are plain ASCII.
    """
    return re.compile("[^\t\n\r\x20-\x7e\x85\xa0-\ud7ff\ue000-\ufefe\uff00-\ufffd\U00010000-\U0010ffff]")


@cache
def _surrogate() -> re.Pattern[str]:
    return re.compile("[\ud800-\udfff]")


def _check_characters(text: str) -> None:
    """Raise `YamlError` if characters are not allowed in YAML, or tabs are used as indentation."""
    match = (_FORBIDDEN_ASCII if text.isascii() else _forbidden_characters()).search(text)
    if match:
        name = f"U+{ord(match[0]):04X}"
        raise YamlError([Mistake(_mark_at(text, match.start()), f"YAML does not allow the character {name}")])
    tabs = [match.end() - 1 for match in _TAB_INDENT.finditer(text)]
    if tabs:
        message = "a tab at the beginning of a line: indent YAML with spaces"
        raise YamlError([Mistake(_mark_at(text, tab), message) for tab in tabs[:20]])


def _mark_at(text: str, index: int) -> Mark:
    # The "|" stands for the character at the index. Without it, `splitlines` would drop a line that
    # is empty up to the index.
    lines = (text[:index] + "|").splitlines()
    return Mark(len(lines), len(lines[-1]))


def size(node: Node) -> int:
    """Count keys and values. An alias counts as much as the nodes that it repeats."""
    if isinstance(node, MapNode):
        return 1 + sum(1 + size(entry.value) for entry in node.entries.values())
    return 1 + sum(map(size, node.items)) if isinstance(node, ListNode) else 1


def _height(node: Node) -> int:
    if isinstance(node, MapNode):
        return max((1 + _height(entry.value) for entry in node.entries.values()), default=0)
    return max((1 + _height(item) for item in node.items), default=0) if isinstance(node, ListNode) else 0


def _fatal(mark: Mark, message: str) -> YamlError:
    return YamlError([Mistake(mark, message)])


class _Composer:
    """Builds the tree from the events of the parser one by one, so that limits stop it early."""

    def __init__(self, text: str, *, merges: bool) -> None:
        self.mistakes: list[Mistake] = []
        self._merges = merges
        self._parser = _Loader(text)
        self._nodes = 0
        self._anchors: dict[str, Node | None] = {}

    def document(self) -> Node:
        """Return the root of the only document."""
        self._parser.get_event()
        if self._parser.check_event(yaml.StreamEndEvent):
            raise _fatal(Mark(1, 1), "the file is empty")
        self._parser.get_event()
        root = self._node(self._parser.get_event(), 0)
        self._parser.get_event()
        if not self._parser.check_event(yaml.StreamEndEvent):
            second = _mark(self._parser.peek_event())
            raise _fatal(second, "a second document begins here; a campaign file has only one")
        return root

    def documents(self) -> tuple[Node, ...]:
        """Return the roots of all documents."""
        roots = []
        self._parser.get_event()
        while not self._parser.check_event(yaml.StreamEndEvent):
            self._parser.get_event()
            roots.append(self._node(self._parser.get_event(), 0))
            self._anchors.clear()
            self._parser.get_event()
        return tuple(roots)

    def close(self) -> None:
        self._parser.dispose()

    def _node(self, event: Any, depth: int) -> Node:
        if isinstance(event, yaml.AliasEvent):
            return self._alias(event, depth)
        mark = _mark(event)
        self._count(1, mark)
        if depth > MAX_DEPTH:
            raise _fatal(mark, f"nested more than {MAX_DEPTH} levels deep")
        if event.tag is not None:
            tag = quoted(event.tag.replace("tag:yaml.org,2002:", "!!"))
            self.mistakes.append(Mistake(mark, f"the tag {tag}: harrow reads no tags; leave it out"))
        if event.anchor is not None:
            self._anchors[event.anchor] = None
        node: Node
        if isinstance(event, yaml.ScalarEvent):
            if not event.value.isascii() and _surrogate().search(event.value):
                self.mistakes.append(Mistake(mark, "half of a surrogate pair is not a character"))
            node = Scalar(event.value, mark, plain=not event.style)
        elif isinstance(event, yaml.SequenceStartEvent):
            node = self._list(mark, depth)
        else:
            node = self._mapping(mark, depth)
        if event.anchor is not None:
            self._anchors[event.anchor] = node
        return node

    def _alias(self, event: Any, depth: int) -> Node:
        mark, anchor = _mark(event), event.anchor
        if anchor not in self._anchors:
            raise _fatal(mark, f"the alias *{anchor} has no anchor &{anchor} before it")
        node = self._anchors[anchor]
        if node is None:
            raise _fatal(mark, f"the alias *{anchor} is inside its own anchor")
        self._count(size(node), mark)
        if depth + _height(node) > MAX_DEPTH:
            raise _fatal(mark, f"nested more than {MAX_DEPTH} levels deep through the alias *{anchor}")
        return node

    def _count(self, nodes: int, mark: Mark) -> None:
        self._nodes += nodes
        if self._nodes > MAX_NODES:
            raise _fatal(mark, f"more than {MAX_NODES} keys and values; aliases count in full")

    def _list(self, mark: Mark, depth: int) -> ListNode:
        items: list[Node] = []
        while not isinstance(event := self._parser.get_event(), yaml.SequenceEndEvent):
            items.append(self._node(event, depth + 1))
        return ListNode(tuple(items), mark)

    def _mapping(self, mark: Mark, depth: int) -> MapNode:
        entries: dict[str, MapEntry] = {}
        merged: list[MapNode] = []
        while not isinstance(event := self._parser.get_event(), yaml.MappingEndEvent):
            key_mark = _mark(event)
            key = self._node(event, depth + 1)
            value = self._node(self._parser.get_event(), depth + 1)
            if self._merges and isinstance(key, Scalar) and key.plain and key.text == "<<":
                merged += _mappings_in(value)
                continue
            name = self._key(key, key_mark, entries)
            if name is not None:
                entries[name] = MapEntry(key_mark, _at_key_if_empty(value, key_mark))
        for node in merged:
            for name, entry in node.entries.items():
                entries.setdefault(name, entry)
        return MapNode(entries, mark)

    def _key(self, key: Node, mark: Mark, entries: dict[str, MapEntry]) -> str | None:
        """Return the text of a key; None if the node cannot be a key."""
        if not isinstance(key, Scalar):
            kind = "list" if isinstance(key, ListNode) else "mapping"
            message = f"a key must be text, not a {kind}; quote text that begins with a bracket or a brace"
        elif key.is_null():
            message = "a value without a key"
        elif key.plain and key.text == "<<":
            message = "merge keys (`<<`) are not supported; repeat the keys, or use `variants`"
        elif key.text in entries:
            message = (
                f"duplicate key {quoted(key.text)}; the first is on line {entries[key.text].key_mark.line}"
            )
        else:
            return key.text
        self.mistakes.append(Mistake(mark, message))
        return None


def _mappings_in(merged: Node) -> list[MapNode]:
    """Return the mappings that a merge key adds, the first one first."""
    nodes = merged.items if isinstance(merged, ListNode) else (merged,)
    return [node for node in nodes if isinstance(node, MapNode)]


def _at_key_if_empty(node: Node, key_mark: Mark) -> Node:
    """Return a value. If it is empty, it gets the position of its key."""
    if isinstance(node, Scalar) and node.plain and not node.text:
        return Scalar(node.text, key_mark)
    return node


def _mark(event: Any) -> Mark:
    return Mark(event.start_mark.line + 1, event.start_mark.column + 1)


_HINTS: Final = (
    ("mapping values are not allowed", "a colon and a space inside a value: put the value in quotes"),
    ("character that cannot start any token", "put the text in quotes"),
    ("could not find expected ':'", "a key needs a colon, and a space after it"),
    ("end of stream", "a quote is not closed"),
    ("expected node content", "a value is missing, or a bracket is not closed"),
    ("expected the node content", "a value is missing, or a bracket is not closed"),
)


def _syntax_mistake(error: yaml.MarkedYAMLError) -> Mistake:
    """Return the parser's error, with a hint if its message is hard to understand."""
    place = error.problem_mark or error.context_mark
    mark = Mark(place.line + 1, place.column + 1) if place else Mark(1, 1)
    problem = error.problem or "it cannot be parsed"
    message = f"not valid YAML: {problem}"
    if error.context and error.context_mark and error.context_mark.line != mark.line - 1:
        message += f" {error.context} that begins on line {error.context_mark.line + 1}"
    hint = next((hint for words, hint in _HINTS if words in problem), None)
    if hint:
        message += f" ({hint})"
    return Mistake(mark, message)
