"""Makes the pictures of docs/pictures/ from real runs: ``make docs``.

Each shows what a terminal of that width prints for some commands, as SVG by Rich. No picture loads
a font: every viewer has a monospaced one. The page of a trace is photographed in Chromium, if that
is installed.
"""

import io
import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from rich.console import Console, RenderableType
from rich.terminal_theme import MONOKAI
from rich.text import Text

from harrow.campaigns.language.library_index import resolve
from harrow.campaigns.language.loader import load_campaign
from harrow.campaigns.run.runner import run_plan
from harrow.campaigns.story.playback import Playback
from harrow.cli.main import main as harrow
from harrow.cli.watch.canvas import Canvas
from harrow.cli.watch.run_screen import frame

FOLDER: Final = Path(__file__).parent / "pictures"
COLUMNS: Final = 96
_FOUND: Final = "{found}"
"""Stands for the run that the first command says to look at."""

PICTURES: Final = {
    "loss": ("harrow run loss-by-hw-truncation", f"harrow diff {_FOUND}"),
    "trace": (f"harrow trace {_FOUND} --around lost-write",),
}
"""Commands by the name of their picture, in the order in which they are run in one folder."""

WATCHED: Final = "watch"
"""The picture of one moment of the first campaign, as `--watch` plays it."""
_WATCHED_AT_US: Final = 32_040_100

PAGE: Final = "page"
"""The picture of a page: PNG, because only a browser can draw it."""
_PAGE_SIZE: Final = "1200,800"

MEASURED: Final = ("speed",)
"""Pictures of measurements, which differ by machine: `python -m benchmarks.compare --growth`."""

_WALL_TIME: Final = "of cluster time in"
_FONT: Final = "ui-monospace, SFMono-Regular, Menlo, Consolas, 'DejaVu Sans Mono', monospace"
_FORMAT: Final = f"""\
<svg viewBox="0 0 {{width}} {{height}}" xmlns="http://www.w3.org/2000/svg" role="img">
<style>
.{{unique_id}}-matrix {{{{ font-family: {_FONT}; font-size: {{char_height}}px }}}}
.{{unique_id}}-title {{{{ font-family: sans-serif; font-size: 18px; font-weight: bold }}}}
{{styles}}
</style>
<defs>
<clipPath id="{{unique_id}}-clip-terminal">
<rect x="0" y="0" width="{{terminal_width}}" height="{{terminal_height}}"/>
</clipPath>
{{lines}}
</defs>
{{chrome}}
<g transform="translate({{terminal_x}}, {{terminal_y}})" clip-path="url(#{{unique_id}}-clip-terminal)">
{{backgrounds}}
<g class="{{unique_id}}-matrix">
{{matrix}}
</g>
</g>
</svg>
"""


def pictures() -> dict[str, str]:
    """Return the pictures as SVG, by name."""
    with TemporaryDirectory() as folder, _terminal(Path(folder)):
        found: list[str] = []
        drawn = {name: _picture(name, commands, found) for name, commands in PICTURES.items()}
        return {**drawn, WATCHED: _moment()}


def said(svg: str) -> list[str]:
    """Return the texts of a picture: what it says, whatever version of Rich drew it."""
    return re.findall(r"<text[^>]*>(.*?)</text>", svg)


@contextmanager
def _terminal(folder: Path) -> Iterator[None]:
    """Work in a folder, on what looks like a terminal."""
    before, environment = Path.cwd(), dict(os.environ)
    arguments = sys.argv
    for name in ("NO_COLOR", "COLORTERM", "TTY_COMPATIBLE", "TTY_INTERACTIVE"):
        os.environ.pop(name, None)
    os.environ.update(FORCE_COLOR="1", COLUMNS=str(COLUMNS), TERM="xterm-256color")
    os.chdir(folder)
    try:
        yield
    finally:
        os.chdir(before)
        os.environ.clear()
        os.environ.update(environment)
        sys.argv = arguments


def _shown(command: str) -> str:
    """Run a command and return what it prints, control codes and all; messages aside."""
    sys.argv = shlex.split(command)
    seen = io.StringIO()
    try:
        with redirect_stdout(seen), redirect_stderr(io.StringIO()):
            harrow()
    except SystemExit as ended:
        if ended.code:
            raise RuntimeError(f"{command}: exit code {ended.code}") from ended
    return seen.getvalue()


def _picture(name: str, commands: Sequence[str], found: list[str]) -> str:
    """Draw what commands print; *found* collects the runs that they say to look at."""
    console = Console(file=io.StringIO(), record=True, width=COLUMNS, force_terminal=True, highlight=False)
    for number, template in enumerate(commands):
        command = template.replace(_FOUND, found[0] if found else "")
        if number:
            console.print()
        console.print(Text.assemble(("$ ", "green"), (command, "bold")))
        lines = [line for line in _shown(command).rstrip().splitlines() if _WALL_TIME not in line]
        shown = Text.from_ansi("\n".join(lines))
        found += re.findall(r"^look at it: harrow diff (\S+)", shown.plain, re.MULTILINE)
        console.print(shown)
    return _svg(console, name)


def _svg(console: Console, name: str) -> str:
    svg = console.export_svg(title="harrow", theme=MONOKAI, code_format=_FORMAT, unique_id=f"harrow-{name}")
    return "".join(f"{line.strip()}\n" for line in svg.splitlines() if line.strip())


def _moment() -> str:
    """Draw `harrow run loss-by-hw-truncation --variant base --watch` as the record is truncated."""
    (file,) = resolve("loss-by-hw-truncation")
    (plan,) = (plan for plan in load_campaign(file).plans if plan.variant is None)
    playback = Playback(run_plan(plan, 0))
    playback.advance(sum(event.at_us <= _WATCHED_AT_US for event in playback.events) - 1)
    shown: RenderableType = frame(
        playback.scene(_WATCHED_AT_US), Canvas(width=COLUMNS, height=24), speed=", 5x"
    )
    console = Console(file=io.StringIO(), record=True, width=COLUMNS, force_terminal=True, highlight=False)
    console.print(
        Text.assemble(("$ ", "green"), ("harrow run loss-by-hw-truncation --variant base --watch", "bold"))
    )
    console.print(shown)
    return _svg(console, WATCHED)


def _photograph_page() -> None:
    """Write the picture of the page of the first campaign's trace, unless there is no Chromium."""
    browser = shutil.which("chromium") or shutil.which("google-chrome")
    if browser is None:
        print("no Chromium: the picture of the page stays as it is", file=sys.stderr)
        return
    with TemporaryDirectory() as folder, _terminal(Path(folder)):
        _shown("harrow run loss-by-hw-truncation --variant base")
        _shown("harrow trace results/latest --format html --output page.html")
        subprocess.run(  # noqa: S603 - a page of ours
            [
                *(browser, "--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars"),
                *("--virtual-time-budget=3000", f"--window-size={_PAGE_SIZE}"),
                *(f"--screenshot={FOLDER / PAGE}.png", Path("page.html").resolve().as_uri()),
            ],
            check=True,
            capture_output=True,
        )


def main() -> None:
    """Write the pictures."""
    FOLDER.mkdir(exist_ok=True)
    for name, svg in pictures().items():
        (FOLDER / f"{name}.svg").write_text(svg, encoding="utf-8")
    _photograph_page()


if __name__ == "__main__":
    main()
