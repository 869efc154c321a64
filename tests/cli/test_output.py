"""Output is plain and complete on pipes, fits 80 columns, and has colours only on request or
terminals.
"""

import re
from collections.abc import Callable

import pytest

from tests.cli.conftest import Harrow

Terminal = Callable[..., tuple[int, str]]

CONTROL = re.compile(r"[\x00-\x09\x0b-\x1f\x7f]")
COLOUR = re.compile(r"\x1b\[[0-9;]*3[0-9][0-9;]*m")
ESCAPE = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")

COMMANDS = (
    ("run", "permitted.yaml", "failing.yaml", "undecided.yaml"),
    ("run", "permitted.yaml", "failing.yaml", "--verbose"),
    ("run", "permitted.yaml", "--seeds", "0..3"),
    ("validate", "wrong.yaml"),
    ("list", "settings"),
    ("list", "faults"),
    ("explain", "network_ack_loss"),
    ("explain", "min.insync.replicas"),
    ("--help",),
    ("run", "--help"),
    ("run", "missing.yaml"),
    ("run", "calm.yaml", "--nonsense"),
)


@pytest.mark.parametrize("arguments", COMMANDS, ids=" ".join)
def test_a_pipe_gets_plain_whole_lines(harrow: Harrow, arguments: tuple[str, ...]) -> None:
    ended = harrow(*arguments)
    assert not CONTROL.search(ended.stdout + ended.stderr)
    assert "…" not in ended.stdout
    if arguments[0] not in ("--help", "run") or "--help" not in arguments:
        assert all(line == line.rstrip() for line in ended.stdout.splitlines())


def test_long_lines_are_not_broken_on_a_pipe(harrow: Harrow) -> None:
    listed = harrow("list", "settings").stdout.splitlines()
    assert max(map(len, listed)) > 100
    (line,) = (line for line in listed if line.startswith("unclean.leader.election.enable "))
    assert line.endswith("(KIP-106).")


def test_columns_limits_the_width_on_a_pipe(harrow: Harrow) -> None:
    for arguments in (("list", "settings"), ("run", "permitted.yaml", "failing.yaml")):
        ended = harrow(*arguments, COLUMNS="60")
        lines = [line for line in ended.stdout.splitlines() if "results/" not in line]
        assert max(map(len, lines)) <= 60, "except text to copy"


@pytest.mark.parametrize("arguments", COMMANDS[:8], ids=" ".join)
def test_output_fits_eighty_columns(on_terminal: Terminal, arguments: tuple[str, ...]) -> None:
    _, shown = on_terminal(*arguments, columns=80)
    for line in ESCAPE.sub("", shown).splitlines():
        # Paths, messages and commands to copy may be longer; the terminal breaks them.
        if "harrow run" not in line and "results/" not in line and ".yaml:" not in line:
            assert len(line) <= 80


def test_a_terminal_gets_colours(on_terminal: Terminal) -> None:
    code, shown = on_terminal("run", "failing.yaml")
    assert code == 1
    assert COLOUR.search(shown)
    assert "UNEXPECTED" in shown


@pytest.mark.parametrize("variables", [{"NO_COLOR": "1"}, {"TTY_COMPATIBLE": "0"}, {"TERM": "dumb"}])
def test_no_color_turns_colours_off(on_terminal: Terminal, variables: dict[str, str]) -> None:
    _, shown = on_terminal("run", "failing.yaml", **variables)
    assert not COLOUR.search(shown)
    assert "UNEXPECTED" in shown


def test_the_option_no_color_turns_colours_off(on_terminal: Terminal) -> None:
    _, shown = on_terminal("run", "failing.yaml", "--no-color")
    assert not COLOUR.search(shown)


@pytest.mark.parametrize("variables", [{"FORCE_COLOR": "1"}, {"TTY_COMPATIBLE": "1"}])
def test_a_pipe_gets_colours_with_force_color(harrow: Harrow, variables: dict[str, str]) -> None:
    assert COLOUR.search(harrow("run", "failing.yaml", **variables).stdout)


def test_json_never_has_colours(harrow: Harrow) -> None:
    assert "\x1b" not in harrow("run", "failing.yaml", "--format", "json", FORCE_COLOR="1").stdout


def test_a_terminal_shows_the_wrong_line_of_a_file(on_terminal: Terminal) -> None:
    code, shown = on_terminal("validate", "wrong.yaml")
    assert code == 2
    lines = ESCAPE.sub("", shown).splitlines()
    place = next(number for number, line in enumerate(lines) if "unknown key `clutser`" in line)
    assert lines[place + 1].endswith("| clutser: {brokers: 1}")
    assert lines[place + 2].index("^") == lines[place + 1].index("clutser")


def test_an_ascii_encoding_gets_ascii_marks(harrow: Harrow) -> None:
    ended = harrow("run", "permitted.yaml", "failing.yaml", PYTHONIOENCODING="ascii")
    assert ended.returncode == 1
    assert "+ held" in ended.stdout


def test_help_loads_no_heavy_module(harrow: Harrow) -> None:
    for arguments in (("--help",), ("run", "--help")):
        ended = harrow(*arguments, PYTHONPROFILEIMPORTTIME="1")
        assert ended.returncode == 0
        loaded = {line.rpartition("|")[2].strip() for line in ended.stderr.splitlines()}
        assert "typer" in loaded
        assert not loaded & {
            "yaml",
            "rich.console",
            "harrow.cluster_model.cluster",
            "harrow.campaigns.language.loader",
        }


def test_version_is_printed_with_the_kind_of_build(harrow: Harrow) -> None:
    from harrow.campaigns.version import version
    from harrow.compilation import compilation

    assert harrow("--version").stdout == f"harrow {version()} ({compilation()[0]})\n"


def test_without_arguments_the_help_is_printed(harrow: Harrow) -> None:
    ended = harrow()
    assert ended.returncode == 2
    assert "Run campaigns:" in ended.stdout + ended.stderr
