"""The live view of a sweep: its progress and results so far, as lines that fit a terminal."""

from collections.abc import Iterator, Sequence
from typing import Final

from rich.cells import cell_len, set_cell_size
from rich.console import Group

from harrow.campaigns.language.spelling import counted, printable
from harrow.campaigns.language.units import rough_duration_text
from harrow.campaigns.sweep.cell import Cell
from harrow.campaigns.sweep.definition import Definition
from harrow.campaigns.sweep.row import ERROR
from harrow.campaigns.sweep.sweep import Progress
from harrow.checks.finding import STATUSES
from harrow.cli.render.figures import grouped, percent
from harrow.cli.render.layout import DIM, STYLES
from harrow.cli.render.sweep.columns import cell_labels
from harrow.cli.sweep_progress import speed_text
from harrow.cli.text import Text
from harrow.cli.watch.canvas import BAD, HEADING, WARNED, Canvas, bar, fitted, shortened
from harrow.cluster_model.sim.virtual_time import US_PER_SECOND

_HEIGHT_MAX: Final = 50
_PROBE_LINES: Final = 3
_RAREST_SHOWN: Final = 6
_NAME_MAX: Final = 44
_KINDS_MIN: Final = 3
_CELLS_MIN: Final = 2


def sweep_frame(progress: Progress, definition: Definition, canvas: Canvas) -> Group:
    """Return the lines that show a sweep. Items that do not fit are only counted."""
    height = max(1, min(canvas.height - 1, _HEIGHT_MAX))
    above = list(_heading(progress, definition, canvas))
    below = list(_probes(progress, canvas))
    room = height - len(above) - len(below)
    kinds = len(progress.tally.failures)
    # Both tables have a heading. If there is no room for all of both, failures take precedence.
    for_cells = max(_CELLS_MIN, min(len(definition.cells), room - 2 - max(1, min(kinds, _KINDS_MIN))))
    cells = _cells(progress, definition, canvas, for_cells)
    failures = list(_failures(progress, definition, canvas, max(1, room - len(cells) - 1)))
    lines = [*above, *cells, *failures, *below]
    return Group(*(fitted(line, canvas) for line in lines[:height]))


def _heading(progress: Progress, definition: Definition, canvas: Canvas) -> Iterator[Text]:
    done = progress.already + progress.done
    count = f"{grouped(done)} of {grouped(progress.planned)} runs"
    name = definition.name()
    room = max(1, canvas.width - cell_len(count) - 2)
    yield Text.assemble((set_cell_size(shortened(name, room, canvas), room), HEADING), "  ", count)
    yield bar(done / max(1, progress.planned), canvas)
    parts = [
        f"{speed_text(progress)} with {counted(progress.workers, 'worker')}",
        f"{rough_duration_text(round(progress.elapsed_s()) * US_PER_SECOND)} so far",
    ]
    if progress.left_s is not None:
        parts.append(f"about {rough_duration_text(round(progress.left_s) * US_PER_SECOND)} left")
    if progress.already:
        parts.append(f"{grouped(progress.already)} earlier runs")
    yield Text(", ".join(parts))
    if progress.repeated or progress.lost:
        yield _checks(progress)


def _checks(progress: Progress) -> Text:
    """Return a line that tells whether repeated runs were equal, and how often runs were lost."""
    line = Text()
    if progress.repeated:
        line.append(f"{counted(progress.repeated, 'run')} repeated")
    if progress.unequal:
        line.append(f", {len(progress.unequal)} of them differ", BAD)
    elif progress.repeated:
        line.append(", all equal", DIM)
    if progress.lost:
        times = counted(progress.lost.total(), "time")
        line.append("; " if progress.repeated else "").append(f"lost runs and repeated them, {times}", WARNED)
    return line


# Cells


def _cells(progress: Progress, definition: Definition, canvas: Canvas, room: int) -> list[Text]:
    """Return a line for each cell or, if there are too many, for those with the most failures."""
    tally = progress.tally
    cells = list(zip(definition.cells, _names(definition.cells), strict=True))
    if len(cells) > room:
        by_failures = sorted(cells, key=lambda pair: -tally.failed[_key(pair[0])])
        chosen = {_key(cell) for cell, _ in by_failures[: max(1, room - 1)]}
        cells = [pair for pair in cells if _key(pair[0]) in chosen]
    width = min(_NAME_MAX, max(cell_len(name) for _, name in cells))
    verdicts = {verdict for _, verdict in tally.verdicts}
    statuses = [status for status in (*STATUSES, ERROR) if status in verdicts]
    columns = "".join(f"{status:>{len(status) + 2}}" for status in statuses)
    each = f"{grouped(len(definition.seeds))} runs each"
    width = max(width, len(each))
    head = f"{set_cell_size(each, width)}     done    failed       {columns}"
    lines = [Text.assemble((head, HEADING))]
    for cell, name in cells:
        key = _key(cell)
        runs, failed = tally.runs[key], tally.failed[key]
        line = Text.assemble(
            set_cell_size(shortened(name, width, canvas), width),
            f" {grouped(runs):>8}",
            (f" {grouped(failed):>9}", BAD if failed else DIM),
            (f" {percent(failed / runs) if failed else '':<6}", BAD),
        )
        for status in statuses:
            count = tally.verdicts[key, status]
            line.append(f"{grouped(count):>{len(status) + 2}}", STYLES.get(status, BAD) if count else DIM)
        lines.append(line)
    if len(definition.cells) > len(cells):
        rest = len(definition.cells) - len(cells)
        lines.append(Text(f"and {counted(rest, 'cell')} more, with no more failures than these", DIM))
    return lines


def _key(cell: Cell) -> tuple[str, str]:
    return cell.campaign, cell.name


def _names(cells: Sequence[Cell]) -> list[str]:
    """Return the labels of all cells of a sweep, with the campaign if there are several."""
    names = cell_labels([cell.name for cell in cells])
    if len({cell.campaign for cell in cells}) > 1:
        names = [f"{cell.campaign} {name}" for cell, name in zip(cells, names, strict=True)]
    return [printable(name) for name in names]


# Failures, rare states


def _failures(progress: Progress, definition: Definition, canvas: Canvas, room: int) -> Iterator[Text]:
    failures = sorted(progress.tally.failures.items(), key=lambda item: (-item[1].count, item[0]))
    if not failures:
        yield Text.assemble(("failures ", HEADING), ("none so far", DIM))
        return
    shown = failures if len(failures) <= room else failures[: max(1, room - 1)]
    width = min(_NAME_MAX, max(len(signature) for (_, signature), _ in shown))
    yield Text.assemble((f"{set_cell_size('failures', width)}    runs  earliest", HEADING))
    by_key = dict(zip(map(_key, definition.cells), _names(definition.cells), strict=True))
    for (campaign, signature), tally in shown:
        yield Text.assemble(
            (set_cell_size(shortened(signature, width, canvas), width), BAD),
            f" {grouped(tally.count):>7}  seed {tally.seed}  {by_key[campaign, tally.cell]}",
        )
    if len(failures) > len(shown):
        yield Text(f"and {counted(len(failures) - len(shown), 'other kind')}", DIM)


def _probes(progress: Progress, canvas: Canvas) -> Iterator[Text]:
    missing = progress.probes_missing()
    yield Text.assemble(("rare states ", HEADING), f"{len(progress.probes)} reached, {len(missing)} not yet")
    # A resumed sweep does not know how often earlier runs reached rare states.
    reached = {} if progress.already else progress.tally.probes
    rarest = sorted(reached.items(), key=lambda item: (item[1], item[0]))[:_RAREST_SHOWN]
    if rarest:
        yield from _wrapped_names(
            "rarest:", [f"{probe} {grouped(count)}" for probe, count in rarest], canvas, 1
        )
    if missing:
        yield from _wrapped_names("not yet:", missing, canvas, _PROBE_LINES)


def _wrapped_names(label: str, names: Sequence[str], canvas: Canvas, lines_max: int) -> Iterator[Text]:
    """Yield names on at most *lines_max* lines, and the number of names that do not fit."""
    margin = 11
    lines = [f"  {label:<{margin - 2}}"]
    for number, name in enumerate(names):
        rest = len(names) - number
        more = f" and {rest} more"
        is_last_line = len(lines) == lines_max
        needed = len(name) + 1 + (len(more) if is_last_line and rest > 1 else 0)
        if len(lines[-1]) + needed > canvas.width and len(lines[-1]) > margin:
            if is_last_line:
                lines[-1] = lines[-1].rstrip().removesuffix(",") + more
                break
            lines.append(" " * margin)
        lines[-1] += f"{name}, " if rest > 1 else name
    yield from (Text(line.rstrip(), DIM) for line in lines)
