"""Reads the history that `harrow check` judges: a file, several files, or logs of clients."""

import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final

import typer

from harrow.campaigns.logs.client_logs import SENT, recognise
from harrow.campaigns.logs.logged_records import history_of
from harrow.campaigns.record.history_file import open_history, read_history
from harrow.campaigns.storage.location import LocalLocation, Location, location
from harrow.checks.history.index import HistoryIndex
from harrow.cli.console import message_console
from harrow.cli.extras import EXTRAS, need
from harrow.cli.options import refuse
from harrow.cli.progress import ReadingProgress
from harrow.cli.requests.results import CheckRequest
from harrow.cli.session import Refusal, note

_STDIN: Final = "-"
_HISTORY_FILES: Final = ("history.jsonl", "history.jsonl.gz")
_ENDINGS: Final = (".jsonl", ".json", ".edn", ".jsonl.gz", ".json.gz", ".edn.gz")
_HIDDEN: Final = ("_", ".")
_LINES_AT_ONCE: Final = 4_096
_LARGE_BYTES: Final = 32 << 20
"""A larger file is judged by what rules need of it, which takes less time and memory."""

Source = Location | None
"""A file of a history. None stands for standard input."""


def sources_of(request: CheckRequest) -> list[Source]:
    """Return the files to read."""
    histories, sent, read = request.histories or [], request.sent or [], request.read or []
    if histories:
        refuse({"--sent": request.sent, "--read": request.read}, "has no meaning with a history")
    if bool(sent) != bool(read):
        missing, other = ("--read", "--sent") if sent else ("--sent", "--read")
        raise typer.BadParameter(f"{other} is only half of a history", param_hint=missing)
    if not histories and not sent:
        raise typer.BadParameter("give a history, or --sent and --read", param_hint="HISTORY")
    names = histories or [*sent, *read]
    if names.count(_STDIN) > 1:
        raise typer.BadParameter("only one file can be standard input", param_hint="--read")
    if len(histories) > 1 and _STDIN in histories:
        message = "several files are read twice, so none can be standard input"
        raise typer.BadParameter(message, param_hint="HISTORY")
    if request.engine != "spark":
        refuse(
            {"--master": request.master, "--remote": request.remote}, "has no meaning without --engine spark"
        )
    elif not histories or _STDIN in histories:
        raise typer.BadParameter("Spark reads only files of histories", param_hint="--engine")
    else:
        from harrow.cli.spark import check_engine

        check_engine(request)
    return [source for name in names for source in _sources(name)]


def name_of(source: Source) -> str:
    return "<stdin>" if source is None else str(source)


def read_sources(request: CheckRequest, sources: Sequence[Source]) -> tuple[HistoryIndex, frozenset[str]]:
    """Read a history, and return it with the rules about which it cannot show anything.

    Raises:
        HistoryError: Lines are malformed.
        Refusal: The history cannot be read in this way.

    """
    if request.engine == "spark":
        return _on_spark(request, sources), frozenset()
    if request.histories and len(sources) > 1 and not _are_logs(request, sources):
        need("sweep")
        return _reduced(request, sources), frozenset()
    if request.histories and (path := _large(request, sources)) is not None:
        history = _reduced_lines(request, sources[0], path)
        if history is not None:
            return history, frozenset()
    with ExitStack() as stack:
        lines, not_shown = _lines(request, sources, stack)
        if sys.stderr.isatty():
            progress = stack.enter_context(_progress(request, sources[0] if len(sources) == 1 else None))
            lines = _reported(lines, progress)
        return read_history(lines, " and ".join(map(name_of, sources)), **_limits(request)), not_shown


@contextmanager
def _progress(request: CheckRequest, source: Source) -> Iterator[ReadingProgress]:
    """Show the progress of reading. The unpacked size of a compressed file is unknown."""
    size = None
    if isinstance(source, LocalLocation) and source.path.is_file() and not source.name.endswith(".gz"):
        size = source.path.stat().st_size
    progress = ReadingProgress(message_console(no_color=request.no_color), size, enabled=not request.quiet)
    try:
        yield progress
    finally:
        progress.clear()


def _reported(lines: Iterable[bytes], progress: ReadingProgress) -> Iterator[bytes]:
    read = 0
    for number, line in enumerate(lines, 1):
        yield line
        read += len(line)
        if not number % _LINES_AT_ONCE:
            progress.update(read)


def _sources(name: str) -> list[Source]:
    if name == _STDIN:
        return [None]
    place = location(name)
    if not place.is_folder():
        return [place]
    for file in _HISTORY_FILES:
        if (place / file).exists():
            return [place / file]
    parts: list[Source] = [
        file for file in place.files() if file.name.endswith(_ENDINGS) and not file.name.startswith(_HIDDEN)
    ]
    if not parts:
        raise typer.BadParameter(f"{name} has no {_HISTORY_FILES[0]}", param_hint="HISTORY")
    return parts


def _are_logs(request: CheckRequest, sources: Sequence[Source]) -> bool:
    """Return whether several files are logs of clients. They cannot be mixed with histories."""
    with ExitStack() as stack:
        opened = [_opened(request, source, stack) for source in sources]
        kinds = {name: recognise(lines)[0] is not None for name, lines in opened}
    if len(set(kinds.values())) > 1:
        log = next(name for name, is_log in kinds.items() if is_log)
        history = next(name for name, is_log in kinds.items() if not is_log)
        raise Refusal(f"{log} is the log of a client, and {history} is a history: give files of one kind")
    return any(kinds.values())


def _lines(
    request: CheckRequest, sources: Sequence[Source], stack: ExitStack
) -> tuple[Iterable[bytes], frozenset[str]]:
    """Return the lines of the history, and the rules about which it cannot show anything.

    Logs of clients become a history.
    """
    files = [_opened(request, source, stack) for source in sources]
    count = len(request.sent or ())
    sent, read = files[:count], files[count:]
    if request.histories:
        recognised = [(name, *recognise(lines)) for name, lines in files]
        if recognised[0][1] is None:
            return recognised[0][2], frozenset()
        sent = [(name, lines) for name, kind, lines in recognised if kind == SENT]
        read = [(name, lines) for name, kind, lines in recognised if kind != SENT]
    say_note = lambda text: note(request, f"note: {text}")  # noqa: E731 - its use gives its type
    return history_of(sent, read, say_note, read_to_end=not request.histories)


def _opened(request: CheckRequest, source: Source, stack: ExitStack) -> tuple[str, Iterable[bytes]]:
    limits = {"line_max": request.line_max_mib << 20, "unpacked_max": request.unpacked_max_mib << 20}
    return name_of(source), stack.enter_context(open_history(source, sys.stdin.buffer, **limits))


def _large(request: CheckRequest, sources: Sequence[Source]) -> Path | None:
    """Return the path of a large file of lines, and None for any other source."""
    source = sources[0]
    if not isinstance(source, LocalLocation) or not all(map(find_spec, EXTRAS["sweep"])):
        return None
    path = source.path
    if not path.is_file() or path.stat().st_size <= _LARGE_BYTES:
        return None
    with ExitStack() as stack, path.open("rb") as file:
        kind, _ = recognise(_opened(request, source, stack)[1])
        return path if kind is None and file.read(1) == b"{" else None


def _reduced(request: CheckRequest, sources: Sequence[Source]) -> HistoryIndex:
    from harrow.campaigns.large_histories.reduced_reading import read_reduced
    from harrow.campaigns.large_histories.reduction import ReductionError
    from harrow.campaigns.large_histories.tables import TablesError

    for source in sources:
        if isinstance(source, LocalLocation) and source.exists() and not source.path.is_file():
            raise Refusal(f"several files are read twice, so {source} must be a regular file")
    try:
        return read_reduced([*map(partial(_file, request), sources)], **_limits(request))
    except (ReductionError, TablesError) as error:
        raise Refusal(str(error)) from None


def _reduced_lines(request: CheckRequest, source: Source, path: Path) -> HistoryIndex | None:
    from harrow.campaigns.large_histories.reduced_reading import read_large_file
    from harrow.campaigns.large_histories.reduction import ReductionError
    from harrow.campaigns.large_histories.tables import TablesError

    try:
        with _progress(request, source) as progress:
            return read_large_file(path, name_of(source), report=progress.update, **_limits(request))
    except (ReductionError, TablesError) as error:
        raise Refusal(str(error)) from None


def _file(request: CheckRequest, source: Source) -> tuple[str, Any]:
    """Return the name of a file, and a function that opens it."""
    limits = {"line_max": request.line_max_mib << 20, "unpacked_max": request.unpacked_max_mib << 20}
    return name_of(source), partial(open_history, source, sys.stdin.buffer, **limits)


def _limits(request: CheckRequest) -> dict[str, int]:
    return {"line_max": request.line_max_mib << 20, "memory_max": request.memory_max_mib << 20}


def _on_spark(request: CheckRequest, sources: Sequence[Source]) -> HistoryIndex:
    from harrow.cli.spark import address_of, available_engine, extra_of_engine, start_spark

    need(extra_of_engine(request))
    from harrow.campaigns.sweep.engine import EngineError

    available_engine(request)
    from harrow.campaigns.large_histories.reduction import ReductionError
    from harrow.campaigns.large_histories.spark_tables import read_on_spark
    from harrow.campaigns.large_histories.splits import split_files

    if _are_logs(request, sources):
        raise Refusal("Spark reads histories, and not logs of clients")
    # Executors may have another working folder.
    files = [(name_of(source), source.absolute()) for source in sources if source is not None]
    limits = {"line_max": request.line_max_mib << 20, "unpacked_max": request.unpacked_max_mib << 20}
    splits = split_files(files)
    try:
        with ExitStack() as stack:
            spark = start_spark(request, address_of(request), stack, for_sql=True)
            return read_on_spark(spark, splits, numbered=len(files) > 1, **limits)
    except (EngineError, ReductionError) as error:
        raise Refusal(str(error)) from None
