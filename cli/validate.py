"""``harrow validate``: check campaign files without running them."""

import json
from typing import Annotated

import typer

from cli import completion, exit_code
from cli.options import NoColor, Overrides, Quiet, ReportFormat


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("validate")(validate)


def validate(
    paths: Annotated[
        list[str],
        typer.Argument(
            metavar="PATH",
            autocompletion=completion.campaigns,
            help="Files, folders, or names of campaigns of the library.",
        ),
    ],
    overrides: Overrides = None,
    output_format: Annotated[
        ReportFormat, typer.Option("--format", help="How to print.")
    ] = ReportFormat.TABLE,
    quiet: Quiet = False,
    no_color: NoColor = False,
) -> None:
    """Check campaign files, all mistakes at once."""
    from cli.ci_output import CI_FORMATS, write_suites
    from cli.ci_suite import Case, Suite, problem_suites
    from cli.console import data_console, message_console
    from cli.render_problem import show_problems
    from cli.run_selection import find_campaigns, load_all

    files, not_found = find_campaigns(paths)
    campaigns, mistakes = load_all(files, tuple(overrides or ()))
    problems = [*not_found, *mistakes]
    console = data_console(no_color=no_color)
    if output_format is ReportFormat.JSON:
        lines = [
            {
                "file": problem.file,
                "line": problem.line,
                "column": problem.column,
                "message": problem.message,
            }
            for problem in problems
        ]
        document = {"schema": "harrow.validate/1", "valid": len(campaigns), "problems": lines}
        typer.echo(json.dumps(document, ensure_ascii=False, indent=2))
    elif output_format in CI_FORMATS:
        suites = problem_suites(problems)
        wrong = {problem.file for problem in problems}
        suites += [
            Suite(name=str(path), file=str(path), cases=(Case(name="valid"),))
            for path in files
            if str(path) not in wrong
        ]
        write_suites(console.file, output_format, suites, noun="file", messages=message_console())
    else:
        show_problems(console, problems)
        if not problems and not quiet:
            count = len(campaigns)
            typer.echo("1 campaign is valid" if count == 1 else f"{count} campaigns are valid")
    if problems:
        raise typer.Exit(exit_code.USAGE)
