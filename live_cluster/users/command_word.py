"""Checks that values are safe anywhere in a user's command line."""

import re
from collections.abc import Collection
from typing import Final, Self

from harrow.campaigns.language.spelling import quoted
from harrow.live_cluster.errors import LiveError
from harrow.live_cluster.wire.survey import BrokerNode

_WORD: Final = re.compile(r"[A-Za-z0-9._:][A-Za-z0-9._:-]*")
_FILE_WORD: Final = re.compile(r"[A-Za-z0-9._:/@][A-Za-z0-9._:/@-]*")

BROKER_PLACEHOLDERS: Final = ("broker", "host", "port", "rack")
PEER_PLACEHOLDERS: Final = ("peer", "peer_host", "peer_port")

_VALUE_NAMES: Final = ("id", "host", "port", "rack")


class UnsafeWordError(LiveError):
    """A value is not safe in a command line; the message says which one and why."""


class CommandWord(str):
    """A value that every program takes literally, anywhere in a command line.

    Quoting a value cannot guarantee that. The value may already be inside double quotes, and two
    shells read a line for `ssh`, the second without the quotes of the first. So a word contains no
    character that is special to a shell or to `ssh`, and does not begin with `-`, which would make
    it an option.
    """

    __slots__ = ()

    def __new__(cls, text: str) -> Self:
        """Check a value that the cluster reports; raise `UnsafeWordError` if it is not safe."""
        return super().__new__(cls, _check(text, _WORD, "._:-"))

    @classmethod
    def of_file(cls, text: str) -> Self:
        """Check a value of the target file; paths (`/`) and systemd units (`@`) are allowed."""
        return super().__new__(cls, _check(text, _FILE_WORD, "._:/@-"))


def broker_words(
    broker: BrokerNode, peer: BrokerNode | None, names: Collection[str]
) -> dict[str, CommandWord]:
    """Return the values of the placeholders *names* for a *broker* and its link from a *peer*.

    Raise `UnsafeWordError` if the cluster reports an unsafe value.
    """
    words: dict[str, CommandWord] = {}
    for node, placeholders in ((broker, BROKER_PLACEHOLDERS), (peer, PEER_PLACEHOLDERS)):
        if node is None:
            continue
        values = (str(node.id), node.host, str(node.port), node.rack or "")
        # A peer has no placeholder for its rack.
        for name, noun, value in zip(placeholders, _VALUE_NAMES, values, strict=False):
            if name not in names:
                continue
            try:
                words[name] = CommandWord(value)
            except UnsafeWordError as error:
                raise UnsafeWordError(f"{noun} of the cluster's broker {node.id}: {error}") from None
    return words


def _check(text: str, pattern: re.Pattern[str], punctuation: str) -> str:
    if not text:
        raise UnsafeWordError("it is missing, and a command needs it")
    if not pattern.fullmatch(text):
        raise UnsafeWordError(
            f"{quoted(text)} is not safe in a command: only letters, digits and {punctuation} are safe, and it must not begin with -"
        )
    return text
