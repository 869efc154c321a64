"""What `harrow replay` can be asked."""

from dataclasses import dataclass
from typing import Annotated

from harrow.cli import options
from harrow.cli.requests.request import WrittenRequest


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplayRequest(WrittenRequest):
    """Run a recorded run again and compare it, event by event.

    Ends with 0 if the traces are the same, with 1 if they differ, and with 2 if the record is
    damaged. If they differ, both sides are shown from there.
    """

    run: Annotated[str, options.RUN]
    results: options.RunsFolder = options.DEFAULT_RESULTS
    output_format: Annotated[options.ReportFormat, options.FORMAT] = "table"
