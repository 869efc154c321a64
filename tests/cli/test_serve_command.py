"""`harrow serve` judges what a real program does on a cluster that fails."""

import json
import os
import re
import shlex
import signal
import socket
import subprocess
import sys
from contextlib import ExitStack
from pathlib import Path
from typing import Final

import pytest

from harrow.cli import exit_code
from harrow.cli.command_help import EXAMPLES
from tests.cli.conftest import Harrow
from tests.cli.test_watch_command import HIDE_CURSOR, SHOW_CURSOR, Terminal, shown_at_last
from tests.conftest import kill_after_test
from tests.patience import PATIENCE_S

pytest.importorskip("kafka")
confluent_kafka = pytest.importorskip("confluent_kafka")

_CALM: Final = """
name: calm
cluster: {brokers: 1, topics: [{name: t}]}
workload: {producers: [{name: app}], duration: 60s}
"""
_CAMPAIGNS: Final = {
    "served": _CALM,
    "lost": f"{_CALM}script: [{{at: 0s, do: {{network_ack_loss: {{client: app, count: 1}}}}}}]\n",
    "expecting": f"{_CALM}expect: {{verdict: violated}}\n",
    "mine": _CALM,
    "shared": "brokers: 2\ntopics: [{name: t}]\n",
    "shop": "brokers: 1\ntopics: [{name: t}]\n",
}
_SEND: Final = """
import os, sys
from confluent_kafka import Producer
options = dict(word.split("=") for word in sys.argv[1:])
producer = Producer({"bootstrap.servers": os.environ["KAFKA_BOOTSTRAP_SERVERS"], "client.id": "app", **options})
producer.produce("t", b"v")
assert producer.flush(PATIENCE_S) == 0
print("the record is", "sent", flush=True)
""".replace("PATIENCE_S", str(PATIENCE_S))
_SEND_AND_FAIL: Final = _SEND + "raise SystemExit(9)\n"
_SEND_AND_WAIT: Final = _SEND + "import signal; signal.sigwait([signal.SIGUSR1])\n"


@pytest.fixture
def folder(folder: Path) -> Path:
    """Return a folder with campaigns that can be served."""
    for name, text in _CAMPAIGNS.items():
        (folder / f"{name}.yaml").write_text(text, encoding="utf-8")
    return folder


def python(program: str, *arguments: str) -> list[str]:
    return ["--", sys.executable, "-c", program, *arguments]


def served(
    processes: ExitStack,
    folder: Path,
    environment: dict[str, str],
    *arguments: str,
    stdin: int = subprocess.DEVNULL,
) -> subprocess.Popen[str]:
    """Start to serve, and return the process."""
    process = subprocess.Popen(
        [sys.executable, "-m", "harrow", "serve", *arguments],
        cwd=folder,
        env=environment,
        stdin=stdin,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    return kill_after_test(processes, process)


def test_a_program_is_judged(harrow: Harrow) -> None:
    done = harrow("serve", "served.yaml", *python(_SEND))
    assert (done.returncode, done.stderr) == (exit_code.OK, "")
    assert "the record is sent\n" in done.stdout
    assert "✓ held" in done.stdout
    assert "as expected" in done.stdout


def test_service_levels_follow_the_verdict(harrow: Harrow) -> None:
    output = harrow("serve", "served.yaml", *python(_SEND)).stdout
    lines = output.partition("✓ held")[2].splitlines()
    assert any(line.split() == ["sends", "1", "sent:", "1", "acked"] for line in lines)
    assert any(line.strip().startswith("time to ack ") for line in lines)


def test_a_fault_strikes_a_real_client(harrow: Harrow) -> None:
    done = harrow("serve", "lost.yaml", "--format", "json", *python(_SEND))
    (run,) = json.loads(done.stdout)["runs"]
    assert (done.returncode, run["verdict"]) == (exit_code.OK, "held")
    assert [fault["fault"] for fault in run["faults"]] == ["network_ack_loss"]


def test_a_program_that_sends_nothing_leaves_the_verdict_open(harrow: Harrow) -> None:
    done = harrow("serve", "served.yaml", *python("pass"))
    assert done.returncode == exit_code.INCONCLUSIVE
    assert "nothing was tried: no record was sent" in done.stdout


def test_the_exit_code_of_a_failing_program_wins(harrow: Harrow) -> None:
    for campaign in ("served.yaml", "expecting.yaml"):
        done = harrow("serve", campaign, *python(_SEND_AND_FAIL))
        assert done.returncode == 9
        assert "\nexit 9: the exit code of the program\n" in done.stdout
    assert harrow("serve", "expecting.yaml", *python(_SEND)).returncode == exit_code.BROKEN
    assert harrow("serve", "served.yaml", *python("import os; os.kill(os.getpid(), 9)")).returncode == 128 + 9


@pytest.mark.parametrize("output_format", ["json", "ndjson", "junit", "github"])
def test_the_output_of_a_program_is_kept_out_of_a_document(harrow: Harrow, output_format: str) -> None:
    done = harrow("serve", "served.yaml", "--format", output_format, *python(_SEND))
    assert done.returncode == exit_code.OK
    assert "the record is sent" in done.stderr
    assert "the record is sent" not in done.stdout
    if output_format == "json":
        (run,) = json.loads(done.stdout)["runs"]
        assert (run["verdict"], run["target"]["kind"]) == ("held", "served")


def test_addresses_replace_the_placeholder_in_arguments(harrow: Harrow) -> None:
    program = "import os, sys; assert sys.argv[1] == 'at:' + os.environ['KAFKA_BOOTSTRAP_SERVERS']"
    done = harrow("serve", "served.yaml", *python(program, "at:{bootstrap}"))
    assert (done.returncode, done.stderr) == (exit_code.INCONCLUSIVE, "")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["servd.yaml"], "servd.yaml: no such file or folder"),
        (["servd"], "no file, folder or campaign that ships is called `servd`"),
        (["calm.yaml"], "send: only the campaign's own clients do that"),
        (["served.yaml", "--variant", "none"], "no campaign here has a variant `none`"),
        (["shop.yaml", "--variant", "none"], "no campaign here has a variant `none`"),
        (["shared.yaml", "--port", "65535"], "cannot listen on 127.0.0.1:65536: the last port is 65535"),
        (["served.yaml", "--host", "::"], "name one of this machine"),
        (["served.yaml", "--host", "nowhere.invalid"], "cannot listen on nowhere.invalid"),
        (["served.yaml", "--until-eof", "--", "true"], "has no meaning with a program"),
        (["served.yaml", "--control", "70000"], "Invalid value for '--control'"),
        (["wrong.yaml"], "wrong.yaml:2:8: "),
        (["served.yaml", "--", "./no-such-program"], "cannot start ./no-such-program: No such file"),
    ],
)
def test_a_mistake_is_reported_before_anything_runs(
    harrow: Harrow, arguments: list[str], message: str
) -> None:
    done = harrow("serve", *arguments)
    assert (done.returncode, done.stdout) == (exit_code.USAGE, "")
    assert message in done.stderr
    assert "Traceback" not in done.stderr


def test_a_port_in_use_is_named(harrow: Harrow) -> None:
    with socket.create_server(("127.0.0.1", 0)) as used:
        port = str(used.getsockname()[1])
        done = harrow("serve", "served.yaml", "--port", port, *python(_SEND))
        controlled = harrow("serve", "served.yaml", "--control", port, *python(_SEND))
    assert (done.returncode, done.stdout) == (exit_code.USAGE, "")
    assert f"cannot listen on 127.0.0.1:{port}: Address already in use" in done.stderr
    assert (controlled.returncode, controlled.stderr) == (done.returncode, done.stderr)


@pytest.mark.skipif(os.name == "nt", reason="signals are a POSIX matter")
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_the_cluster_with_a_verdict(
    processes: ExitStack, folder: Path, environment: dict[str, str], number: signal.Signals
) -> None:
    process = served(processes, folder, environment, "served.yaml")
    assert process.stderr is not None
    servers = process.stderr.readline().strip().partition("bootstrap.servers=")[2]
    variables = {**environment, "KAFKA_BOOTSTRAP_SERVERS": servers}
    subprocess.run(python(_SEND)[1:], env=variables, check=True, timeout=PATIENCE_S)
    process.send_signal(number)
    output, errors = process.communicate(timeout=PATIENCE_S)
    assert (process.returncode, errors) == (exit_code.OK, "")
    assert "✓ held" in output


@pytest.mark.skipif(os.name == "nt", reason="signals are a POSIX matter")
def test_a_signal_ends_the_program_and_then_judges_it(
    processes: ExitStack, folder: Path, environment: dict[str, str]
) -> None:
    process = served(processes, folder, environment, "served.yaml", *python(_SEND_AND_WAIT))
    assert process.stdout is not None
    assert process.stdout.readline() == "the record is sent\n"
    process.terminate()
    output, errors = process.communicate(timeout=PATIENCE_S)
    assert (process.returncode, errors) == (exit_code.OK, "")
    assert "✓ held" in output


_CONTROL: Final = (
    _SEND
    + """
import json, urllib.request
request = urllib.request.Request(os.environ["HARROW_CONTROL"] + "/judge", method="POST")
with urllib.request.urlopen(request) as response:
    (run,) = json.load(response)["runs"]
print("the verdict is", run["verdict"])
"""
)


def test_a_program_may_ask_for_its_verdict(harrow: Harrow) -> None:
    done = harrow("serve", "served.yaml", "--control", "0", "--format", "json", *python(_CONTROL))
    assert done.returncode == exit_code.OK
    assert "the verdict is held\n" in done.stderr
    assert json.loads(done.stdout)["verdict"] == "held"


@pytest.mark.skipif(os.name == "nt", reason="signals are a POSIX matter")
def test_a_verdict_that_another_process_asks_for_ends_the_cluster(
    processes: ExitStack, folder: Path, environment: dict[str, str]
) -> None:
    process = served(processes, folder, environment, "served.yaml", "--control", "0")
    assert process.stderr is not None
    control, servers = (process.stderr.readline().strip().partition("=")[2] for _ in range(2))
    variables = {**environment, "KAFKA_BOOTSTRAP_SERVERS": servers, "HARROW_CONTROL": control}
    subprocess.run(python(_CONTROL)[1:], env=variables, check=True, timeout=PATIENCE_S)
    output, errors = process.communicate(timeout=PATIENCE_S)
    assert (process.returncode, errors) == (exit_code.OK, "")
    assert "✓ held" in output


_WITH_CHILD: Final = f"""
import subprocess, sys
subprocess.Popen([sys.executable, "-c", "import signal; signal.sigwait([signal.SIGUSR1])"])
{_SEND_AND_WAIT}"""


@pytest.mark.skipif(os.name == "nt", reason="signals are a POSIX matter")
@pytest.mark.parametrize("program", [_SEND_AND_WAIT, _WITH_CHILD], ids=["alone", "with a child"])
def test_a_killed_cluster_leaves_no_program_behind(
    processes: ExitStack, folder: Path, environment: dict[str, str], program: str
) -> None:
    process = served(processes, folder, environment, "served.yaml", *python(program))
    assert process.stdout is not None
    assert process.stdout.readline() == "the record is sent\n"
    process.kill()
    # The program and its child have the other end of this pipe.
    assert process.stdout.read() == ""


@pytest.mark.skipif(os.name == "nt", reason="signals are a POSIX matter")
def test_a_killed_program_leaves_a_verdict(harrow: Harrow) -> None:
    done = harrow("serve", "served.yaml", *python(_SEND + "os.kill(os.getpid(), 9)\n"))
    assert done.returncode == 128 + 9
    assert "✓ held" in done.stdout


def test_a_cluster_may_end_with_its_standard_input(
    processes: ExitStack, folder: Path, environment: dict[str, str]
) -> None:
    process = served(processes, folder, environment, "served.yaml", "--until-eof", stdin=subprocess.PIPE)
    assert process.stderr is not None
    assert "bootstrap.servers=" in process.stderr.readline()
    output, errors = process.communicate(timeout=PATIENCE_S)
    assert (process.returncode, errors) == (exit_code.INCONCLUSIVE, "")
    assert "nothing was tried" in output


@pytest.mark.parametrize("typed", [typed for typed, _ in EXAMPLES["serve"] if " -- " in typed])
def test_the_examples_of_the_help_run(harrow: Harrow, typed: str) -> None:
    """The program may be over before a fault is due. Then the verdict is open."""
    options = shlex.split(typed.partition(" -- ")[0])[1:]
    done = harrow(*options, *python(_SEND))
    assert done.stderr == ""
    assert done.returncode in (exit_code.OK, exit_code.INCONCLUSIVE)


@pytest.mark.parametrize(
    "arguments",
    [
        ("lost.yaml", "--seed", "3", "--time-scale", "2", "--unique", "value"),
        ("served.yaml", "--set", "kafka=4.3", "--set", "log.segment.bytes=1000"),
        ("shop.yaml",),
    ],
    ids=" ".join,
)
def test_a_run_is_repeated_without_its_clients(
    harrow: Harrow, folder: Path, arguments: tuple[str, ...]
) -> None:
    assert harrow("serve", *arguments, *python(_SEND)).returncode == exit_code.OK
    for file in folder.glob("*.yaml"):
        file.unlink()
    replayed = harrow("replay", "results/latest")
    assert (replayed.returncode, replayed.stderr) == (exit_code.OK, "")
    same = r"\w+, seed \d: the same \d+ events as recorded, and the same \d+ answers to clients \([0-9a-f]{16}\)\n"
    assert re.fullmatch(same, replayed.stdout)
    assert harrow("trace", "results/latest").returncode == exit_code.OK
    assert harrow("diff", "results/latest").returncode == exit_code.OK


def test_a_repeated_run_names_the_request_with_another_answer(harrow: Harrow, folder: Path) -> None:
    harrow("serve", "served.yaml", *python(_SEND))
    campaign = folder / "results" / "latest" / "campaign.yaml"
    campaign.write_text(
        campaign.read_text(encoding="utf-8").replace("name: t}", "name: u}"), encoding="utf-8"
    )
    replayed = harrow("replay", "results/latest")
    assert replayed.returncode == exit_code.BROKEN
    shown = re.search(
        r"the answer to request \d+ of connection \d+ \(Metadata version \d+, correlation id \d+, "
        r"client `app`\) differs, at \d+\.\d{6}s:\n    recorded  (.+)\n    now       (.+)\n",
        replayed.stdout,
    )
    assert shown is not None, replayed.stdout
    assert shown[1] != shown[2]
    document = json.loads(harrow("replay", "results/latest", "--format", "json").stdout)
    assert shown[1] == document["answers"]["difference"]["recorded"]


def test_a_damaged_recording_is_named_with_its_place(harrow: Harrow, folder: Path) -> None:
    harrow("serve", "served.yaml", *python(_SEND))
    recording = folder / "results" / "latest" / "requests.bin"
    recording.write_bytes(recording.read_bytes()[:-1])
    replayed = harrow("replay", "results/latest")
    assert (replayed.returncode, replayed.stdout) == (exit_code.USAGE, "")
    assert re.search(r"requests\.bin: byte \d+: the recording is cut off within this block", replayed.stderr)


_TWO_LINES: Final = _SEND.replace('"the record is", "sent"', '"the record", "is sent"') + (
    "print('and the program ends', file=sys.stderr, flush=True)\n"
)


def test_what_a_program_prints_follows_below_the_view(on_terminal: Terminal) -> None:
    code, shown = on_terminal("serve", "served.yaml", "--watch", "--no-color", *python(_TWO_LINES))
    lines = shown_at_last(shown)
    assert code == exit_code.OK
    view, printed = lines.index("what happened"), lines.index("the record is sent")
    assert view < printed
    assert lines[printed + 1] == "and the program ends"
    assert printed < lines.index("calm")
    assert any(line.startswith("records  1 sent, 1 acked, 0 read") for line in lines)
    assert max(map(len, lines)) <= 80
    assert shown.rindex(SHOW_CURSOR) > shown.rindex(HIDE_CURSOR)


def test_ctrl_c_ends_a_watched_cluster_and_restores_the_terminal(on_terminal: Terminal) -> None:
    code, shown = on_terminal("serve", "served.yaml", "--watch", interrupt_at="what happened")
    assert code == exit_code.INCONCLUSIVE
    assert shown.rindex(SHOW_CURSOR) > shown.rindex(HIDE_CURSOR)
    assert "bootstrap.servers=" in shown
    assert any("nothing was tried" in line for line in shown_at_last(shown))


def test_without_a_terminal_there_is_no_view(harrow: Harrow) -> None:
    done = harrow("serve", "served.yaml", "--watch", *python(_SEND))
    assert (done.returncode, done.stdout) == (exit_code.USAGE, "")
    assert "standard error is not a terminal" in done.stderr
