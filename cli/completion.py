"""Shell completion for the names of campaigns, variants, faults, rules, settings and runs.

After each press of the Tab key, the user waits for the completion. So this module only scans
campaign files instead of loading them, and imports only what the names need.
"""

import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final

import typer

SUFFIXES: Final = (".yaml", ".yml")
"""The suffixes of campaign files."""

# Every command imports this module, so Python compiles these patterns only when they are used.
_VARIANTS: Final = r"(?m)^variants:[^\S\n]*(?:#.*)?\n((?:(?:[^\S\n].*|#.*)?\n)*)"
_KEY: Final = r"""(?m)^( +)(?:"([^"\n]*)"|'([^'\n]*)'|([^\s"'#][^:\n]*)):(?:\s|$)"""
_BASE: Final = "base"
_LATEST: Final = "results/latest"
_FILE_MAX_BYTES: Final = 1_000_000


def campaigns(incomplete: str) -> list[str]:
    """Return the names of campaigns that ship, and the paths of campaign files and folders."""
    return _starting_with(incomplete, [*sorted(_shipped()), *_paths(incomplete)])


def fault_models(incomplete: str) -> list[str]:
    return _starting_with(incomplete, sorted(_campaigns_in("fault_models")))


def variants(ctx: typer.Context, incomplete: str) -> list[str]:
    """Return the variants of the campaigns that the command line already names."""
    # The parser gives up on an option without a value, and leaves all words unparsed.
    words = list(ctx.args)
    for parameter in ("campaigns", "campaign", "added"):
        value = ctx.params.get(parameter) or ()
        words += [value] if isinstance(value, str) else value
    shipped = _shipped()
    names = [_BASE]
    for word in words:
        names += _variants_of(shipped.get(word, Path(word)))
    return _starting_with(incomplete, dict.fromkeys(names))


def rules(incomplete: str) -> list[str]:
    from harrow.checks.rules.catalogue import RULES

    return _starting_with(incomplete, RULES)


def anomalies(incomplete: str) -> list[str]:
    from harrow.checks.history.anomalies import ANOMALIES

    return _starting_with(incomplete, ANOMALIES)


def names(incomplete: str) -> list[str]:
    """Return the names of everything that `harrow explain` explains."""
    from harrow.campaigns.clients.clients import CLIENTS
    from harrow.campaigns.language.glossary import TERMS
    from harrow.campaigns.language.literals import LATEST_RELEASE
    from harrow.campaigns.language.tickets import tickets
    from harrow.campaigns.probes.probes import PROBES
    from harrow.checks.rules.catalogue import RULES
    from harrow.cluster_model.invariants.catalogue import INVARIANTS
    from harrow.cluster_model.release.profiles import MUTANTS, RELEASES, SWITCHES
    from harrow.cluster_model.settings import setting_names
    from harrow.faults.catalogue import ACTIONS, FAULTS
    from harrow.faults.condition import FACTS

    clients = [kind.name for kind in CLIENTS.values()]
    catalogues = (
        *(FAULTS, ACTIONS, FACTS, clients, RULES, INVARIANTS, PROBES),
        *(RELEASES, [LATEST_RELEASE], SWITCHES, MUTANTS, setting_names(), TERMS, tickets()),
    )
    everything = [name for catalogue in catalogues for name in catalogue]
    return _starting_with(incomplete, dict.fromkeys([*everything, *sorted(_shipped())]))


def runs(ctx: typer.Context, incomplete: str) -> list[str]:
    """Return the ids of the runs below ``--results``, and folders that may lead to runs."""
    results = Path(str(ctx.params.get("results") or "results"))
    ids = sorted(path.parent.name for path in results.glob("*/*/run.json"))
    latest = [_LATEST] if Path(_LATEST).exists() else []
    return _starting_with(incomplete, dict.fromkeys([*latest, *ids, *_folders(incomplete)]))


def _starting_with(incomplete: str, candidates: Iterable[str]) -> list[str]:
    return [name for name in candidates if name.startswith(incomplete)]


def _shipped() -> dict[str, Path]:
    """Return the campaigns of the library and the fault models, by name."""
    return {**_campaigns_in("library"), **_campaigns_in("fault_models")}


def _campaigns_in(name: str) -> dict[str, Path]:
    import harrow.campaigns as room

    folder = Path(str(room.__file__)).parent / name
    return {path.stem: path for path in _entries(folder) if path.suffix in SUFFIXES}


def _paths(incomplete: str) -> Iterator[str]:
    """Yield campaign files, and folders too once their first letter is typed."""
    for shown, path in _entries_beside(incomplete):
        if path.suffix in SUFFIXES or (incomplete and path.is_dir()):
            yield f"{shown}/" if path.is_dir() else shown


def _folders(incomplete: str) -> Iterator[str]:
    if incomplete:
        for shown, path in _entries_beside(incomplete):
            if path.is_dir():
                yield shown if (path / "run.json").is_file() else f"{shown}/"


def _entries_beside(incomplete: str) -> Iterator[tuple[str, Path]]:
    parent, slash, name = incomplete.rpartition("/")
    for path in _entries(Path(parent + slash or ".")):
        if not path.name.startswith(".") or name.startswith("."):
            yield f"{parent}{slash}{path.name}", path


def _entries(folder: Path) -> list[Path]:
    try:
        return sorted(folder.iterdir())
    except OSError:
        return []


def _variants_of(file: Path) -> Iterator[str]:
    """Yield the keys of ``variants`` in a file. A regular expression finds them without parsing."""
    try:
        if not file.is_file() or file.stat().st_size > _FILE_MAX_BYTES:
            return
        text = file.read_text(encoding="utf-8")
    except (OSError, ValueError):
        return
    if section := re.search(_VARIANTS, text + "\n"):
        keys = list(re.finditer(_KEY, section[1]))
        indent = min((len(key[1]) for key in keys), default=0)
        for key in keys:
            if len(key[1]) == indent:
                yield (key[2] or key[3] or key[4]).strip()
