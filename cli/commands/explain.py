"""`harrow explain`: all that harrow knows by a name."""

from harrow.campaigns.language.former_names import former_name_hint
from harrow.campaigns.language.spelling import suggestion
from harrow.cli import exit_code
from harrow.cli.console import data_console, show
from harrow.cli.render.catalogue import all_names, explain
from harrow.cli.render.catalogue_tables import explanation
from harrow.cli.requests.explain import ExplainRequest
from harrow.cli.session import Refusal, write_json


def session(request: ExplainRequest) -> int:
    """Print every entry of this name, and return the exit code."""
    found = explain(request.name)
    if not found:
        hint = (
            former_name_hint(request.name)
            or suggestion(request.name, all_names())
            or "; `harrow list faults` shows the faults, `harrow list --help` says what else there is"
        )
        raise Refusal(f"there is no `{request.name}`{hint}")
    console = data_console(no_color=request.no_color)
    if request.output_format == "json":
        entries = [entry.as_mapping() for entry in found]
        write_json(console, {"schema": "harrow.explain/1", "entries": entries})
    else:
        for entry in found:
            show(console, *explanation(entry))
    return exit_code.OK
