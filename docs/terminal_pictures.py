"""Draws the pictures of docs/pictures/ from real runs: ``make docs``.

Each picture shows some commands and what they print in a terminal, as an SVG that Rich draws. No
picture loads a font, because every viewer has a monospaced one. Chromium takes the picture of a
trace's page, if it is installed.
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
_SUGGESTED: Final = "{suggested}"
"""Stands for the run that the output of the first command suggests to look at."""

PICTURES: Final = {
    "loss": ("harrow run loss-by-hw-truncation", f"harrow diff {_SUGGESTED}"),
    "trace": (f"harrow trace {_SUGGESTED} --around lost-write",),
}
"""The commands of each picture, by its name. They run in this order, in one folder."""

WATCH: Final = "watch"
"""The name of the picture of one moment of the first campaign, as `--watch` shows it."""
_MOMENT_US: Final = 32_040_100

PAGE: Final = "page"
"""The name of the picture of a page. It is a PNG, because only a browser can draw it."""
_PAGE_SIZE: Final = "1200,800"

MEASUREMENTS: Final = ("speed",)
"""Pictures of measurements, which vary by machine: `python -m benchmarks.compare --growth`."""

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
        suggested: list[str] = []
        svgs = {name: _picture(name, commands, suggested) for name, commands in PICTURES.items()}
        return {**svgs, WATCH: _moment()}


def texts(svg: str) -> list[str]:
    """Return the texts in a picture, which are the same for every version of Rich."""
    return re.findall(r"<text[^>]*>(.*?)</text>", svg)


@contextmanager
def _terminal(folder: Path) -> Iterator[None]:
    """Change to a folder, and make the output look like a terminal's."""
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


def _output(command: str) -> str:
    """Run a command and return its standard output, with control codes."""
    sys.argv = shlex.split(command)
    output = io.StringIO()
    try:
        with redirect_stdout(output), redirect_stderr(io.StringIO()):
            harrow()
    except SystemExit as error:
        if error.code:
            raise RuntimeError(f"{command}: exit code {error.code}") from error
    return output.getvalue()


def _picture(name: str, commands: Sequence[str], suggested: list[str]) -> str:
    """Draw what commands print; *suggested* collects the runs that they suggest to look at."""
    console = Console(file=io.StringIO(), record=True, width=COLUMNS, force_terminal=True, highlight=False)
    for number, template in enumerate(commands):
        command = template.replace(_SUGGESTED, suggested[0] if suggested else "")
        if number:
            console.print()
        console.print(Text.assemble(("$ ", "green"), (command, "bold")))
        lines = [line for line in _output(command).rstrip().splitlines() if _WALL_TIME not in line]
        text = Text.from_ansi("\n".join(lines))
        suggested += re.findall(r"^look at it: harrow diff (\S+)", text.plain, re.MULTILINE)
        console.print(text)
    return _svg(console, name)


def _svg(console: Console, name: str) -> str:
    svg = console.export_svg(title="harrow", theme=MONOKAI, code_format=_FORMAT, unique_id=f"harrow-{name}")
    return "".join(f"{line.strip()}\n" for line in svg.splitlines() if line.strip())


def _moment() -> str:
    """Draw `harrow run loss-by-hw-truncation --variant base --watch` as the record is truncated."""
    (file,) = resolve("loss-by-hw-truncation")
    (plan,) = (plan for plan in load_campaign(file).plans if plan.variant is None)
    playback = Playback(run_plan(plan, 0))
    playback.advance(sum(event.at_us <= _MOMENT_US for event in playback.events) - 1)
    screen: RenderableType = frame(playback.scene(_MOMENT_US), Canvas(width=COLUMNS, height=24), speed=", 5x")
    console = Console(file=io.StringIO(), record=True, width=COLUMNS, force_terminal=True, highlight=False)
    console.print(
        Text.assemble(("$ ", "green"), ("harrow run loss-by-hw-truncation --variant base --watch", "bold"))
    )
    console.print(screen)
    return _svg(console, WATCH)


def _photograph_page() -> None:
    """Write the picture of the page of the first campaign's trace, if Chromium is installed."""
    browser = shutil.which("chromium") or shutil.which("google-chrome")
    if browser is None:
        print("the picture of the page was not drawn again, because there is no Chromium", file=sys.stderr)
        return
    with TemporaryDirectory() as folder, _terminal(Path(folder)):
        _output("harrow run loss-by-hw-truncation --variant base")
        _output("harrow trace results/latest --format html --output page.html")
        subprocess.run(  # noqa: S603 - our own page
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
