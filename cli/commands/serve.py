"""`harrow serve`: lets real clients use a modelled cluster, and judges what they saw."""

import os
import shlex
import signal
import sys
from collections.abc import Mapping, Sequence
from contextlib import ExitStack, closing, nullcontext, suppress
from http import HTTPStatus
from pathlib import Path
from tempfile import TemporaryFile
from threading import Event, Thread
from typing import TYPE_CHECKING, Any, Final

import typer

from harrow.campaigns.language.loader import Campaign, plan_without_work
from harrow.campaigns.language.plan import Plan
from harrow.campaigns.language.plan_file import campaign_text
from harrow.campaigns.language.spelling import CLUSTER_OPTION
from harrow.campaigns.record.report import BASE, document
from harrow.campaigns.run.required_probes import as_only_run
from harrow.campaigns.run.run_result import RunResult
from harrow.campaigns.run.runner import Run
from harrow.campaigns.storage.location import LocalLocation
from harrow.cli.commands.run_selection import Selection, check_variants, load_all, print_notes, select_one
from harrow.cli.commands.run_tally import FinishedRun, RunPrinter, SeveralPrinters, Tally
from harrow.cli.console import message_console, say
from harrow.cli.held_output import HeldOutput
from harrow.cli.interrupts import Interrupts
from harrow.cli.options import need_terminal, refuse
from harrow.cli.render.run_formats import printer_of
from harrow.cli.requests.serve import ServeRequest
from harrow.cli.session import Refusal, data, junit_file, need_writable, note
from harrow.cluster_model.lazy_dataclass import replace
from harrow.live_cluster.serve.answers.plain_login import read_users
from harrow.live_cluster.serve.client_program import ClientProgram
from harrow.live_cluster.serve.contents.record_identity import parse_identity
from harrow.live_cluster.serve.ports.control_port import ControlAnswer, ControlPort
from harrow.live_cluster.serve.ports.listening import CannotListenError
from harrow.live_cluster.serve.recording.request_recording import RequestRecording
from harrow.live_cluster.serve.run_control import handler_after
from harrow.live_cluster.serve.served_brokers import CONNECTIONS_MAX
from harrow.live_cluster.serve.served_environment import obstacles
from harrow.live_cluster.serve.served_run import serve
from harrow.live_cluster.serve.served_target import ServedTarget
from harrow.live_cluster.wire.codec import Address

if TYPE_CHECKING:
    from harrow.campaigns.story.live_playback import LivePlayback

_STDIN: Final = 0
_READ_BYTES: Final = 1 << 16
_LOOPBACK: Final = frozenset({"127.0.0.1", "localhost"})
_WILDCARDS: Final = frozenset({"0.0.0.0", "::", ""})  # noqa: S104 - they are refused


def session(request: ServeRequest) -> int:
    selection = _selection(request)
    (plan,) = selection.plans
    _check(request, plan)
    print_notes(request, [selection.campaign])
    if request.host not in _LOOPBACK and request.users is None:
        note(request, f"everyone who can reach {request.host} can use this cluster; nobody has to log in")
    with Interrupts() as interrupts, ExitStack() as stack:
        # Scripts serve in the background, and end that with SIGTERM or SIGINT.
        interrupts.handle_also(signal.SIGTERM)
        console = stack.enter_context(data(request))
        write_junit = stack.enter_context(junit_file(request))
        printer: RunPrinter = printer_of(request, console, several_seeds=False, with_service=True)
        if request.junit is not None:
            from harrow.cli.ci.run_suites import RunSuites

            printer = SeveralPrinters((printer, RunSuites(lambda suites, _: write_junit(lambda: suites))))
        served = _ServedCluster(request, plan, interrupts, stack)
        with interrupts.deferred():
            result = as_only_run(served.serve())
            run = _finished(request, selection, result, served.recording)
            tally = _print(selection, run, printer, served.program_code)
            served.answer(document([run.as_mapping()], tally.required.unreached()))
    return served.program_code or tally.exit_code()


class _ServedCluster:
    """A cluster with the program, the control port and the view that belong to it.

    *stack* ends what this starts.
    """

    def __init__(self, request: ServeRequest, plan: Plan, interrupts: Interrupts, stack: ExitStack) -> None:
        self._request, self._plan = request, plan
        self._interrupts, self._stack = interrupts, stack
        self._held = stack.enter_context(closing(HeldOutput(sys.stderr))) if request.watch else None
        self.program = _program(request, plan, self._held)
        self._view = _View(request, plan) if request.watch else None
        self._control = _control(request, stack)
        self.recording = None if request.no_results else _recording(request, stack)
        self._has_ended = _end_of_input() if request.until_eof else Event()

    @property
    def program_code(self) -> int:
        """The exit code of the program; 0 without one."""
        return 0 if self.program is None else self.program.code

    def serve(self) -> RunResult:
        """Serve the cluster until its clients have used it long enough."""
        with nullcontext() if self._view is None else self._view.watch:
            result = self._served()
        if self._held is not None:
            self._held.release()
        return result

    def answer(self, verdict: Mapping[str, Any]) -> None:
        """Answer requests for the verdict as long as the program runs."""
        if self._control is None:
            return
        answer = ControlAnswer(HTTPStatus.OK, verdict)
        self._control.answer_waiting(answer)
        self._control.handler = handler_after(answer)
        self._control.serve_while(lambda: _runs(self.program, is_interrupted=self._is_interrupted()))

    def _served(self) -> RunResult:
        request, plan = self._request, self._plan
        brokers = len(plan.cluster.brokers)
        first = request.port
        ports = [0] * brokers if first is None else [*range(first, first + brokers)]
        try:
            return serve(
                plan,
                request.seed or 0,
                host=request.host,
                ports=ports,
                time_scale=request.time_scale,
                on_ready=self._on_ready,
                is_over=self._is_over,
                program=self.program,
                control=self._control,
                unique=request.unique,
                connections_max=request.connections_max or CONNECTIONS_MAX,
                note_limit=self._note_limit,
                users=None if request.users is None else read_users(request.users),
                recording=self.recording,
            )
        except CannotListenError as error:
            raise Refusal(str(error)) from None

    def _note_limit(self, connections: int) -> None:
        message = f"{connections} connections are open; harrow closes new ones"
        note(self._request, f"{message} (see --max-connections and the limit of open files)")

    def _on_ready(self, addresses: Sequence[Address]) -> None:
        servers = ",".join(f"{host}:{port}" for host, port in addresses)
        if self.program is not None:
            self._stack.callback(self.program.stop)
            self.program.control_url = "" if self._control is None else self._control.url
            _start(self.program, servers)
            return
        messages = message_console(no_color=self._request.no_color)
        if self._control is not None:
            say(messages, f"control={self._control.url}")
        say(messages, f"bootstrap.servers={servers}")

    def _is_over(self, run: Run) -> bool:
        over = self._has_reached_end(run)
        if self._view is not None:
            self._view.show(run, is_last=over)
        return over

    def _has_reached_end(self, run: Run) -> bool:
        if self.program is not None:
            return _has_ended(run, self._plan, self.program, is_interrupted=self._is_interrupted())
        # Whoever controls the cluster or its input also decides when it ends.
        is_controlled = self._control is not None or self._request.until_eof
        return self._is_interrupted() or (not is_controlled and _has_ended_script(run))

    def _is_interrupted(self) -> bool:
        return self._interrupts.is_pending() or self._has_ended.is_set()


def _check(request: ServeRequest, plan: Plan) -> None:
    """Refuse what cannot be served."""
    if request.watch:
        need_terminal()
    if request.command:
        refuse({"--until-eof": request.until_eof}, "has no meaning with a program: harrow ends with it")
    if request.host in _WILDCARDS:
        message = "brokers must tell clients an address: name one of this machine"
        raise typer.BadParameter(message, param_hint="--host")
    if reasons := tuple(dict.fromkeys(obstacles(plan, has_program=bool(request.command)))):
        raise Refusal(f"nothing was run: {request.campaign} cannot be served", *reasons)
    if request.unique is not None:
        try:
            parse_identity(request.unique)
        except ValueError as error:
            raise typer.BadParameter(str(error), param_hint="--unique") from None
    if not request.no_results:
        need_writable(request.results)


def _recording(request: ServeRequest, stack: ExitStack) -> RequestRecording:
    """Return a recording whose file has no name, so that a killed harrow leaves nothing behind.

    It is beside the results, so that their disk has room for it.
    """
    folder = None
    if isinstance(request.results, LocalLocation):
        folder = request.results.path
        folder.mkdir(parents=True, exist_ok=True)

    def note_drop(reason: str) -> None:
        note(request, f"the recording is dropped, so this run cannot be replayed: {reason}")

    return RequestRecording(stack.enter_context(TemporaryFile(dir=folder)), on_drop=note_drop)


def _control(request: ServeRequest, stack: ExitStack) -> ControlPort | None:
    if request.control is None:
        return None
    try:
        return stack.enter_context(closing(ControlPort(request.control)))
    except CannotListenError as error:
        raise Refusal(str(error)) from None


def _end_of_input() -> Event:
    """Return an event that is set when standard input ends."""
    ended = Event()

    def read() -> None:
        # Not `sys.stdin`: Python could not exit while a thread waits for its lock.
        with suppress(OSError):
            while os.read(_STDIN, _READ_BYTES):
                pass
        ended.set()

    Thread(target=read, daemon=True).start()
    return ended


def _runs(program: ClientProgram | None, *, is_interrupted: bool) -> bool:
    """Return whether a program runs. After an interrupt, ask it to end."""
    if program is None or not program.is_running:
        return False
    if is_interrupted:
        program.end()
    return True


class _View:
    """What `--watch` shows of a served cluster."""

    def __init__(self, request: ServeRequest, plan: Plan) -> None:
        from harrow.cli.watch.watch_live import LiveWatch

        speed = "" if request.time_scale == 1 else f", {request.time_scale:g}x"
        self.watch = LiveWatch(message_console(no_color=request.no_color), speed=speed)
        self._plan, self._seed = plan, request.seed or 0
        self._playback: LivePlayback | None = None

    def show(self, run: Run, *, is_last: bool) -> None:
        """Show the present moment, unless the last one was shown just now."""
        target = run.target
        assert isinstance(target, ServedTarget)
        if self._playback is None:
            from harrow.campaigns.story.live_playback import LivePlayback

            self._playback = LivePlayback(self._plan, self._seed, target.trace, target.cluster.history)
        if is_last or self.watch.is_due():
            self.watch.draw(self._playback, target.now_us, target.real_clients.connected_names())


def _program(request: ServeRequest, plan: Plan, held: HeldOutput | None) -> ClientProgram | None:
    """Return the user's program. If there is a view, *held* gets what it writes on a terminal."""
    if not request.command:
        return None
    # Only a program that no fault strikes may share the terminal with harrow.
    is_struck = any(obstacles(plan, has_program=False))
    has_terminal = os.name != "posix" or (sys.stdin is not None and sys.stdin.isatty())
    output, errors = None if request.output_format == "table" else sys.stderr, None
    if held is not None:
        errors = held.file
        output = errors if (output or sys.stdout).isatty() else output
    return ClientProgram(request.command, output, own_group=is_struck or not has_terminal, errors=errors)


def _start(program: ClientProgram, servers: str) -> None:
    program.servers = servers
    try:
        program.start()
    except OSError as error:
        raise Refusal(f"cannot start {program.command[0]}: {error.strerror or error}") from None


def _has_ended_script(run: Run) -> bool:
    return run.script.steps_taken > 0 and run.script.is_finished()


def _has_ended(run: Run, plan: Plan, program: ClientProgram, *, is_interrupted: bool) -> bool:
    """Return whether a program has ended.

    If a fault has killed it, it may start again while the campaign's workload lasts. After an
    interrupt, the cluster still serves the program until it has ended.
    """
    if _runs(program, is_interrupted=is_interrupted):
        return False
    return is_interrupted or not (program.is_killed and run.target.now_us < plan.duration_us)


def _selection(request: ServeRequest) -> Selection:
    """Return the only plan to serve: that of a campaign, or of a cluster file without faults."""
    path = Path(request.campaign)
    if path.is_file() and path in load_all([path], ())[1]:
        check_variants([request.variant or BASE], [BASE])
        calm = plan_without_work((f"{CLUSTER_OPTION}={path}", *(request.overrides or ())))
        plan = replace(calm, campaign=path.stem)
        text = campaign_text(plan)
        campaign = Campaign(name=path.stem, description="", path=path, plans=(plan,), text=text)
        return Selection(campaign=campaign, argument=request.campaign, plans=(plan,))
    return select_one(request.campaign, request.overrides, request.variant)


def _finished(
    request: ServeRequest, selection: Selection, result: RunResult, recording: RequestRecording | None
) -> FinishedRun:
    """Return the run with its command line and its files, which this writes."""
    options = {
        "--seed": [str(result.seed)],
        "--variant": [] if request.variant is None else [request.variant],
        "--cluster": [] if request.cluster is None else [str(request.cluster)],
        "--set": [text for text in request.overrides or () if not text.startswith(f"{CLUSTER_OPTION}=")],
        "--unique": [] if request.unique is None else [request.unique],
        "--time-scale": [] if request.time_scale == 1 else [f"{request.time_scale:g}"],
    }
    words = [word for option, values in options.items() for value in values for word in (option, value)]
    command = ["--", *request.command] if request.command else []
    reproduce = shlex.join(["harrow", "serve", selection.argument, *words, *command])
    run = FinishedRun(result=result, reproduce=reproduce, file=selection.campaign.path, folder=None)
    if recording is None:
        return run
    from harrow.campaigns.record.campaign_copy import campaign_copy
    from harrow.campaigns.record.results_folder import write_run_to

    text = campaign_copy(selection.campaign, selection.plans[0], result.seed, request.overrides or ())
    stream = None if recording.is_dropped else recording.stream
    return replace(run, folder=write_run_to(request.results, result, run.as_mapping(), text, stream))


def _print(selection: Selection, run: FinishedRun, printer: RunPrinter, program_code: int) -> Tally:
    wall_s = (run.result.wall_ms or 0) / 1_000
    tally = Tally(planned=1, wall_s=wall_s, program_code=program_code)
    printer.begin(selection)
    tally.add(run)
    printer.add(run)
    printer.end()
    printer.finish(tally)
    return tally
