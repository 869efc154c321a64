"""`harrow serve`: lets real clients use a modelled cluster, and judges what they saw."""

import os
import shlex
import signal
import sys
from collections.abc import Callable, Sequence
from contextlib import ExitStack, closing, suppress
from dataclasses import replace
from http import HTTPStatus
from pathlib import Path
from tempfile import TemporaryFile
from threading import Event, Thread
from typing import Final, TextIO

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
from harrow.cli.interrupts import Interrupts
from harrow.cli.options import refuse
from harrow.cli.render.run_formats import printer_of
from harrow.cli.requests.serve import ServeRequest
from harrow.cli.session import Refusal, data, junit_file, need_writable, note
from harrow.live_cluster.serve.client_program import ClientProgram
from harrow.live_cluster.serve.control_port import ControlAnswer, ControlPort
from harrow.live_cluster.serve.listening import CannotListenError
from harrow.live_cluster.serve.plain_login import read_users
from harrow.live_cluster.serve.record_identity import parse_identity
from harrow.live_cluster.serve.request_recording import RequestRecording
from harrow.live_cluster.serve.run_control import handler_after
from harrow.live_cluster.serve.served_brokers import CONNECTIONS_MAX
from harrow.live_cluster.serve.served_environment import obstacles
from harrow.live_cluster.serve.served_run import serve
from harrow.live_cluster.wire.codec import Address

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
        output = None if request.output_format == "table" else sys.stderr
        program = _program(request, plan, output)
        control = _control(request, stack)
        recording = None if request.no_results else _recording(request, stack)
        has_ended = _end_of_input() if request.until_eof else Event()

        def on_ready(addresses: Sequence[Address]) -> None:
            servers = ",".join(f"{host}:{port}" for host, port in addresses)
            if program is not None:
                stack.callback(program.stop)
                program.control_url = "" if control is None else control.url
                _start(program, servers)
                return
            messages = message_console(no_color=request.no_color)
            if control is not None:
                say(messages, f"control={control.url}")
            say(messages, f"bootstrap.servers={servers}")

        def is_interrupted() -> bool:
            return interrupts.is_pending() or has_ended.is_set()

        def is_over(run: Run) -> bool:
            if program is not None:
                return _has_ended(run, plan, program, is_interrupted=is_interrupted())
            # Whoever controls the cluster or its input also decides when it ends.
            is_controlled = control is not None or request.until_eof
            return is_interrupted() or (not is_controlled and _has_ended_script(run))

        with interrupts.deferred():
            result = as_only_run(
                _serve(
                    request,
                    plan,
                    on_ready,
                    is_over,
                    program,
                    control,
                    recording,
                )
            )
            run = _finished(request, selection, result, recording)
            tally = _print(selection, run, printer, 0 if program is None else program.code)
            if control is not None:
                verdict = ControlAnswer(
                    HTTPStatus.OK, document([run.as_mapping()], tally.required.unreached())
                )
                control.answer_waiting(verdict)
                control.handler = handler_after(verdict)
                control.serve_while(lambda: _runs(program, is_interrupted=is_interrupted()))
    return (0 if program is None else program.code) or tally.exit_code()


def _check(request: ServeRequest, plan: Plan) -> None:
    """Refuse what cannot be served."""
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
    return RequestRecording(stack.enter_context(TemporaryFile(dir=folder)))


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


def _program(request: ServeRequest, plan: Plan, output: TextIO | None) -> ClientProgram | None:
    """Return the user's program; *output* takes the place of its standard output."""
    if not request.command:
        return None
    # Only a program that no fault strikes may share the terminal with harrow.
    is_struck = any(obstacles(plan, has_program=False))
    has_terminal = os.name != "posix" or (sys.stdin is not None and sys.stdin.isatty())
    return ClientProgram(request.command, output, own_group=is_struck or not has_terminal)


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


def _serve(
    request: ServeRequest,
    plan: Plan,
    on_ready: Callable[[Sequence[Address]], None],
    is_over: Callable[[Run], bool],
    program: ClientProgram | None,
    control: ControlPort | None,
    recording: RequestRecording | None,
) -> RunResult:
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
            on_ready=on_ready,
            is_over=is_over,
            program=program,
            control=control,
            unique=request.unique,
            connections_max=request.connections_max or CONNECTIONS_MAX,
            users=None if request.users is None else read_users(request.users),
            recording=recording,
        )
    except CannotListenError as error:
        raise Refusal(str(error)) from None


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
    return replace(
        run, folder=write_run_to(request.results, result, run.as_mapping(), text, recording.stream)
    )


def _print(selection: Selection, run: FinishedRun, printer: RunPrinter, program_code: int) -> Tally:
    wall_s = (run.result.wall_ms or 0) / 1_000
    tally = Tally(planned=1, wall_s=wall_s, program_code=program_code)
    printer.begin(selection)
    tally.add(run)
    printer.add(run)
    printer.end()
    printer.finish(tally)
    return tally
