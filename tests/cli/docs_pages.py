"""Reads the files, the commands and the printed output of the project's pages.

The conventions of a page:

- A line ``$ harrow ...`` in a block ``console``, ``bash`` or ``sh`` is a command; the lines up to
  the next one are its output. A line ``...`` stands for any number of lines, and one that ends with
  ``...`` for the rest of the line. ``# ... exit code 1`` after a command states its exit code,
  which is 0 otherwise.
- ``console {columns=100}`` sets the width of the terminal.
- A block with a title (``yaml title="my-first.yaml"``) is a file that exists from the
  start; a command that writes it has to write the same.
- Steps of a CI job in a block ``yaml`` (``- harrow run ...``) are commands too.
- `` `harrow list faults` `` in the text is a command, unless it has a placeholder such as ``RUN``.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

_FENCE: Final = re.compile(r"^```(\S+)?(?: +([^\n]*?))? *\n(.*?)^```$", re.DOTALL | re.MULTILINE)
_TITLE: Final = re.compile(r'title="([^"]+)"')
_SHELLS: Final = ("console", "bash", "sh")
_PROMPT: Final = "$ "
_COMMENT: Final = re.compile(r"\s+# .*$")
_EXIT_CODE: Final = re.compile(r"exit code (\d+)")
_INLINE: Final = re.compile(r"(?<!`)`(harrow\s[^`]+)`(?!`)")
_JOB_STEP: Final = re.compile(r"^ +- (?:run: )?(harrow .*)$", re.MULTILINE)
_PLACEHOLDER: Final = re.compile(r"\b[A-Z]{1,2}\b|\b[A-Z]{3,}\b|\[|\.\.\.(?!\d)|\|")
_WALL_TIME: Final = re.compile(r"(?<= in )[\d.]+ m?s$")
_HARROW_OF_RUN: Final = re.compile(r"(?<=\d)-\d+(?:\.\w+)+(?:\+\w+)?-[0-9a-f]{8}\b|(?<=by harrow )\S+")
"""The harrow of a run in its id or in a file."""
_BARE: Final = re.compile(r"harrow [a-z]+")


@dataclass(frozen=True, slots=True, kw_only=True)
class Command:
    """A command of a page with the output ``shown`` below it, ``columns`` wide."""

    page: str
    line: int
    text: str
    exit_code: int = 0
    shown: tuple[str, ...] = ()
    columns: int | None = None
    inline: bool = False

    @property
    def where(self) -> str:
        """File and line."""
        return f"{self.page}:{self.line}: $ {self.text}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    """A page with its files by name, its commands in order, and mentions of commands."""

    name: str
    text: str
    files: dict[str, str]
    commands: tuple[Command, ...]
    mentions: tuple[Command, ...]


def read_page(path: Path, root: Path) -> Page:
    """Return a page with its files and commands."""
    name = str(path.relative_to(root))
    text = path.read_text(encoding="utf-8")
    in_order = sorted((*_in_blocks(name, text), *_in_text(name, text)), key=lambda command: command.line)
    commands, mentions, texts = [], [], set()
    for command in in_order:
        if not command.inline:
            commands.append(command)
        elif _PLACEHOLDER.search(command.text) or _BARE.fullmatch(command.text):
            mentions.append(command)
        elif command.text not in texts:
            commands.append(command)
        texts.add(command.text)
    return Page(name=name, text=text, files=_files(text), commands=tuple(commands), mentions=tuple(mentions))


def _files(text: str) -> dict[str, str]:
    return {title[1]: block[3] for block in _FENCE.finditer(text) if (title := _TITLE.search(block[2] or ""))}


def _in_blocks(page: str, text: str) -> Iterator[Command]:
    for block in _FENCE.finditer(text):
        first = text.count("\n", 0, block.start()) + 2
        if block[1] == "yaml":
            for step in _JOB_STEP.finditer(block[3]):
                yield Command(page=page, line=first + block[3].count("\n", 0, step.start()), text=step[1])
        elif block[1] in _SHELLS:
            yield from _in_shell(page, first, block[3], _columns(block[2]))


def _in_shell(page: str, first: int, body: str, columns: int | None) -> Iterator[Command]:
    lines = body.splitlines()
    starts = [place for place, line in enumerate(lines) if line.startswith(_PROMPT)]
    if not starts or starts[0]:
        raise ValueError(f"{page}:{first}: a block of a shell begins with `{_PROMPT}`")
    for start, end in zip(starts, [*starts[1:], len(lines)], strict=True):
        typed = lines[start].removeprefix(_PROMPT)
        code = _EXIT_CODE.search(typed)
        yield Command(
            page=page,
            line=first + start,
            text=_COMMENT.sub("", typed),
            exit_code=int(code[1]) if code else 0,
            shown=tuple(lines[start + 1 : end]),
            columns=columns,
        )


def _in_text(page: str, text: str) -> Iterator[Command]:
    # Blank lines replace blocks, so that lines keep their numbers.
    without = _FENCE.sub(lambda block: "\n" * block[0].count("\n"), text)
    for place in _INLINE.finditer(without):
        line = without.count("\n", 0, place.start()) + 1
        # `\|` is a bar in a cell of a table.
        yield Command(page=page, line=line, text=" ".join(place[1].replace("\\|", "|").split()), inline=True)


def other_blocks(text: str) -> list[str]:
    """Return the blocks of a page that contain no commands."""
    return [block[3] for block in _FENCE.finditer(text) if block[1] not in (*_SHELLS, "yaml")]


def _columns(info: str | None) -> int | None:
    match = re.search(r"columns=(\d+)", info or "")
    return int(match[1]) if match else None


def difference(shown: tuple[str, ...], printed: list[str]) -> str | None:
    """Return a line that is shown but not printed or vice versa, or None if both match."""
    expected = list(shown)
    while expected and not expected[-1].strip():
        expected.pop()
    place, skipping = 0, False
    for line in expected:
        if line.strip() == "...":
            skipping = True
            continue
        rest = range(place, len(printed) if skipping else min(place + 1, len(printed)))
        match_at = next((at for at in rest if _alike(line, printed[at])), None)
        if match_at is None:
            return f"shown:   {line}\nprinted: {printed[place] if place < len(printed) else '(the end)'}"
        place, skipping = match_at + 1, False
    if not skipping and any(line.strip() for line in printed[place:]):
        return f"not shown: {printed[place]}\n(a line `...` says that there is more)"
    return None


def _alike(shown: str, printed: str) -> bool:
    shown, printed = (_HARROW_OF_RUN.sub("", _WALL_TIME.sub("", line.rstrip())) for line in (shown, printed))
    return printed.startswith(shown[:-3].rstrip()) if shown.endswith(" ...") else shown == printed
