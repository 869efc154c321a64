"""`harrow explain`: prints every catalogue entry that has a given name."""

from harrow.campaigns.language.former_names import former_name_hint
from harrow.campaigns.language.spelling import suggestion
from harrow.cli import exit_code
from harrow.cli.console import data_console, show
from harrow.cli.render.catalogue import all_names, explain
from harrow.cli.render.catalogue_tables import explanation
from harrow.cli.requests.authoring import ExplainRequest
from harrow.cli.session import Refusal, write_json


def session(request: ExplainRequest) -> int:
    entries = explain(request.name)
    if not entries:
        hint = (
            former_name_hint(request.name)
            or suggestion(request.name, all_names())
            or "; `harrow list faults` shows the faults, `harrow list --help` the other kinds"
        )
        raise Refusal(f"there is no `{request.name}`{hint}")
    console = data_console(no_color=request.no_color)
    if request.output_format == "json":
        mappings = [entry.as_mapping() for entry in entries]
        write_json(console, {"schema": "harrow.explain/1", "entries": mappings})
    else:
        for entry in entries:
            show(console, *explanation(entry))
    return exit_code.OK
