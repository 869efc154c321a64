"""Repeats what real clients did to a served cluster, and compares what they are answered."""

import json
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from typing import Any, Final, NamedTuple

from harrow.campaigns.language.spelling import printable
from harrow.campaigns.record.replay import DifferentAnswer
from harrow.live_cluster.serve.ports.control_port import ControlRequest, RefusedRequestError
from harrow.live_cluster.serve.recording.recorder import Recorder
from harrow.live_cluster.serve.recording.request_recording import (
    ANSWER,
    CLOSE,
    CONTROL,
    OPEN,
    PROGRAM_END,
    REQUEST,
    TIME,
    Answer,
    DamagedRecordingError,
    RecordedEntry,
    RequestFile,
    answer_of,
)
from harrow.live_cluster.serve.served_clients import ServedClients
from harrow.live_cluster.wire.client_requests import REQUESTS, start_of
from harrow.live_cluster.wire.decoding import MalformedMessageError, decoded

_NEVER_US: Final = 2**62
_FRAME_LENGTH_BYTES: Final = 4
_UNANSWERED_MAX: Final = 4_096
"""How many requests of a connection may wait for answers. Others are those that get none."""
_SAME_FIELDS: Final = ", the same in all fields"


class _ReceivedRequest(NamedTuple):
    """A request of a connection: its number there, and the start of its frame."""

    number: int
    correlation_id: int
    text: str
    api_key: int
    version: int


class _Requests:
    """The requests of a connection: how many wait, and the latest of them."""

    def __init__(self) -> None:
        self.count = 0
        self.unanswered = 0
        self.waiting: deque[_ReceivedRequest] = deque(maxlen=_UNANSWERED_MAX)


class AnswerComparison(Recorder):
    """Compares the responses of a repeated run with the recorded ones, in their order.

    A recorded response follows its request. So no more recorded responses are kept than requests
    wait for one, however many a damaged recording has.
    """

    def __init__(self) -> None:
        self.count = 0
        self.difference: DifferentAnswer | None = None
        self._at_us = 0
        self._expected: deque[Answer] = deque()
        self._replayed: deque[Answer] = deque()
        self._unanswered = 0
        self._requests: dict[int, _Requests] = {}
        self._ended: list[int] = []

    def arrive(self, at_us: int) -> None:
        self._at_us = at_us

    def received(self, connection: int, frame: bytes) -> None:
        requests = self._requests.setdefault(connection, _Requests())
        requests.count += 1
        requests.unanswered += 1
        self._unanswered += 1
        api_key, version, correlation_id, client = start_of(frame)
        kind = REQUESTS.get(api_key)
        name = f"API {api_key}" if kind is None else kind.name.removesuffix("Request")
        text = f"{name} version {version}, correlation id {correlation_id}, client `{printable(client)}`"
        requests.waiting.append(_ReceivedRequest(requests.count, correlation_id, text, api_key, version))

    def answered(self, connection: int, correlation_id: int, response: bytes) -> None:
        if connection in self._requests:
            self._requests[connection].unanswered -= 1
            self._unanswered -= 1
        answer = answer_of(connection, correlation_id, response)
        if len(self._replayed) < _UNANSWERED_MAX:
            self._replayed.append(answer)
            self._compare()
        else:
            self._differ(None, answer)

    def forget(self, connection: int) -> None:
        # A recorded answer that never comes may be that to the request that ended the connection.
        self._ended.append(connection)

    def expect(self, answer: Answer) -> None:
        """Take a recorded answer."""
        if len(self._expected) >= self._unanswered + len(self._replayed):
            self._differ(answer, None)
            return
        self._expected.append(answer)
        self._compare()

    def catch_up(self) -> None:
        """Take note that the run has reached the moment at which clients had all these answers."""
        if self._expected or self._replayed:
            self._differ(
                self._expected[0] if self._expected else None, self._replayed[0] if self._replayed else None
            )
        self._expected.clear()
        self._replayed.clear()
        for connection in self._ended:
            requests = self._requests.pop(connection, None)
            if requests is not None:
                self._unanswered -= requests.unanswered
        self._ended.clear()

    def _compare(self) -> None:
        while self._expected and self._replayed:
            recorded, replayed = self._expected.popleft(), self._replayed.popleft()
            if recorded[:4] != replayed[:4]:
                is_same_request = recorded[:2] == replayed[:2]
                self._differ(recorded, replayed if is_same_request else None)
            self.count += 1
            self._take_request(recorded)

    def _differ(self, recorded: Answer | None, replayed: Answer | None) -> None:
        answer = recorded or replayed
        if self.difference is not None or answer is None:
            return
        request = self._take_request(answer)
        fields = "", ""
        if request is None:
            text = f"a request of connection {answer.connection} (correlation id {answer.correlation_id})"
        else:
            text = f"request {request.number} of connection {answer.connection} ({request.text})"
            if recorded is not None and replayed is not None:
                fields = _different_field(request, recorded.whole, replayed.whole)
        self.difference = DifferentAnswer(
            at_us=self._at_us,
            request=text,
            recorded=None if recorded is None else recorded.text() + fields[0],
            replayed=None if replayed is None else replayed.text() + fields[1],
        )

    def _take_request(self, answer: Answer) -> _ReceivedRequest | None:
        """Return the request of an answer, if it is known, and forget the requests before it."""
        requests = self._requests.get(answer.connection)
        while requests is not None and requests.waiting:
            request = requests.waiting.popleft()
            if request.correlation_id == answer.correlation_id:
                return request
        return None


def _different_field(request: _ReceivedRequest, *responses: bytes) -> tuple[str, str]:
    """Return the first field that differs between two responses, with its value in each."""
    kind = REQUESTS.get(request.api_key)
    if kind is None or not all(responses):
        return "", ""
    try:
        asked = kind[request.version]()
        asked.with_header(request.correlation_id, "")
        response = asked.header.get_response_class()
        one, other = (decoded(response, data[_FRAME_LENGTH_BYTES:]).to_dict() for data in responses)
    except (MalformedMessageError, ValueError):
        return "", ""
    path, left, right = _first_difference("", one, other)
    if not path:
        return _SAME_FIELDS, _SAME_FIELDS
    return f", {path} {left!r}", f", {path} {right!r}"


def _first_difference(path: str, one: Any, other: Any) -> tuple[str, Any, Any]:
    """Return where two parts of messages differ first, and what is there."""
    if isinstance(one, dict) and isinstance(other, dict):
        pairs = [(f"{path}.{name}".lstrip("."), one[name], other.get(name)) for name in one]
    elif isinstance(one, list) and isinstance(other, list) and len(one) == len(other):
        pairs = [(f"{path}[{place}]", *pair) for place, pair in enumerate(zip(one, other, strict=True))]
    else:
        pairs = []
    for inner, left, right in pairs:
        if left != right:
            return _first_difference(inner, left, right)
    return path, one, other


class RecordedInputs:
    """The inputs of a recording, which take effect at the times at which they took effect.

    The recorded run ended before *end_us*, so no input is later.
    """

    def __init__(self, file: RequestFile, comparison: AnswerComparison, end_us: int) -> None:
        self._file = file
        self._comparison = comparison
        self._end_us = end_us
        self._entries = file.entries()
        self._at_us = -1
        self.addresses = file.terms.addresses
        self.control: Callable[[ControlRequest], object] = lambda _: None

    def attach(self, clients: ServedClients) -> None:
        self._clients = clients

    def begin(self) -> None:
        self._clients.clock = self._file.terms.clock
        self._take_until_next()

    def horizon_us(self) -> int:
        return self._at_us

    def is_due(self, at_us: int) -> bool:
        return self._at_us <= at_us

    def take(self) -> None:
        self._comparison.catch_up()
        self._clients.recorder.arrive(self._at_us)
        self._take_until_next()

    def wait(self, until_us: int) -> None:
        """A recording never waits: it knows the time of the next inputs."""

    def close(self) -> None:
        self._clients.close_all()

    def _take_until_next(self) -> None:
        """Let the inputs of this moment happen, and find out when the next ones do."""
        for entry in self._entries:
            if entry.kind == TIME:
                if entry.number <= self._at_us:
                    raise DamagedRecordingError("the times in this block do not ascend", entry.place)
                if entry.number >= self._end_us:
                    raise DamagedRecordingError("this block has a time after the end of the run", entry.place)
                self._at_us = entry.number
                return
            self._take(entry)
        self._at_us = _NEVER_US

    def _take(self, entry: RecordedEntry) -> None:
        clients, connection = self._clients, entry.connection
        if self._at_us < 0:
            raise DamagedRecordingError("the first entry of this block has no time", entry.place)
        if entry.kind == REQUEST:
            clients.receive(connection, entry.data)
        elif entry.kind == ANSWER:
            self._comparison.expect(entry.answer())
        elif entry.kind == OPEN:
            if connection in clients.connections or entry.number not in self.addresses:
                raise DamagedRecordingError("this block opens a connection that cannot be", entry.place)
            clients.open(connection, entry.number, _ignore, _ignore)
        elif entry.kind == CLOSE:
            clients.close(connection)
        elif entry.kind == CONTROL:
            self._control(entry)
        elif entry.kind == PROGRAM_END:
            clients.end_program()
        else:
            clients.end()

    def _control(self, entry: RecordedEntry) -> None:
        try:
            request = ControlRequest(*map(str, json.loads(entry.data)))
        except (ValueError, TypeError, RecursionError):
            raise DamagedRecordingError("this block has a damaged request for a fault", entry.place) from None
        with suppress(RefusedRequestError):
            self.control(request)


def _ignore(*_: bytes) -> None:
    """Do nothing: the client is not there."""
