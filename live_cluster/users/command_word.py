"""Values that may stand anywhere in a user's command line."""

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

_NOUNS: Final = ("id", "host", "port", "rack")


class UnsafeWordError(LiveError):
    """A value cannot stand in a command line; the message says which one and why."""


class CommandWord(str):
    """A value that no program takes for anything but itself, wherever it stands in a command line.

    Quoting cannot promise that: a value may stand inside double quotes already, and two shells read a line for `ssh`,
    the second without the quotes of the first. So a word has no character that a shell or `ssh` knows, and no `-` at
    its beginning, which would make it an option.
    """

    __slots__ = ()

    def __new__(cls, text: str) -> Self:
        """Check what a cluster says of itself.

        Raises:
            UnsafeWordError: it has other characters than words have, or none.

        """
        return super().__new__(cls, _checked(text, _WORD, "._:-"))

    @classmethod
    def of_file(cls, text: str) -> Self:
        """Check what a cluster file says. That may also have `/` and `@`: paths, and units of systemd.

        Raises:
            UnsafeWordError: it has other characters, or none.

        """
        return super().__new__(cls, _checked(text, _FILE_WORD, "._:/@-"))


def broker_words(
    broker: BrokerNode, peer: BrokerNode | None, names: Collection[str]
) -> dict[str, CommandWord]:
    """Return what the placeholders called *names* stand for in a command for a *broker*, and for its link from a *peer*.

    Raises:
        UnsafeWordError: the cluster says something of a broker that is no word.

    """
    found: dict[str, CommandWord] = {}
    for node, placeholders in ((broker, BROKER_PLACEHOLDERS), (peer, PEER_PLACEHOLDERS)):
        if node is None:
            continue
        values = (str(node.id), node.host, str(node.port), node.rack or "")
        # A peer has no placeholder for its rack.
        for name, noun, value in zip(placeholders, _NOUNS, values, strict=False):
            if name not in names:
                continue
            try:
                found[name] = CommandWord(value)
            except UnsafeWordError as error:
                raise UnsafeWordError(f"{noun} of the cluster's broker {node.id}: {error}") from None
    return found


def _checked(text: str, pattern: re.Pattern[str], marks: str) -> str:
    if not text:
        raise UnsafeWordError("there is none, and a command needs it")
    if not pattern.fullmatch(text):
        raise UnsafeWordError(
            f"{quoted(text)} cannot stand in a command: letters, digits and {marks} can, and no - at the beginning"
        )
    return text
