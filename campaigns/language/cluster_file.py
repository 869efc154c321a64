"""Reads the files that campaigns name: of clusters, and of workloads.

A cluster file has the brokers, topics and settings of a cluster on which campaigns can run.

If a campaign names a cluster file (``cluster: shop.yaml``), the other keys of the campaign are
merged over the file. If an option names a cluster file (``--cluster shop.yaml`` or
``--set cluster=shop.yaml``), the file replaces the cluster of the campaign, and the campaign's own
cluster file as a whole. Either way the loader sees one tree, and each node knows the file that it
is from. A workload file (``workload: busy.yaml``) has the keys of that section, and those of the
campaign are merged over it.
"""

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final

from harrow.campaigns.language import yaml_positions as nodes
from harrow.campaigns.language.encoding import encoding_mistake
from harrow.campaigns.language.overlay import Override, merge_variant
from harrow.campaigns.language.plan import CLUSTER
from harrow.campaigns.language.regular_file import open_regular
from harrow.campaigns.language.schema import (
    FILE_KEY,
    WORKLOAD,
    cluster_file_section,
    cluster_section,
    file_section,
    workload_section,
)
from harrow.campaigns.language.spelling import printable, quoted, suggestion
from harrow.cluster_model.lazy_dataclass import dataclass
from harrow.cluster_model.settings import qualified_names

_KAFKA: Final = "kafka"
_SETTINGS: Final = "settings"
_TOPICS: Final = "topics"
_TARGET_FILE_KEYS: Final = ("bootstrap", "commands", "security", "allow")
"""Keys of a target file, which says how to reach and break real brokers."""
SOURCE_KEYS: Final = ("apiVersion", "services")
"""Keys of files that can be imported: Strimzi's resources, and docker-compose files."""
_IMPORT_HINT: Final = "`harrow import` makes one from Kafka's own files"


_FILE: Final[nodes.Path] = (CLUSTER, FILE_KEY)


def is_file_option(option: Override) -> bool:
    """Return whether an option names a cluster file."""
    return option.parts == (CLUSTER,) and isinstance(option.value, nodes.Scalar)


def names_file(root: nodes.MapNode) -> bool:
    """Return whether a campaign or a variant in long form names a cluster file."""
    return nodes.lookup(root, _FILE)[0] == _FILE


def in_long_form(root: nodes.MapNode) -> nodes.MapNode:
    """Return a campaign or a variant in which ``cluster: FILE`` is ``cluster: {file: FILE}``."""
    entry = root.entries.get(CLUSTER)
    if entry is None or not isinstance(entry.value, nodes.Scalar) or entry.value.is_null():
        return root
    section = nodes.MapNode({FILE_KEY: entry}, entry.value.mark)
    return nodes.MapNode({**root.entries, CLUSTER: nodes.MapEntry(entry.key_mark, section)}, root.mark)


def is_cluster_file(root: nodes.Node) -> bool:
    """Return whether a file is meant as a cluster file, even if some of its keys are wrong."""
    if not isinstance(root, nodes.MapNode):
        return False
    keys, cluster_keys, campaign_keys = (
        root.entries.keys(),
        cluster_file_section().keys.keys(),
        file_section().keys.keys(),
    )
    has_cluster_keys = bool(keys & (cluster_keys - campaign_keys)) and not keys & (
        campaign_keys - cluster_keys
    )
    return has_cluster_keys and len(keys & cluster_keys) > len(keys - cluster_keys)


def is_workload_file(root: nodes.MapNode) -> bool:
    """Return whether a file has only keys of the section `workload`."""
    return bool(root.entries) and root.entries.keys() <= workload_section().keys.keys() - {FILE_KEY}


def has_cluster_keys(text: str) -> bool:
    """Return whether a key of cluster files begins a line, also where the YAML has mistakes.

    Kafka's settings have other names, so such a text is no ``.properties`` file.
    """
    words = (re.match(r"[\"']?([a-z_]+)[\"']?\s*:", line) for line in text.splitlines())
    return any(word is not None and word[1] in cluster_file_section().keys for word in words)


def is_text_of_cluster_file(text: str) -> bool:
    """Return whether a text is meant as a cluster file."""
    if len(text) > nodes.MAX_BYTES:
        return False
    try:
        return is_cluster_file(nodes.compose(text).root)
    except nodes.YamlError:
        return False


class ClusterFileError(Exception):
    """A cluster file cannot be used. ``mistakes`` are its mistakes."""

    def __init__(self, mistakes: Sequence[nodes.Mistake]) -> None:
        super().__init__(mistakes)
        self.mistakes = tuple(mistakes)


@dataclass(frozen=True, slots=True)
class _ClusterFile:
    """A cluster file as nodes: keys of the campaign itself, and keys of its section ``cluster``."""

    top: nodes.MapNode
    cluster: nodes.MapNode


class ClusterFiles:
    """Reads the cluster files that a campaign and its options name.

    Names in a campaign are relative to the *folder* of the campaign, names in options to the
    current folder. ``texts`` has the contents of the files that were read, by name. A campaign that
    was stored together with them is loaded with these *texts*, and then no file is opened.
    """

    def __init__(self, folder: Path, texts: Mapping[str, str] | None = None) -> None:
        self.texts: dict[str, str] = {}
        self._folder = folder
        self._stored = texts
        self._files: dict[str, _ClusterFile] = {}
        self._workloads: dict[str, nodes.MapNode] = {}
        self._is_replaced = False

    def with_file(self, root: nodes.MapNode) -> nodes.MapNode:
        """Return a campaign merged over the cluster file that it names, if it names one.

        Raises:
            ClusterFileError: The file cannot be used.

        """
        if not names_file(root):
            return root
        named = nodes.lookup(root, _FILE)[2]
        if not isinstance(named, nodes.Scalar) or named.is_null():
            raise _unusable(named.mark, "cluster: expected the name of a file")
        file = self._read(named)
        below = {**file.top.entries, CLUSTER: nodes.MapEntry(file.cluster.mark, file.cluster)}
        above = nodes.without(root, [_FILE])
        return merge_variant(nodes.MapNode(below, root.mark), above)

    def for_options(self, root: nodes.MapNode) -> nodes.MapNode:
        """Return the campaign that the options change: without its own file if they name another.

        Nothing of the campaign's own file is left then, so that whatever the other file does not
        set has Kafka's default.

        Raises:
            ClusterFileError: The file cannot be used.

        """
        if self._is_replaced and names_file(root):
            return nodes.without(root, [_FILE])
        return self.with_file(root)

    def as_options(self, option: Override) -> Iterator[Override]:
        """Yield options that give a campaign the cluster of the file that *option* names.

        They are for a campaign without its own file (`for_options`). If the option's file has no
        topics, the campaign keeps those that it has itself.

        Raises:
            ClusterFileError: The file cannot be used.

        """
        assert isinstance(option.value, nodes.Scalar), "the option names a file"
        self._is_replaced = True
        file = self._read(option.value)
        for name, entry in file.top.entries.items():
            if name == _SETTINGS and isinstance(entry.value, nodes.MapNode):
                # What holds for all clients removes what holds for one kind, so it comes first.
                inner = sorted(entry.value.entries.items(), key=lambda item: item[0] in qualified_names())
                for setting, value in inner:
                    yield Override((_SETTINGS, setting), value.value, value.key_mark, everywhere=True)
            elif name != _SETTINGS or not _is_null(entry.value):
                yield Override((name,), entry.value, entry.key_mark)
        empty = nodes.MapNode({}, file.cluster.mark)
        yield Override((CLUSTER,), empty, option.mark, keeps=(_TOPICS,))
        for name, entry in file.cluster.entries.items():
            yield Override((CLUSTER, name), entry.value, entry.key_mark)

    def with_workload(self, root: nodes.MapNode) -> nodes.MapNode:
        """Return a campaign or a variant with the workload of the file that it names, if any.

        Raises:
            ClusterFileError: The file cannot be used.

        """
        entry = root.entries.get(WORKLOAD)
        if entry is None or _is_null(entry.value) or isinstance(entry.value, nodes.ListNode):
            return root
        named: nodes.Node = entry.value
        own = nodes.MapNode({}, entry.value.mark)
        if isinstance(named, nodes.MapNode):
            if FILE_KEY not in named.entries:
                return root
            own, named = nodes.without(named, [(FILE_KEY,)]), named.entries[FILE_KEY].value
        if not isinstance(named, nodes.Scalar) or named.is_null():
            raise _unusable(named.mark, f"{WORKLOAD}: expected the name of a file")
        merged = merge_variant(self._workload(named), own)
        return nodes.MapNode({**root.entries, WORKLOAD: nodes.MapEntry(entry.key_mark, merged)}, root.mark)

    def _workload(self, named: nodes.Scalar) -> nodes.MapNode:
        if named.text not in self._workloads:
            path, text = self._text_of(named, WORKLOAD)
            self._workloads[named.text] = _parsed_workload(text, str(path))
        return self._workloads[named.text]

    def _read(self, named: nodes.Scalar) -> _ClusterFile:
        key = named.mark.option or named.text
        if key not in self._files:
            path, text = self._text_of(named, CLUSTER)
            self._files[key] = _parsed(text, str(path), named.mark.option)
        return self._files[key]

    def _text_of(self, named: nodes.Scalar, section: str) -> tuple[Path, str]:
        """Return the path and the text of a file. The *section* that names it is for messages."""
        mark, name = named.mark, named.text
        path = Path(name) if mark.option is not None else self._folder / name
        key = mark.option or name
        try:
            if self._stored is not None:
                text = self._stored[key]
            else:
                if mark.option is None:
                    self._check_links(name)
                text = _text(path)
        except KeyError:
            raise _unusable(mark, f"{section}: {quoted(name)} is not stored with this campaign") from None
        except (OSError, ValueError) as error:
            reason = (isinstance(error, OSError) and error.strerror) or str(error)
            # The name of an option's file is already in its mark.
            subject = f"{section}: {quoted(name)} " if mark.option is None else ""
            raise _unusable(mark, f"{subject}cannot be read: {reason}") from None
        self.texts[key] = text
        return path, text

    def _check_links(self, name: str) -> None:
        """Raise `ValueError` if a symbolic link leads out of the campaign's folder.

        An author who wants a file outside the folder can write its path.
        """
        folder = os.path.realpath(self._folder)
        real, written = os.path.realpath(self._folder / name), os.path.normpath(Path(folder, name))
        if real != written and not Path(real).is_relative_to(folder):
            raise ValueError("a link leads out of the campaign's folder; name the file itself")


def _is_null(node: nodes.Node) -> bool:
    return isinstance(node, nodes.Scalar) and node.is_null()


def _unusable(mark: nodes.Mark, message: str) -> ClusterFileError:
    return ClusterFileError([nodes.Mistake(mark, message)])


def _text(path: Path) -> str:
    """Return the text of a file.

    Raises:
        OSError: The file cannot be read.
        ValueError: The file is too large, or not UTF-8.

    """
    with open_regular(path) as file:
        content = file.read(nodes.MAX_BYTES + 1)
    if len(content) > nodes.MAX_BYTES:
        raise ValueError("it is larger than 1 MiB")
    try:
        return content.decode("utf-8")
    except UnicodeDecodeError as error:
        raise ValueError(f"it is {encoding_mistake(error)}") from None


def _parsed(text: str, file: str, option: str | None) -> _ClusterFile:
    """Parse a cluster file. The marks of its nodes name the file, and the option that names it."""

    def mistakes(listed: Sequence[nodes.Mistake]) -> list[nodes.Mistake]:
        return _located(listed, file, option)

    try:
        document = nodes.compose(text)
    except nodes.YamlError as error:
        raise ClusterFileError(mistakes(error.mistakes)) from None
    root = document.root
    if not isinstance(root, nodes.MapNode):
        message = f"a cluster file is a mapping (`key: value`); {_IMPORT_HINT}"
        raise ClusterFileError(mistakes([*document.mistakes, nodes.Mistake(root.mark, message)]))
    if any(key in root.entries for key in SOURCE_KEYS):
        raise ClusterFileError(mistakes([nodes.Mistake(root.mark, f"it is no cluster file; {_IMPORT_HINT}")]))
    known = cluster_file_section().keys
    unknown = [
        nodes.Mistake(entry.key_mark, _unknown_key(key, root))
        for key, entry in root.entries.items()
        if key not in known
    ]
    if wrong := [*document.mistakes, *unknown]:
        raise ClusterFileError(mistakes(wrong))
    root = nodes.located(root, file, option)
    cluster_keys = cluster_section().keys
    return _ClusterFile(
        nodes.MapNode(
            {key: entry for key, entry in root.entries.items() if key not in cluster_keys}, root.mark
        ),
        nodes.MapNode({key: entry for key, entry in root.entries.items() if key in cluster_keys}, root.mark),
    )


def _parsed_workload(text: str, file: str) -> nodes.MapNode:
    """Parse a workload file. The marks of its nodes name the file."""
    try:
        document = nodes.compose(text)
    except nodes.YamlError as error:
        raise ClusterFileError(_located(error.mistakes, file, None)) from None
    root = document.root
    wrong = list(document.mistakes)
    if not isinstance(root, nodes.MapNode):
        wrong.append(nodes.Mistake(root.mark, "a workload file is a mapping (`key: value`)"))
    elif FILE_KEY in root.entries:
        mark = root.entries[FILE_KEY].key_mark
        wrong.append(nodes.Mistake(mark, "a workload file names no other file"))
    if wrong or not isinstance(root, nodes.MapNode):
        raise ClusterFileError(_located(wrong, file, None))
    return nodes.located(root, file, None)


def _located(mistakes: Sequence[nodes.Mistake], file: str, option: str | None) -> list[nodes.Mistake]:
    return [nodes.Mistake(mark._replace(file=file, option=option), message) for mark, message in mistakes]


def _unknown_key(key: str, root: nodes.MapNode) -> str:
    if key in _TARGET_FILE_KEYS and key in root.entries:
        return f"`{key}` belongs to a target file, which says how to reach real brokers (--target)"
    if key == CLUSTER:
        if isinstance(root.entries[key].value, nodes.MapNode):
            return "the keys of a cluster file have no section: remove `cluster:` and write its keys at the top level"
        return "a cluster file names no other file: its keys are those of `cluster`"
    if key in file_section().keys:
        return f"`{printable(key)}` belongs to a campaign, not to a cluster file"
    return f"unknown key {quoted(key)}{suggestion(key, cluster_file_section().keys)}"
