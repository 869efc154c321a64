"""With any files in a run or sweep folder, commands end cleanly and print no control characters."""

import resource
import shutil
from pathlib import Path
from random import Random

import pytest

from tests.cli import warm_process
from tests.patience import PATIENCE_S
from tests.plain_environment import PYTHONPATH, plain_environment
from tests.properties.hostile_files import damage

pytest.importorskip("pyarrow")

CAMPAIGN = """
name: small
kafka: "0.10.2"
cluster: {brokers: 3, topics: [{name: t, replication_factor: 3}]}
workload: {duration: 4s, producers: [{name: p, rate: 3/s, settings: {acks: 1}}], consumers: [{name: c}]}
faults: [{rate: 30/m, do: {broker_crash: {broker: leader of t-0, restart_after: 500ms}}}]
"""
RUN_COMMANDS = (
    "check RUN/history.jsonl",
    "check RUN --format json",
    "diff RUN",
    "diff RUN --format json",
    "diff RUN WHOLE",
    "trace RUN",
    "trace RUN --all --format json",
    "trace RUN --format mermaid",
    "trace RUN --format html --output page.html",
    "replay RUN",
    "clean --keep 0",
    "run RUN/campaign.yaml --no-results --max-time 5s --set limits.events=3000",
)
SWEEP_COMMANDS = (
    "sweep --report SWEEP",
    "sweep --report SWEEP --format json",
    "sweep --report SWEEP --format junit",
    "sweep --report SWEEP --format github",
    "sweep small.yaml --seeds 0..3 --vary acks=1,all --engine process --out SWEEP --resume",
    "clean --sweeps --keep 0",
)
CPU_MAX_S, DATA_MAX_BYTES = 20, 1 << 30


def limit_resources() -> None:
    resource.setrlimit(resource.RLIMIT_CPU, (CPU_MAX_S, CPU_MAX_S))
    resource.setrlimit(resource.RLIMIT_DATA, (DATA_MAX_BYTES, DATA_MAX_BYTES))


def run_harrow(folder: Path, words: str) -> tuple[int, str]:
    environment = {**plain_environment(), "PYTHONPATH": PYTHONPATH}
    completed = warm_process.run(words.split(), folder, environment, PATIENCE_S, prepare=limit_resources)
    return completed.returncode, completed.stdout + completed.stderr


@pytest.fixture(scope="module")
def intact(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with a run and a sweep, as harrow writes them."""
    folder = tmp_path_factory.mktemp("intact")
    (folder / "small.yaml").write_text(CAMPAIGN, encoding="utf-8")
    assert run_harrow(folder, "run small.yaml --seed 1")[0] in (0, 1)
    sweep = "sweep small.yaml --seeds 0..3 --vary acks=1,all --engine process --out results/sweep"
    assert run_harrow(folder, sweep)[0] in (0, 1)
    (run,) = (folder / "results" / "small").iterdir()
    run.rename(folder / "results" / "small" / "run")
    # Undamaged files work, so refusals in the tests are due to the damage.
    for words in ("trace results/small/run", "replay results/small/run", "sweep --report results/sweep"):
        assert run_harrow(folder, words)[0] in (0, 1)
    return folder


@pytest.mark.soak(size=10, rounds_in_test=1, rounds_in_soak=500)
def test_commands_survive_damaged_files(intact: Path, tmp_path: Path, numbers: range) -> None:
    for number in numbers:
        random = Random(number)
        folder = tmp_path / str(number)
        shutil.copytree(intact, folder, symlinks=True)
        is_sweep = number % 4 == 0
        damaged = folder / "results" / ("sweep" if is_sweep else "small/run")
        damage(damaged, random)
        words = random.choice(SWEEP_COMMANDS if is_sweep else RUN_COMMANDS)
        words = words.replace("WHOLE", str(intact / "results/small/run"))
        words = words.replace("RUN", "results/small/run").replace("SWEEP", "results/sweep")
        code, shown = run_harrow(folder, words)
        assert code in range(4), f"{number}: {words} ended with {code}:\n{shown}"
        assert "Traceback" not in shown, f"{number}: {words}:\n{shown}"
        odd = {char for char in shown if not char.isprintable() and char != "\n"}
        assert not odd, f"{number}: {words} printed {odd}:\n{shown}"
        assert "\n::error::injected" not in shown
        shutil.rmtree(folder)


@pytest.mark.parametrize(
    ("file", "words"),
    [
        ("results/small/run/trace.jsonl", "trace results/small/run"),
        ("results/small/run/history.jsonl", "check results/small/run/history.jsonl"),
        ("results/sweep/sweep.json", "sweep --report results/sweep"),
    ],
)
def test_a_truncated_file_is_refused(intact: Path, tmp_path: Path, file: str, words: str) -> None:
    folder = tmp_path / "cut"
    shutil.copytree(intact, folder, symlinks=True)
    text = (folder / file).read_bytes()
    (folder / file).write_bytes(text[: len(text) // 2])
    assert run_harrow(folder, words)[0] == 2
