"""The journal of a user's cluster records faults, and healing undoes them."""

import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from harrow.live_cluster.processes.ports import LOOPBACK
from harrow.live_cluster.target.control_plane import CannotBeDoneError
from harrow.live_cluster.users import healing, user_broker
from harrow.live_cluster.users.command import CommandError, CommandName, FilledCommand
from harrow.live_cluster.users.healing import Healing, HealingError
from harrow.live_cluster.users.journal import Journal, JournalError, JournalledFault, journals
from harrow.live_cluster.users.target_file import ALLOWED, load_target_file
from harrow.live_cluster.users.user_broker import FaultCommands, UserBroker, UserLinks
from harrow.live_cluster.wire.survey import BrokerNode
from tests.live_cluster.users.target_files import TEXT, notes, write_target_file
from tests.plain_environment import PYTHONPATH, plain_environment

BROKERS = {broker: BrokerNode(id=broker, host=LOOPBACK, port=1, rack=None) for broker in (1, 2)}
EVERYTHING = frozenset(map(str, ALLOWED))


def journal_in(folder: Path) -> Journal:
    return Journal.of(folder / "state", "some cluster", folder / "cluster.yaml")


def commands_in(
    folder: Path, journal: Journal, text: str = TEXT, permitted: frozenset[str] = EVERYTHING
) -> FaultCommands:
    file = load_target_file(write_target_file(folder, text))
    return FaultCommands(file, BROKERS, journal, folder / "log", permitted)


def heal(folder: Path, journal: Journal) -> None:
    file = load_target_file(folder / "cluster.yaml")
    Healing(journal, file, folder / "log", lambda _: None).heal()


def test_an_undone_fault_is_removed_from_the_journal(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with journal_in(tmp_path) as journal:
        broker = UserBroker(0, 1, commands_in(tmp_path, journal))
        broker.pause()
        assert (broker.is_paused, [str(fault) for fault in journal.in_force()]) == (
            True,
            ["pause of broker 1"],
        )
        broker.resume()
        assert (broker.is_paused, journal.in_force()) == (False, [])
        broker.kill()
        assert (broker.is_running, [fault.command for fault in journal.in_force()]) == (
            False,
            [CommandName.KILL],
        )
        broker.start()
        # The broker does not answer yet, so healing would start it again.
        assert (broker.is_running, [fault.command for fault in journal.in_force()]) == (
            True,
            [CommandName.KILL],
        )
        monkeypatch.setattr(FaultCommands, "answers", lambda *_: True)
        broker.poll()
        assert journal.in_force() == []
    assert notes(tmp_path) == ["pause 1", "resume 1", "kill 1", "start 1"]
    assert list(journals(tmp_path / "state")) == []


def test_killing_a_paused_broker_ends_the_pause(tmp_path: Path) -> None:
    with journal_in(tmp_path) as journal:
        broker = UserBroker(0, 1, commands_in(tmp_path, journal))
        broker.pause()
        broker.kill()
        assert [fault.command for fault in journal.in_force()] == [CommandName.KILL]
        broker.start()
    assert notes(tmp_path) == ["pause 1", "kill 1", "start 1"]


def test_a_stopping_broker_runs_until_its_command_returns(tmp_path: Path) -> None:
    text = TEXT.replace("stop: echo stop {broker} >>notes", "stop: while [ ! -e go ]; do sleep 0.01; done")
    with journal_in(tmp_path) as journal:
        broker = UserBroker(0, 1, commands_in(tmp_path, journal, text))
        broker.stop()
        states = [broker.is_running]
        (tmp_path / "go").touch()
        while states[-1]:
            time.sleep(0.01)
            broker.poll()
            states.append(broker.is_running)
        assert states[0]
        broker.start()
    assert notes(tmp_path) == ["start 1"]


def test_a_link_is_cut_once_and_restored_with_the_last_cut(tmp_path: Path) -> None:
    with journal_in(tmp_path) as journal:
        links = UserLinks(commands_in(tmp_path, journal), lambda broker: broker + 1)
        links.cut(0, 1)
        links.cut(0, 1)
        links.cut(1, 0)
        links.restore(0, 1)
        assert notes(tmp_path) == ["cut 1 2", "cut 2 1"]
        links.restore(0, 1)
        links.restore_all()
        links.restore_all()
    assert notes(tmp_path) == ["cut 1 2", "cut 2 1", "restore 1 2", "restore 2 1"]


def test_a_forbidden_command_does_not_run(tmp_path: Path) -> None:
    with journal_in(tmp_path) as journal:
        broker = UserBroker(0, 1, commands_in(tmp_path, journal, permitted=frozenset({"pause"})))
        broker.pause()
        with pytest.raises(CannotBeDoneError, match="kill is not allowed on this cluster"):
            broker.kill()
        broker.resume()
    assert notes(tmp_path) == ["pause 1", "resume 1"]


def test_a_fault_is_on_disk_before_its_command_runs(tmp_path: Path) -> None:
    text = TEXT.replace("pause: echo pause {broker} >>notes", "pause: cat state/*.journal >seen")
    with journal_in(tmp_path) as journal:
        broker = UserBroker(0, 1, commands_in(tmp_path, journal, text))
        broker.pause()
        assert '"deed": "pause"' in (tmp_path / "seen").read_text()
        broker.resume()


@pytest.mark.parametrize(
    ("command", "message"),
    [
        ("echo no such thing; exit 3", r"failed with 3: no such thing"),
        ("{run: sleep 600, timeout: 50ms}", r"sleep 600 took longer than 0.05 s"),
        ("[/nonexistent/program]", r"/nonexistent/program failed with 127: .*not found"),
    ],
)
def test_a_fault_of_a_failed_command_is_undone(tmp_path: Path, command: str, message: str) -> None:
    text = TEXT.replace("pause: echo pause {broker} >>notes", f"pause: {command}")
    with journal_in(tmp_path) as journal:
        broker = UserBroker(0, 1, commands_in(tmp_path, journal, text))
        with pytest.raises(CommandError, match=message):
            broker.pause()
        heal(tmp_path, journal)
    assert notes(tmp_path) == ["resume 1"]


def test_a_second_process_on_the_same_cluster_is_refused(tmp_path: Path) -> None:
    with journal_in(tmp_path), pytest.raises(JournalError, match="another harrow process uses this cluster"):
        journal_in(tmp_path)
    with journal_in(tmp_path):
        pass


KILLED = """
import os, signal, sys
from pathlib import Path
from tests.live_cluster.users.test_journal import commands_in, journal_in
from harrow.live_cluster.users.user_broker import UserBroker, UserLinks
folder = Path(sys.argv[1])
journal = journal_in(folder)
commands = commands_in(folder, journal)
UserLinks(commands, lambda broker: broker).cut(1, 2)
UserBroker(1, 1, commands).pause()
journal.record_topic("harrow-x-t")
os.kill(os.getpid(), signal.SIGKILL)
"""


def test_faults_of_a_killed_process_are_healed(tmp_path: Path) -> None:
    root = Path(__file__).parents[3]
    path = os.pathsep.join((PYTHONPATH, str(root)))
    ended = subprocess.run(
        [sys.executable, "-c", KILLED, tmp_path],
        cwd=root,
        env={**os.environ, **plain_environment(), "PYTHONPATH": path},
        check=False,
    )
    assert ended.returncode == -9
    (path_of_journal,) = journals(tmp_path / "state")
    with Journal(path_of_journal, Path(), Path()) as journal:
        assert journal.cluster_file == tmp_path / "cluster.yaml"
        assert [str(fault) for fault in journal.in_force()] == [
            "pause of broker 1",
            "cut of the link from broker 1 to broker 2",
        ]
        assert journal.topics() == ["harrow-x-t"]
        journal.record_deletion("harrow-x-t")
        heal(tmp_path, journal)
        assert journal.in_force() == []
    assert notes(tmp_path) == ["cut 1 2", "pause 1", "restore 1 2", "resume 1"]
    assert not path_of_journal.exists()


def test_a_torn_line_in_the_journal_is_ignored(tmp_path: Path) -> None:
    with journal_in(tmp_path) as journal:
        journal.record_fault(CommandName.PAUSE, 1, (LOOPBACK, 1), FilledCommand(("true",), 1.0))
        path = journal.path
    with path.open("a") as file:
        file.write('{"in_force": {"number": 2, "deed": "ki')
    with Journal(path, Path(), Path()) as journal:
        assert [str(fault) for fault in journal.in_force()] == ["pause of broker 1"]
        # The next line does not continue the torn one.
        journal.record_topic("harrow-x-t")
    with Journal(path, Path(), Path()) as journal:
        assert (len(journal.in_force()), journal.topics()) == (1, ["harrow-x-t"])


@pytest.mark.parametrize("line", ["{", "[1]", '{"over": 7}', '{"in_force": {}}', '"\\ud800', "\x00"])
def test_a_damaged_journal_is_refused_and_kept(tmp_path: Path, line: str) -> None:
    with journal_in(tmp_path) as journal:
        journal.record_fault(CommandName.PAUSE, 1, (LOOPBACK, 1), FilledCommand(("true",), 1.0))
        path = journal.path
    with path.open("a") as file:
        file.write(f"{line}\n")
    before = path.read_bytes()
    with pytest.raises(JournalError, match=r"journal:3: the journal is damaged"):
        Journal(path, Path(), Path())
    assert path.read_bytes() == before


def test_the_journal_of_the_same_process_knows_the_pid_of_a_command(tmp_path: Path) -> None:
    """After Ctrl-C in the middle of a kill, a broker that still answers may yet be killed."""
    with journal_in(tmp_path) as journal:
        fault = journal.record_fault(CommandName.KILL, 1, (LOOPBACK, 1), FilledCommand(("true",), 1.0))
        journal.record_pid(fault, 4711)
        assert [each.pid for each in journal.in_force()] == [4711]
        journal.record_end(fault)


def test_a_command_does_nothing_unless_the_journal_has_its_process(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(_fault: JournalledFault, _pid: int) -> None:
        raise KeyboardInterrupt

    with journal_in(tmp_path) as journal:
        monkeypatch.setattr(journal, "record_pid", interrupted)
        with pytest.raises(KeyboardInterrupt):
            UserBroker(1, 1, commands_in(tmp_path, journal)).pause()
        assert [str(fault) for fault in journal.in_force()] == ["pause of broker 1"]
    assert not (tmp_path / "notes").exists()


def test_healing_does_not_wait_for_a_command_that_has_ended(tmp_path: Path) -> None:
    with journal_in(tmp_path) as journal:
        running = commands_in(tmp_path, journal).begin(CommandName.PAUSE, 1)
        # As after an interrupt, the exit code is never read.
        _until(lambda: notes(tmp_path) == ["pause 1"])
        heal(tmp_path, journal)
        assert journal.in_force() == []
        running.end()
    assert notes(tmp_path) == ["pause 1", "resume 1"]


def test_healing_leaves_the_exit_code_of_a_command_to_its_caller(
    tmp_path: Path,
) -> None:
    text = TEXT.replace("pause: echo pause {broker} >>notes", "pause: echo pause {broker} >>notes; exit 3")
    with journal_in(tmp_path) as journal:
        running = commands_in(tmp_path, journal, text).begin(CommandName.PAUSE, 1)
        heal(tmp_path, journal)
        assert journal.in_force() == []
        with pytest.raises(CommandError, match="failed with 3"):
            running.has_ended()


def test_healing_ends_clients_before_it_deletes_topics(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    done: list[str] = []
    monkeypatch.setattr(Healing, "_delete_topics", lambda _: done.append("topics"))
    with journal_in(tmp_path) as journal:
        Healing(journal, None, tmp_path / "log", lambda _: None).heal(lambda: done.append("clients"))
    assert done == ["clients", "topics"]


def test_a_failed_undo_stays_in_the_journal(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(healing, "_ANSWER_TIMEOUT_S", 0.0)
    text = TEXT.replace("resume: echo resume {broker} >>notes", "resume: exit 7")
    with journal_in(tmp_path) as journal:
        commands = commands_in(tmp_path, journal, text)
        UserLinks(commands, lambda broker: broker).cut(1, 2)
        UserBroker(1, 1, commands).pause()
        with pytest.raises(HealingError, match=r"pause of broker 1 is still in force: exit 7 failed with 7"):
            heal(tmp_path, journal)
        assert [str(fault) for fault in journal.in_force()] == ["pause of broker 1"]
        path = journal.path
    # A broker that cannot be resumed and does not answer may be dead.
    assert notes(tmp_path) == ["cut 1 2", "pause 1", "restore 1 2", *["start 1"] * 4]
    assert path.exists()


def test_healing_starts_a_killed_broker_until_it_answers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(healing, "_ANSWER_TIMEOUT_S", 0.0)
    with journal_in(tmp_path) as journal:
        UserBroker(1, 1, commands_in(tmp_path, journal)).kill()
        with pytest.raises(HealingError, match="succeeded, but the broker does not answer"):
            heal(tmp_path, journal)
        assert [fault.command for fault in journal.in_force()] == [CommandName.KILL]
    assert notes(tmp_path) == ["kill 1", *["start 1"] * 4]


def test_healing_resumes_a_paused_broker_before_it_waits_for_its_stop(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(healing, "_ANSWER_TIMEOUT_S", 0.0)
    text = TEXT.replace("stop: echo stop {broker} >>notes", "stop: while [ ! -e go ]; do sleep 0.01; done")
    text = text.replace("resume: echo", "resume: touch go; echo")
    with journal_in(tmp_path) as journal:
        broker = UserBroker(1, 1, commands_in(tmp_path, journal, text))
        broker.pause()
        broker.stop()
        # After an interrupt the exit code of the stop is never read.
        with pytest.raises(HealingError, match="the broker does not answer"):
            heal(tmp_path, journal)
        broker.poll()
        assert not broker.is_running
    assert notes(tmp_path) == ["pause 1", "resume 1", *["start 1"] * 4]


def _text_with_failing_resume(text: str = TEXT) -> str:
    return text.replace("resume: echo resume {broker} >>notes", "resume: echo no such process; exit 1")


def test_a_broker_that_died_while_paused_is_down_and_can_be_started(tmp_path: Path) -> None:
    with journal_in(tmp_path) as journal:
        broker = UserBroker(0, 1, commands_in(tmp_path, journal, _text_with_failing_resume()))
        broker.pause()
        broker.resume()
        assert (broker.is_running, broker.is_paused) == (False, False)
        assert [fault.command for fault in journal.in_force()] == [CommandName.KILL]
        broker.start()
    assert notes(tmp_path) == ["pause 1", "start 1"]


def test_a_failed_resume_of_a_live_broker_is_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(FaultCommands, "answers", lambda *_: True)
    with journal_in(tmp_path) as journal:
        broker = UserBroker(0, 1, commands_in(tmp_path, journal, _text_with_failing_resume()))
        broker.pause()
        with pytest.raises(CommandError, match=r"^resume of broker 1: .* failed with 1: no such process$"):
            broker.resume()
        assert [fault.command for fault in journal.in_force()] == [CommandName.PAUSE]


def test_a_failed_command_on_a_dead_broker_reports_that_it_does_not_answer(tmp_path: Path) -> None:
    text = TEXT.replace("kill: echo kill {broker} >>notes", "kill: exit 3")
    with journal_in(tmp_path) as journal:
        broker = UserBroker(0, 1, commands_in(tmp_path, journal, text))
        message = "^kill of broker 1: exit 3 failed with 3; broker 1 does not answer$"
        with pytest.raises(CommandError, match=message):
            broker.kill()


def test_healing_starts_a_broker_that_died_while_paused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with journal_in(tmp_path) as journal:
        UserBroker(0, 1, commands_in(tmp_path, journal, _text_with_failing_resume())).pause()
    # Another process heals from the journal alone.
    answers = iter([False, False])
    monkeypatch.setattr(Healing, "_answers", lambda *_: next(answers, True))
    with journal_in(tmp_path) as journal:
        heal(tmp_path, journal)
        assert journal.in_force() == []
    assert notes(tmp_path) == ["pause 1", "start 1"]


def test_without_a_start_command_the_user_has_to_start_a_dead_broker(tmp_path: Path) -> None:
    lines = [
        line for line in _text_with_failing_resume().splitlines() if not line.startswith(("  kill", "  st"))
    ]
    with journal_in(tmp_path) as journal:
        broker = UserBroker(0, 1, commands_in(tmp_path, journal, "\n".join(lines)))
        broker.pause()
        with pytest.raises(CommandError, match="broker 1 does not answer"):
            broker.resume()
        with pytest.raises(
            HealingError, match=r"broker 1 does not answer at 127.0.0.1:1: start it, and heal"
        ):
            heal(tmp_path, journal)
        assert [fault.command for fault in journal.in_force()] == [CommandName.PAUSE]


def test_a_broker_that_does_not_come_up_is_started_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(user_broker, "_POLL_INTERVAL_S", 0.0)
    monkeypatch.setattr(user_broker, "_START_MAX_S", 0.0)
    with journal_in(tmp_path) as journal:
        broker = UserBroker(0, 1, commands_in(tmp_path, journal))
        broker.kill()
        broker.start()
        broker.poll()
        broker.poll()
        monkeypatch.setattr(FaultCommands, "answers", lambda *_: True)
        broker.poll()
        broker.poll()
        assert journal.in_force() == []
    assert notes(tmp_path) == ["kill 1", *["start 1"] * 3]


def test_a_failed_stop_is_raised_at_the_next_poll(tmp_path: Path) -> None:
    text = TEXT.replace("stop: echo stop {broker} >>notes", "stop: exit 1")
    with journal_in(tmp_path) as journal:
        broker = UserBroker(0, 1, commands_in(tmp_path, journal, text))
        broker.stop()
        assert broker.is_running
        with pytest.raises(CommandError, match="exit 1 failed with 1"):
            _poll_until_error(broker)


def test_restoring_an_uncut_link_does_nothing(tmp_path: Path) -> None:
    with journal_in(tmp_path) as journal:
        links = UserLinks(commands_in(tmp_path, journal), lambda broker: broker + 1)
        links.restore(0, 1)
        links.cut(0, 1)
        links.restore_all()
    assert notes(tmp_path) == ["cut 1 2", "restore 1 2"]


def test_a_journal_finds_the_cluster_file_after_the_working_folder_is_deleted(
    tmp_path: Path,
) -> None:
    start_folder = tmp_path / "working-folder"
    start_folder.mkdir()
    write_target_file(tmp_path)
    with Journal.of(tmp_path / "state", "some cluster", start_folder / ".." / "cluster.yaml") as journal:
        UserBroker(0, 1, commands_in(tmp_path, journal)).pause()
    start_folder.rmdir()
    with Journal(journal.path, Path(), Path()) as again:
        assert (again.cluster_file, again.folder) == (tmp_path / "cluster.yaml", tmp_path)
        heal(tmp_path, again)
    assert notes(tmp_path) == ["pause 1", "resume 1"]


def _poll_until_error(broker: UserBroker) -> None:
    while True:
        broker.poll()


def _until(holds: Callable[[], bool]) -> None:
    while not holds():
        time.sleep(0.01)
