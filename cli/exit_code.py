"""The exit codes, which scripts and CI jobs rely on."""

from typing import Final

OK: Final = 0
"""All promises held, and all expectations were met."""
BROKEN: Final = 1
"""A promise was broken, or an expectation was missed."""
USAGE: Final = 2
"""Wrong usage, or an invalid campaign file."""
INCONCLUSIVE: Final = 3
"""Inconclusive, or nothing ran."""
INTERNAL: Final = 4
"""An error in harrow itself."""
INTERRUPTED: Final = 130
"""The user interrupted harrow. Finished runs are written."""
BROKEN_PIPE: Final = 141
"""The reader closed the output. Shells report this code for a process that SIGPIPE killed."""

MEANINGS: Final = {
    OK: "every run was as expected",
    BROKEN: "a promise was broken or an expectation missed",
    INCONCLUSIVE: "inconclusive, or nothing ran",
    INTERRUPTED: "interrupted",
}
"""The exit codes of a run in words."""
