"""A run with real clients can be repeated from its recording, without the clients."""

import struct
import sys
import zlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from io import SEEK_END, BytesIO
from pathlib import Path
from random import Random
from typing import Any, Final

import pytest
from confluent_kafka import Consumer, Producer
from kafka.protocol.consumer import HeartbeatRequest, HeartbeatResponse

from harrow.campaigns.language.loader import load_text
from harrow.campaigns.record.recorded_run import RecordedRun, RecordError, read_run
from harrow.campaigns.record.report import run_as_mapping
from harrow.campaigns.record.results_folder import REQUESTS, write_run
from harrow.checks.finding import HELD, PERMITTED, Finding, RuleResult
from harrow.cluster_model.errors import NONE
from harrow.live_cluster.serve.client_program import ClientProgram
from harrow.live_cluster.serve.recording.request_recording import (
    ANSWER,
    CONTROL,
    OPEN,
    REQUEST,
    TIME,
    RecordedEntry,
    RequestFile,
    RequestRecording,
    answer_of,
)
from harrow.live_cluster.serve.replay import served_replay
from harrow.live_cluster.serve.replay.recorded_inputs import AnswerComparison
from harrow.live_cluster.serve.replay.served_replay import replay_served
from harrow.live_cluster.serve.served_run import serve
from harrow.live_cluster.wire.client_requests import FRAME_MIN, read_request
from harrow.live_cluster.wire.codec import Address
from harrow.live_cluster.wire.connection import BrokerConnection
from tests.live_cluster.serve.answers.test_scram_credentials import SHA_256, alter, described, upsertion
from tests.live_cluster.serve.test_run_control import Control, controlled
from tests.live_cluster.serve.test_served_run import (
    CALM,
    CRASH,
    LONELY_LEADER,
    PRODUCE,
    run_python,
    run_with,
    use_kafka_python,
    use_librdkafka,
    wait_until_refused,
)
from tests.patience import PATIENCE_S

SPEED: Final = 10.0
SLOW_PRODUCER: Final = """
import sys
import time
from confluent_kafka import Producer
producer = Producer({"bootstrap.servers": sys.argv[1], "client.id": "app"})
for number in range(10):
    producer.produce("t", b"v%d" % number, partition=0)
    assert producer.flush(60) == 0
    time.sleep(0.1)
"""
FRAME: Final = struct.pack(">hhih", 18, 0, 1, -1)


def recorded(folder: Path, text: str, client: Callable[[str], None], **options: Any) -> RecordedRun:
    """Serve a campaign, and read the run from its files."""
    recording = RequestRecording(BytesIO())
    result = run_with(text, client, recording=recording, **{"time_scale": SPEED, **options})
    return read_run(write_run(folder, result, run_as_mapping(result, "harrow serve"), text, recording.stream))


def entries_of(run: RecordedRun) -> list[RecordedEntry]:
    with (run.folder / REQUESTS).open("rb") as stream:
        return [*RequestFile(stream).entries()]


def check_same(run: RecordedRun) -> None:
    """Repeat a run, and check that it is the same."""
    replay = replay_served(run)
    assert replay.answers is not None
    assert (replay.answers.difference, replay.difference, replay.changes()) == (None, None, [])
    assert replay.is_same()
    assert replay.answers.count == sum(entry.kind == ANSWER for entry in entries_of(run))


def use_transactions(servers: str) -> None:
    producer = Producer({"bootstrap.servers": servers, "transactional.id": "pay"})
    producer.init_transactions(PATIENCE_S)
    for number in range(4):
        producer.begin_transaction()
        for place in range(5):
            producer.produce("t", b"%d-%d" % (number, place))
        producer.flush(PATIENCE_S)
        (producer.abort_transaction if number % 2 else producer.commit_transaction)(PATIENCE_S)
    settings = {"group.id": "g", "auto.offset.reset": "earliest", "isolation.level": "read_committed"}
    consumer = Consumer({"bootstrap.servers": servers, **settings})
    consumer.subscribe(["t"])
    for _ in range(10):
        assert consumer.poll(PATIENCE_S) is not None
    consumer.close()


CLIENTS: Final = {
    "kafka-python": use_kafka_python,
    "librdkafka": use_librdkafka,
    "transactions": use_transactions,
}


@pytest.mark.parametrize("client", CLIENTS.values(), ids=CLIENTS)
@pytest.mark.parametrize("text", [CALM, CRASH], ids=["calm", "crash"])
def test_a_repeated_run_is_the_same_each_time(
    client: Callable[[str], None], text: str, tmp_path: Path
) -> None:
    run = recorded(tmp_path, text, client)
    check_same(run)
    check_same(run)


def test_a_repeated_run_loses_the_same_records(tmp_path: Path) -> None:
    def use(servers: str) -> None:
        run_python(PRODUCE, servers, "1", "20")
        wait_until_refused(servers)
        run_python(PRODUCE, servers, "1", "1")

    run = recorded(tmp_path, LONELY_LEADER, use)
    check_same(run)
    assert (run.verdict, len(run.rules["lost-write"].findings)) == (PERMITTED, 20)


def test_a_repeated_run_has_the_faults_of_the_control_port(tmp_path: Path) -> None:
    def use(control: Control) -> None:
        control.strike(broker_crash={"broker": "leader of t-0"})
        assert control.request("POST", "/faults", {"broker_crash": {"broker": 77}})[0] == 400
        use_producer(control.servers)
        control.request("DELETE", "/faults")

    text, recording = controlled_campaign(), RequestRecording(BytesIO())
    result = controlled(use, text, recording=recording)
    run = read_run(write_run(tmp_path, result, run_as_mapping(result, "x"), text, recording.stream))
    check_same(run)
    assert sum(entry.kind == CONTROL for entry in entries_of(run)) == 3


def controlled_campaign() -> str:
    return CALM.replace("partitions: 2", "partitions: 1")


def use_producer(servers: str) -> None:
    producer = Producer({"bootstrap.servers": servers, "retry.backoff.ms": 10})
    producer.produce("t", b"v")
    assert producer.flush(PATIENCE_S) == 0


def test_a_recording_has_no_passwords_and_logins_fare_the_same(tmp_path: Path) -> None:
    def use(servers: str) -> None:
        login = {
            "bootstrap.servers": servers,
            "security.protocol": "SASL_PLAINTEXT",
            "sasl.mechanism": "PLAIN",
        }
        producer = Producer({**login, "sasl.username": "ann", "sasl.password": "s3cret-word"})
        producer.produce("t", b"v")
        assert producer.flush(PATIENCE_S) == 0
        refused = Producer({**login, "sasl.username": "eve", "sasl.password": "gu3ssed-word"})
        refused.poll(0.5)

    run = recorded(tmp_path, CALM, use, users={"ann": "s3cret-word"})
    check_same(run)
    frames = b"".join(entry.data for entry in entries_of(run))
    for word in (b"s3cret-word", b"gu3ssed-word", b"ann", b"eve"):
        assert word not in frames


def test_a_recording_has_no_salted_passwords_and_credentials_stay_the_same(tmp_path: Path) -> None:
    def use(servers: str) -> None:
        first, _, _ = servers.partition(",")
        host, _, port = first.partition(":")
        with BrokerConnection((host, int(port))) as connection:
            assert alter(connection, upsertion("ann")) == {"ann": NONE}
            assert described(connection) == {"ann": [(SHA_256, 4_096)]}

    run = recorded(tmp_path, CALM, use)
    check_same(run)
    frames = b"".join(entry.data for entry in entries_of(run))
    assert b"ann" in frames
    assert b"salt" not in frames
    assert b"password" not in frames


@pytest.fixture(scope="module")
def calm_run(tmp_path_factory: pytest.TempPathFactory) -> RecordedRun:
    return recorded(tmp_path_factory.mktemp("results"), CALM, use_producer)


def changed(
    run: RecordedRun, folder: Path, change: Callable[[RecordedEntry], RecordedEntry | None]
) -> RecordedRun:
    """Return a copy of a run whose recording has other entries, but is whole."""
    with (run.folder / REQUESTS).open("rb") as stream:
        file = RequestFile(stream)
        recording = RequestRecording(BytesIO())
        recording.begin(file.terms)
        for entry in filter(None, map(change, file.entries())):
            recording.add(*entry[:4])
        recording.flush()
    recording.stream.seek(0)
    (folder / REQUESTS).write_bytes(recording.stream.read())
    return replace(run, folder=folder)


def test_a_run_of_more_than_a_month_is_not_repeated(calm_run: RecordedRun) -> None:
    """Else a damaged record would keep the replay busy without end."""
    with pytest.raises(RecordError, match=r"run\.json: `simulated_ms` is above"):
        replay_served(replace(calm_run, simulated_ms=2**60))


def test_a_replay_names_the_rules_with_other_findings(calm_run: RecordedRun) -> None:
    lost = RuleResult(
        status=HELD, promise="", findings=(Finding(partition="t-0", chain=(), offset=1, value="m1"),)
    )
    replay = replay_served(replace(calm_run, rules={**calm_run.rules, "lost-write": lost}))
    assert replay.changes() == [("lost-write", "held (m1)", "held")]


@pytest.mark.parametrize(
    ("days", "reason"),
    [(30, "it is larger than"), (31, "the cluster has run for more than 30 days")],
    ids=["too large", "too long"],
)
def test_a_recording_that_cannot_be_replayed_is_dropped_as_a_whole_with_the_reason(
    calm_run: RecordedRun, days: int, reason: str
) -> None:
    with (calm_run.folder / REQUESTS).open("rb") as stream:
        terms = RequestFile(stream).terms
    dropped: list[str] = []
    recording = RequestRecording(BytesIO(), 300_000, dropped.append)
    recording.begin(terms)
    recording.arrive(days * 24 * 60 * 60 * 1_000_000)
    random = Random(0)
    for _ in range(10):
        recording.received(0, random.randbytes(40_000))
    recording.ended()
    assert len(dropped) == 1
    assert dropped[0].startswith(reason)
    assert recording.is_dropped
    assert recording.stream.seek(0, SEEK_END) == 0


def test_unexpected_answers_of_a_replay_take_little_memory() -> None:
    comparison = AnswerComparison()
    for number in range(10_000):
        comparison.received(0, FRAME)
        comparison.answered(0, number, b"x")
    assert len(comparison._replayed) < 5_000
    assert comparison.difference is not None
    assert comparison.difference.recorded is None


@pytest.mark.parametrize(
    "fault",
    [
        "client_pause: {client: app, duration: 500ms}",
        "client_crash: {client: app, restart_after: 500ms}",
    ],
    ids=["paused", "killed"],
)
def test_a_run_whose_program_was_struck_is_repeated(fault: str, tmp_path: Path) -> None:
    text = CALM.replace("name: unused", "name: app") + (
        f"script: [{{when: {{replicas: {{t-0: {{0: {{leo: 1}}}}}}}}, do: {{{fault}}}}}]\n"
    )
    (plan,) = load_text(text, "c.yaml").plans
    program = ClientProgram([sys.executable, "-c", SLOW_PRODUCER, "{bootstrap}"], None, own_group=True)
    recording = RequestRecording(BytesIO())

    def start(addresses: Sequence[Address]) -> None:
        program.servers = ",".join(f"{host}:{port}" for host, port in addresses)
        program.start()

    try:
        result = serve(
            *(plan, 0),
            host="127.0.0.1",
            ports=[0] * len(plan.cluster.brokers),
            time_scale=1.0,
            on_ready=start,
            is_over=lambda _: not (program.is_running or program.is_killed),
            program=program,
            recording=recording,
        )
    finally:
        program.stop()
    assert program.code == 0
    run = read_run(write_run(tmp_path, result, run_as_mapping(result, "x"), text, recording.stream))
    assert len(result.faults) == 1
    check_same(run)


def test_the_first_request_with_another_answer_is_named(calm_run: RecordedRun, tmp_path: Path) -> None:
    def damage(entry: RecordedEntry) -> RecordedEntry:
        if entry.kind == REQUEST and read_request(entry.data).api_key == 0:
            return entry._replace(data=entry.data[:-1] + bytes([entry.data[-1] ^ 1]))
        return entry

    replay = replay_served(changed(calm_run, tmp_path, damage))
    assert not replay.is_same()
    assert replay.answers is not None
    assert replay.answers.difference is not None
    assert "(Produce version" in replay.answers.difference.request
    assert "client `rdkafka`" in replay.answers.difference.request


def heartbeat_answer(error_code: int) -> bytes:
    response = HeartbeatResponse[3](throttle_time_ms=0, error_code=error_code)
    response.with_header(7)
    frame: bytes = response.encode(header=True, framed=True)
    return frame


@pytest.mark.parametrize(
    ("replayed", "ends"),
    [
        (heartbeat_answer(27), (", error_code 0", ", error_code 27")),
        (heartbeat_answer(0) + b"x", (", the same in all fields", ", the same in all fields")),
    ],
    ids=["another field", "more bytes"],
)
def test_the_first_field_that_differs_in_an_answer_is_named_if_there_is_one(
    replayed: bytes, ends: tuple[str, str]
) -> None:
    request = HeartbeatRequest[3](group_id="g", generation_id=1, member_id="m", group_instance_id=None)
    request.with_header(7, "app")
    comparison = AnswerComparison()
    comparison.received(0, request.encode(header=True, framed=False))
    comparison.expect(answer_of(0, 7, heartbeat_answer(0)))
    comparison.answered(0, 7, replayed)
    difference = comparison.difference
    assert difference is not None
    assert difference.recorded is not None
    assert difference.replayed is not None
    assert difference.recorded.endswith(ends[0])
    assert difference.replayed.endswith(ends[1])


def test_an_answer_that_never_comes_is_named(calm_run: RecordedRun, tmp_path: Path) -> None:
    def is_kept(entry: RecordedEntry) -> RecordedEntry | None:
        is_produce = entry.kind == REQUEST and read_request(entry.data).api_key == 0
        return None if is_produce else entry

    replay = replay_served(changed(calm_run, tmp_path, is_kept))
    assert replay.answers is not None
    assert replay.answers.difference is not None
    assert replay.answers.difference.replayed is None


def test_no_more_recorded_answers_are_kept_than_requests_wait() -> None:
    comparison = AnswerComparison()
    comparison.received(0, FRAME)
    for number in range(100):
        comparison.expect(answer_of(0, number, b"x"))
    assert len(comparison._expected) == 1
    assert comparison.difference is not None
    assert comparison.difference.replayed is None


def test_a_connection_that_has_ended_takes_no_memory_and_no_answers() -> None:
    comparison = AnswerComparison()
    for connection in range(10):
        comparison.received(connection, FRAME)
        comparison.forget(connection)
    comparison.catch_up()
    comparison.expect(answer_of(3, 1, b"x"))
    assert (comparison._requests, [*comparison._expected]) == ({}, [])
    comparison.received(10, FRAME)
    comparison.expect(answer_of(10, 1, b"x"))
    comparison.answered(10, 1, b"x")
    assert comparison.count == 1


def test_a_replay_forgets_each_connection(calm_run: RecordedRun, monkeypatch: pytest.MonkeyPatch) -> None:
    comparison = AnswerComparison()
    monkeypatch.setattr(served_replay, "AnswerComparison", lambda: comparison)
    assert replay_served(calm_run).is_same()
    assert comparison.count > 0
    comparison.catch_up()
    assert comparison._requests == {}


def damaged_files(whole: bytes) -> Iterator[tuple[bytes, str]]:
    first = len(b"harrow.requests/1\n")
    (length,) = struct.unpack_from(">I", whole, first)
    second = first + 12 + length
    yield b"", "byte 0: not a recording"
    yield b"harrow.requests/2\n" + whole[first:], "byte 0: another version of harrow wrote it"
    yield whole[:first], f"byte {first}: the recording is cut off"
    yield whole[: second + 20], f"byte {second}: the recording is cut off within this block"
    yield whole[:second], f"byte {second}: the recording is cut off"
    yield whole + b"x", f"byte {len(whole)}: the recording ends here, but the file does not"
    middle = second + 30
    flipped = whole[:middle] + bytes([whole[middle] ^ 1]) + whole[middle + 1 :]
    yield flipped, f"byte {second}: this block has been changed since the run was recorded"
    huge = struct.pack(">III", 2**32 - 1, 2**32 - 1, 0)
    yield whole[:first] + huge + whole[first + 12 :], f"byte {first}: this block is larger"
    terms = b'{"addresses": {}, "zero_ms": %s, "time_scale": %s, "unique": %s, "login": 0, "program": 0}'
    for values in ((b"NaN", b"1", b"null"), (b"0", b"0", b"null"), (b"0", b"1", b"[]"), (b"0", b"1", b'"x"')):
        yield whole[:first] + block(terms % values), f"byte {first}: the first block does not describe"
    other_brokers = terms % (b"0", b"1", b"null")
    yield whole[:first] + block(other_brokers), "byte 0: its brokers are not those of the campaign"
    for address in (b'["h", 9999999]', b'["h", 0]', b'["\\ud800", 1]'):
        plain = (terms % (b"0", b"1", b"null")).replace(b"{}", b'{"0": %s}' % address, 1)
        yield whole[:first] + block(plain), f"byte {first}: the first block does not describe"
    for plain in (b"[]", b"{}", b'{"addresses": 7}', b"\xff", b"[" * 100_000):
        yield whole[:first] + block(plain), f"byte {first}: the first block does not describe"
    head = whole[:second]
    for plain, message in (
        (b"\x00", "this block ends within an entry"),
        (entry_bytes(99), "this block has an entry that harrow does not write"),
        (entry_bytes(REQUEST, data=b"x")[:-1], "this block has an entry that harrow does not write"),
        (entry_bytes(REQUEST, data=b"12345678"), "the first entry of this block has no time"),
        (entry_bytes(TIME, number=5) + entry_bytes(TIME, number=5), "the times in this block do not ascend"),
        (entry_bytes(TIME, number=2**61), "this block has a time after the end of the run"),
        (entry_bytes(TIME, number=2**63 - 1), "this block has a time after the end of the run"),
        (
            entry_bytes(TIME, number=5) + entry_bytes(OPEN, number=77),
            "this block opens a connection that cannot be",
        ),
        (entry_bytes(TIME, number=5) + entry_bytes(CONTROL, data=b"[1]"), "this block has a damaged request"),
        (entry_bytes(REQUEST, data=b"x"), "this block has an entry that harrow does not write"),
        (entry_bytes(ANSWER), "this block has an entry that harrow does not write"),
    ):
        yield head + block(plain), f"byte {second}: {message}"


def block(plain: bytes) -> bytes:
    compressed = zlib.compress(plain)
    return struct.pack(">III", len(compressed), len(plain), zlib.crc32(plain)) + compressed


def entry_bytes(kind: int, connection: int = 0, number: int = 0, data: bytes = b"") -> bytes:
    return struct.pack(">BIqI", kind, connection, number, len(data)) + data


def test_what_cannot_be_compressed_is_read_as_it_was_written(calm_run: RecordedRun) -> None:
    with (calm_run.folder / REQUESTS).open("rb") as stream:
        terms = RequestFile(stream).terms
    random, recording = Random(0), RequestRecording(BytesIO())
    recording.begin(terms)
    frames = [random.randbytes(40_000) for _ in range(40)] + [bytes(40_000)] * 80
    for frame in frames:
        recording.received(0, frame)
    recording.ended()
    size = recording.stream.seek(0, SEEK_END)
    recording.stream.seek(0)
    assert [entry.data for entry in RequestFile(recording.stream).entries()] == [*frames, b""]
    assert 40 * 40_000 < size < 75 * 40_000


def test_damage_is_reported_with_its_place(calm_run: RecordedRun, tmp_path: Path) -> None:
    run = replace(calm_run, folder=tmp_path)
    file = tmp_path / REQUESTS
    for content, message in damaged_files((calm_run.folder / REQUESTS).read_bytes()):
        file.write_bytes(content)
        with pytest.raises(RecordError) as caught:
            replay_served(run)
        assert f"{file}: {message}" in str(caught.value)
    file.unlink()
    with pytest.raises(RecordError, match="is missing"):
        replay_served(run)


def test_no_frame_of_a_recording_ends_in_a_traceback(calm_run: RecordedRun, tmp_path: Path) -> None:
    random = Random(0)

    def damage(entry: RecordedEntry) -> RecordedEntry:
        if entry.kind != REQUEST or random.random() < 0.5:
            return entry
        data = bytearray(entry.data)
        data[random.randrange(len(data))] = random.randrange(256)
        return entry._replace(data=bytes(data[: random.randrange(FRAME_MIN, len(data) + 1)]))

    for _ in range(20):
        replay_served(changed(calm_run, tmp_path, damage))
