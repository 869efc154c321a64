"""Runs for machines: one JSON document, or a line for each run as it finishes."""

import json
from collections.abc import Mapping
from typing import IO, Any

from campaigns.report import document
from campaigns.results_folder import json_line
from cli.run_selection import Selection
from cli.run_tally import FinishedRun, Tally


class JsonDocument:
    """Everything in one document at the end."""

    def __init__(self, stream: IO[str]) -> None:
        self._stream = stream
        self._runs: list[Mapping[str, Any]] = []

    def begin(self, selection: Selection) -> None:
        """A campaign begins; the document does not say so."""

    def add(self, run: FinishedRun) -> None:
        """Keep a run for the document."""
        self._runs.append(run.mapping)

    def end(self) -> None:
        """A campaign ends; the document does not say so."""

    def finish(self, tally: Tally) -> None:
        """Print the document."""
        json.dump(
            document(self._runs, tally.required.unreached()), self._stream, ensure_ascii=False, indent=2
        )
        self._stream.write("\n")
        self._stream.flush()


class NdjsonStream:
    """A line for each run, at once."""

    def __init__(self, stream: IO[str]) -> None:
        self._stream = stream

    def begin(self, selection: Selection) -> None:
        """A campaign begins; the lines say themselves to which they belong."""

    def add(self, run: FinishedRun) -> None:
        """Print a run."""
        self._stream.write(json_line(run.mapping) + "\n")
        self._stream.flush()

    def end(self) -> None:
        """A campaign ends."""

    def finish(self, _tally: Tally) -> None:
        """All lines are printed."""
