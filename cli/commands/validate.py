"""`harrow validate`: checks campaign files without running them."""

from dataclasses import asdict

import typer
from rich.console import Console

from harrow.campaigns.language.spelling import counted
from harrow.cli import exit_code
from harrow.cli.ci.suite import Case, Suite, problem_suites
from harrow.cli.commands.run_selection import find_campaigns, load_all, print_notes
from harrow.cli.render.problem import show_problems
from harrow.cli.requests.authoring import ValidateRequest
from harrow.cli.session import publish


def session(request: ValidateRequest) -> int:
    files, missing = find_campaigns(request.paths)
    campaigns, clusters, workloads, mistakes = load_all(files, request.overrides or ())
    problems = [*missing, *mistakes]

    def document() -> dict[str, object]:
        lines = [asdict(problem) for problem in problems]
        valid = len(campaigns) + len(clusters) + len(workloads)
        return {"schema": "harrow.validate/1", "valid": valid, "problems": lines}

    def suites() -> list[Suite]:
        valid = [str(path) for path in files if str(path) not in {problem.file for problem in problems}]
        return [
            *problem_suites(problems),
            *(Suite(name=path, file=path, cases=(Case(name="valid"),)) for path in valid),
        ]

    def show(console: Console) -> None:
        show_problems(console, problems)
        if not problems and not request.quiet:
            typer.echo(_valid(len(campaigns), len(clusters), len(workloads)))
            print_notes(request, campaigns)

    publish(request, document=document, suites=suites, noun="file", show=show)
    return exit_code.USAGE if problems else exit_code.OK


def _valid(campaigns: int, clusters: int, workloads: int) -> str:
    counts = ((campaigns, "campaign"), (clusters, "cluster file"), (workloads, "workload file"))
    nouns = [counted(number, noun) for number, noun in counts if number] or ["0 campaigns"]
    return f"{' and '.join(nouns)} {'is' if campaigns + clusters + workloads == 1 else 'are'} valid"
