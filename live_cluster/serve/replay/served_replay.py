"""Repeats a run with real clients from its recording, without the clients."""

from contextlib import closing
from typing import Final

from harrow.campaigns.record.recorded_run import RecordedRun, RecordError
from harrow.campaigns.record.replay import Replay, ReplayedAnswers, compared
from harrow.campaigns.record.results_folder import REQUESTS, RUN
from harrow.campaigns.run.run_result import RunResult
from harrow.campaigns.run.swarm import draw_for_seed
from harrow.cluster_model.lazy_dataclass import replace
from harrow.cluster_model.sim.virtual_time import US_PER_MS
from harrow.live_cluster.serve.answers.plain_login import RECORDED_USERS
from harrow.live_cluster.serve.recording.request_recording import DamagedRecordingError, RequestFile
from harrow.live_cluster.serve.replay.recorded_inputs import AnswerComparison, RecordedInputs
from harrow.live_cluster.serve.served_environment import RunProgram
from harrow.live_cluster.serve.served_run import ServedRun

_SIMULATED_MAX_MS: Final = 31 * 24 * 60 * 60 * 1_000
"""How long a run may be. Nothing else limits how long a repetition of a damaged record takes."""


def replay_served(recorded: RecordedRun) -> Replay:
    """Let the clients of a served run do again what they did, and compare answers and traces.

    Raises:
        RecordError: The recording or the trace is missing or damaged.

    """
    if recorded.simulated_ms > _SIMULATED_MAX_MS:
        raise RecordError(recorded.folder / RUN, f"`simulated_ms` is above {_SIMULATED_MAX_MS}: 31 days")
    path = recorded.folder / REQUESTS
    try:
        stream = path.open("rb")
    except FileNotFoundError:
        raise RecordError(path, "is missing: it has the requests of the clients") from None
    except OSError as error:
        raise RecordError(path, f"cannot be read: {error.strerror or error}") from None
    with stream:
        try:
            result, comparison = _repeated(recorded, RequestFile(stream))
        except DamagedRecordingError as error:
            raise RecordError(path, str(error)) from None
    answers = ReplayedAnswers(count=comparison.count, difference=comparison.difference)
    return compared(recorded, result, answers)


def _repeated(recorded: RecordedRun, file: RequestFile) -> tuple[RunResult, AnswerComparison]:
    terms, comparison = file.terms, AnswerComparison()
    drawn = draw_for_seed(recorded.plan, recorded.seed)
    brokers = [broker.id for broker in drawn.plan.running_cluster().brokers]
    if brokers != [*terms.addresses]:
        raise DamagedRecordingError("its brokers are not those of the campaign", 0)
    inputs = RecordedInputs(file, comparison, end_us=(recorded.simulated_ms + 1) * US_PER_MS)
    served = ServedRun(
        *(drawn.plan, recorded.seed, inputs),
        program=RunProgram(None) if terms.has_program else None,
        unique=terms.unique,
        users=RECORDED_USERS if terms.has_login else None,
        recorder=comparison,
    )
    inputs.control = served.control.handle
    with closing(served.target):
        served.run.begin()
        result = served.run.end(served.disturb)
    return replace(result, plan=drawn.plan, drawn=drawn.values_without_workload), comparison
