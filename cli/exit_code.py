"""The exit codes, as scripts and CI jobs may rely on them."""

from typing import Final

OK: Final = 0
"""Promises held and expectations were met."""
BROKEN: Final = 1
"""A promise was broken, or an expectation missed."""
USAGE: Final = 2
"""Wrong usage, or a wrong campaign file."""
INCONCLUSIVE: Final = 3
"""Inconclusive, or nothing ran."""
INTERNAL: Final = 4
"""An error of harrow's own."""
INTERRUPTED: Final = 130
"""Interrupted; what was finished is written."""
BROKEN_PIPE: Final = 141
"""The reader of the output has gone: what a shell says of a process that SIGPIPE ended."""

MEANINGS: Final = {
    OK: "every run was as expected",
    BROKEN: "a promise was broken or an expectation missed",
    INCONCLUSIVE: "inconclusive, or nothing ran",
    INTERRUPTED: "interrupted",
}
"""What the codes of a run mean, in a few words."""
