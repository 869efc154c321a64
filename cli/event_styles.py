"""The colours of events, the same wherever they are shown."""

from typing import Final

EVENT_STYLES: Final = {
    "ack": "green",
    "controller": "yellow",
    "election": "yellow",
    "epoch": "cyan",
    "fault": "red",
    "hw": "blue",
    "invariant": "red",
    "isr": "magenta",
    "process": "bold",
    "truncation": "bold red",
}
"""By the kind of what is told (`campaigns.told.Told.kind`)."""
