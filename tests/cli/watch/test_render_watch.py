"""The view of a moment of a run fits its terminal."""

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import replace
from itertools import product

import pytest
from rich.cells import cell_len

from harrow.campaigns.run.run_result import RunResult
from harrow.campaigns.story.playback import DisplayedFault, Playback, Scene
from harrow.campaigns.story.run_state import RunState
from harrow.cli.watch.canvas import Canvas
from harrow.cli.watch.run_screen import frame
from tests.played_runs import library_run, rendered, scene_at


def lines_of(scene: Scene, width: int = 80, height: int = 24, *, is_unicode: bool = True) -> list[str]:
    canvas = Canvas(width=width, height=height, is_unicode=is_unicode)
    return rendered(frame(scene, canvas), width=width).splitlines()


def scenes(result: RunResult, times_us: Iterable[int]) -> Iterator[Scene]:
    """Yield moments of a run; each is valid until the next."""
    playback = Playback(result)
    for at_us in times_us:
        playback.advance(sum(event.at_us <= at_us for event in playback.events) - 1)
        yield playback.scene(at_us)


def scene_of(state: RunState) -> Scene:
    return Scene(
        title="fake",
        at_us=state.at_us,
        end_us=9_000_000,
        state=state,
        faults=(),
        events=(),
        anomalies=(),
        sends=Counter(),
        reads=0,
    )


@pytest.mark.parametrize("campaign", ["loss-by-hw-truncation", "standard", "rack-outage"])
def test_the_view_fits_any_terminal(campaign: str) -> None:
    for scene in scenes(library_run(campaign), (0, 6_000_000, 27_000_000, 90_000_000)):
        for width, height in product((20, 40, 80, 120, 250), (2, 8, 16, 24, 40, 100)):
            lines = lines_of(scene, width, height)
            assert len(lines) < height
            assert all(cell_len(line) <= width for line in lines)


@pytest.mark.parametrize("size", [(80, 24), (120, 40)])
def test_no_line_of_the_view_jumps(size: tuple[int, int]) -> None:
    """The height of the view and the lines of partitions do not depend on faults and findings."""
    result = library_run("loss-by-hw-truncation")
    frames = [lines_of(scene, *size) for scene in scenes(result, range(0, 41_000_000, 1_000_000))]
    assert len({len(lines) for lines in frames}) == 1
    assert len({next(n for n, line in enumerate(lines) if line.startswith("t-0")) for lines in frames}) == 1


@pytest.mark.parametrize("size", [(80, 20), (80, 50), (50, 50)])
def test_longer_broker_texts_do_not_move_the_rest_of_the_view(size: tuple[int, int]) -> None:
    state = scene_of_many(1, 6)
    frames = [lines_of(scene_of(state), *size)]
    for broker in range(6):
        state.advance((2, "broker_stopped", broker, "power_loss"))
        frames.append(lines_of(scene_of(state), *size))
    assert "3 DOWN, no power" in "\n".join(frames[-1])
    assert len({len(lines) for lines in frames}) == 1
    (places,) = {tuple(n for n, line in enumerate(lines) if "topic-0" in line) for lines in frames}
    assert places


def scene_of_many(partitions: int, brokers: int) -> RunState:
    state = RunState(
        {f"topic-{n}": [n % brokers, (n + 1) % brokers] for n in range(partitions)}, range(brokers)
    )
    for broker in range(brokers):
        state.advance((0, "broker_started", broker))
        state.advance((0, "broker_registered", broker, 1))
    for n in range(partitions):
        isr = (n % brokers, (n + 1) % brokers)
        state.advance((1, "election", 0, f"topic-{n}", isr[0], 1, isr, False, "topic creation"))
    return state


def test_healthy_partitions_are_omitted_first() -> None:
    state = scene_of_many(60, 9)
    state.advance((2, "election", 0, "topic-41", -1, 2, (5,), False, "broker failure"))
    shown = "\n".join(lines_of(scene_of(state)))
    assert "topic-41" in shown
    assert "NONE" in shown
    (rest,) = (line for line in shown.splitlines() if line.startswith("and "))
    hidden = 60 - sum(line.startswith("topic-") for line in shown.splitlines())
    assert rest == f"and {hidden} partitions more, {hidden} with a leader and a whole ISR"


def test_healthy_brokers_are_omitted_first() -> None:
    state = scene_of_many(1, 100)
    for event in (
        (2, "controller_changed", 70, 3),
        (2, "broker_stopped", 99, "process"),
        (2, "broker_paused", 98),
    ):
        state.advance(event)
    shown = lines_of(scene_of(state))
    begin = next(number for number, line in enumerate(shown) if line.startswith("brokers"))
    brokers = " ".join(shown[begin : begin + 3])
    assert brokers.split()[1:9] == ["70", "up", "controller", "e3", "98", "PAUSED", "99", "DOWN"]
    left_out = 100 - 2 - brokers.count(" up") + 1
    assert brokers.endswith(f"and {left_out} more, {left_out} up")
    assert shown[begin + 3].startswith("records")


def test_an_unaware_deposed_leader_is_marked() -> None:
    state = scene_of_many(1, 3)
    for event in (
        (1, "recover", 0, "topic-0", 0, 0),
        (1, "leader", 0, "topic-0", 1, 0, (0, 1)),
        (2, "election", 2, "topic-0", 1, 2, (1,), False, "broker failure"),
    ):
        state.advance(event)
    assert "  0 leader e1 DEPOSED, not in ISR" in "\n".join(lines_of(scene_of(state)))


def test_missing_uncommitted_and_removed_records_have_signs() -> None:
    result = library_run("loss-by-hw-truncation")

    def logs(at_us: int) -> list[str]:
        lines = lines_of(scene_at(result, at_us))
        return [line.split()[-1] for line in lines if line.startswith(("  0 ", "  1 "))]

    assert logs(25_024_500) == ["██", "█~"]
    # Broker 0 is down and will start with the high watermark of its checkpoint.
    assert logs(32_100_000) == ["█~", "█-"]
    assert logs(41_000_000) == ["█-", "█-"]


def test_a_long_log_shows_its_last_records() -> None:
    shown = lines_of(scene_at(library_run("standard"), 50_000_000), 120, 40)
    begin = next(number for number, line in enumerate(shown) if line.startswith("t-0 "))
    first, last = (int(offset) for offset in shown[begin].split()[-1].split("-"))
    ends = [int(line.partition("LEO ")[2].split()[0]) for line in shown[begin + 1 : begin + 4]]
    assert last == max(ends) - 1
    assert {len(line.split()[-1]) for line in shown[begin + 1 : begin + 4]} == {last - first + 1}


def test_only_headings_are_bold() -> None:
    shown = frame(scene_at(library_run("loss-by-hw-truncation"), 41_000_000), Canvas(width=80, height=24))
    lines = rendered(shown, width=80, colours=True).splitlines()
    (brokers,) = (line for line in lines if "brokers" in line)
    assert brokers.startswith("\x1b[1mbrokers  \x1b[0m0 \x1b[32mup\x1b[0m")


def test_a_terminal_without_unicode_gets_ascii() -> None:
    result = library_run("loss-by-hw-truncation")
    text = "\n".join(lines_of(scene_at(result, 41_000_000), is_unicode=False))
    assert text.isascii()
    assert "#-" in text
    assert "x lost m1 despite acks=all" in text


def test_further_faults_are_counted() -> None:
    fault = DisplayedFault(text="broker_crash broker=1", since_us=1_000_000, until_us=4_500_000)
    endless = DisplayedFault(text="partition between=[0, 1]", since_us=1_000_000, until_us=None)
    scene = replace(scene_of(scene_of_many(1, 3)), faults=(fault, endless, fault, fault, fault))
    shown = lines_of(scene)
    begin = shown.index("faults in force")
    assert shown[begin + 1 : begin + 5] == [
        "  broker_crash broker=1  since 1.000s, 4.500s left",
        "  partition between=[0, 1]  since 1.000s, to the end",
        "  broker_crash broker=1  since 1.000s, 4.500s left",
        "  and 2 more",
    ]
