"""Writes and reads what real clients sent to a served cluster, so that the run can be repeated.

The file begins with `_MAGIC`, which has the version of the format. Blocks follow: the length of the
compressed bytes, the length and the CRC-32 of the plain ones (``>III``), and the bytes, compressed
with zlib. The first block is a JSON document, the `RecordedTerms`. All others consist of entries:
a kind, a connection, a number, the length of the data (``>BIqI``), and the data. Entries are never
divided between blocks, so neither side needs more memory than the largest entry does.
"""

import json
import math
import struct
import zlib
from collections.abc import Callable, Iterator, Mapping
from typing import Any, BinaryIO, Final, NamedTuple

from harrow.cluster_model.lazy_dataclass import dataclass
from harrow.live_cluster.serve.contents.client_clock import ClientClock
from harrow.live_cluster.serve.contents.record_identity import parse_identity
from harrow.live_cluster.serve.ports.control_port import ControlRequest
from harrow.live_cluster.serve.recording.recorder import Recorder
from harrow.live_cluster.wire.client_requests import FRAME_MAX, FRAME_MIN
from harrow.live_cluster.wire.codec import Address

_MAGIC: Final = b"harrow.requests/1\n"
_MAGIC_PREFIX: Final = b"harrow.requests/"
_BLOCK: Final = struct.Struct(">III")
_ENTRY: Final = struct.Struct(">BIqI")
_ANSWER: Final = struct.Struct(">II")
_WHOLE_ANSWER_MAX: Final = 256
"""How large a response may be that is recorded with its bytes: most are smaller, except fetches."""
_BLOCK_BYTES: Final = 1 << 16
_BLOCK_BYTES_MAX: Final = FRAME_MAX + 2 * _BLOCK_BYTES
_FAST, _STORED = 1, 0
"""Levels of zlib. Compression takes a tenth of the time in which a cluster serves random bytes."""
_WORTHWHILE: Final = 0.9
_STORED_BLOCKS: Final = 15
"""How many blocks are stored after one that compression has hardly made smaller."""
BYTES_MAX: Final = 4 * 1024**3
"""How large a recording may be. It shares its disk with all other results."""
_DAYS_MAX: Final = 30
_TIME_MAX_US: Final = _DAYS_MAX * 24 * 60 * 60 * 1_000_000
"""How late inputs may be in the time of the cluster. A run ends less than a day after the last
ones, and `harrow replay` repeats up to 31 days."""
_HOST_BYTES_MAX: Final = 255
_PORTS: Final = range(1, 1 << 16)
_ZERO_MAX_MS: Final = 10**15
TIME, OPEN, REQUEST, CLOSE, ANSWER, CONTROL, PROGRAM_END, END = range(1, 9)
_KINDS: Final = range(TIME, END + 1)
_ANY_LENGTH: Final = range(FRAME_MAX + 1)
_LENGTHS: Final = {
    ANSWER: range(_ANSWER.size, _ANSWER.size + _WHOLE_ANSWER_MAX + 1),
    REQUEST: range(FRAME_MIN, FRAME_MAX + 1),
}
"""How many bytes of data the entries of a kind have."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordedTerms:
    """What a run with real clients depends on besides its plan, its seed and their requests."""

    addresses: Mapping[int, Address]
    clock: ClientClock
    unique: str | None
    """What identifies a record to its application, as in ``--unique``."""
    has_login: bool
    has_program: bool

    def as_mapping(self) -> dict[str, Any]:
        return {
            "addresses": {str(broker): [*address] for broker, address in self.addresses.items()},
            "zero_ms": self.clock.zero_ms,
            "time_scale": self.clock.time_scale,
            "unique": self.unique,
            "login": self.has_login,
            "program": self.has_program,
        }


class Answer(NamedTuple):
    """A response: the connection, its correlation id, its length, and the CRC-32 of its bytes.

    ``whole`` has the bytes if they are few.
    """

    connection: int
    correlation_id: int
    length: int
    checksum: int
    whole: bytes

    def text(self) -> str:
        return f"{self.length} bytes with the checksum {self.checksum:08x}"


def answer_of(connection: int, correlation_id: int, response: bytes) -> Answer:
    whole = response if len(response) <= _WHOLE_ANSWER_MAX else b""
    return Answer(connection, correlation_id, len(response), zlib.crc32(response), whole)


class RequestRecording(Recorder):
    """Writes inputs and the checksums of responses to a stream while the run goes on.

    A recording that would exceed *bytes_max* or last too long is dropped (``is_dropped``), because
    a part of it repeats no run. *on_drop* then gets the reason.
    """

    def __init__(
        self, stream: BinaryIO, bytes_max: int = BYTES_MAX, on_drop: Callable[[str], None] = lambda _: None
    ) -> None:
        self.stream = stream
        self.is_dropped = False
        self._bytes_left = bytes_max
        self._on_drop = on_drop
        self._block = bytearray()
        # How many of the next blocks are stored as they are.
        self._stored_blocks = 0

    def begin(self, terms: RecordedTerms) -> None:
        self.stream.write(_MAGIC)
        self._block += json.dumps(terms.as_mapping()).encode()
        self.flush()

    def arrive(self, at_us: int) -> None:
        if at_us > _TIME_MAX_US:
            self._drop(f"the cluster has run for more than {_DAYS_MAX} days of its own time")
        self.add(TIME, number=at_us)

    def opened(self, connection: int, broker: int) -> None:
        self.add(OPEN, connection, broker)

    def received(self, connection: int, frame: bytes) -> None:
        self.add(REQUEST, connection, data=frame)

    def closed(self, connection: int) -> None:
        self.add(CLOSE, connection)

    def answered(self, connection: int, correlation_id: int, response: bytes) -> None:
        answer = answer_of(connection, correlation_id, response)
        data = _ANSWER.pack(answer.length, answer.checksum) + answer.whole
        self.add(ANSWER, connection, correlation_id, data)

    def controlled(self, request: ControlRequest) -> None:
        self.add(CONTROL, data=json.dumps(request).encode())

    def program_ended(self) -> None:
        self.add(PROGRAM_END)

    def ended(self) -> None:
        self.add(END)
        self.flush()

    def add(self, kind: int, connection: int = 0, number: int = 0, data: bytes = b"") -> None:
        if self.is_dropped:
            return
        block = self._block
        block += _ENTRY.pack(kind, connection, number, len(data))
        block += data
        if len(block) >= _BLOCK_BYTES:
            self.flush()

    def flush(self) -> None:
        plain = self._block
        if not plain:
            return
        compressed = zlib.compress(plain, _STORED if self._stored_blocks else _FAST)
        if self._stored_blocks:
            self._stored_blocks -= 1
        elif len(compressed) > _WORTHWHILE * len(plain):
            self._stored_blocks = _STORED_BLOCKS
        head = _BLOCK.pack(len(compressed), len(plain), zlib.crc32(plain))
        plain.clear()
        self._bytes_left -= len(head) + len(compressed)
        if self._bytes_left < 0:
            self._drop(f"it is larger than {BYTES_MAX >> 30} GiB")
            return
        self.stream.write(head)
        self.stream.write(compressed)

    def _drop(self, reason: str) -> None:
        if not self.is_dropped:
            self.is_dropped = True
            self._block.clear()
            self.stream.seek(0)
            self.stream.truncate()
            self._on_drop(reason)


class RecordedEntry(NamedTuple):
    """An entry of a recording, and where its block begins in the file."""

    kind: int
    connection: int
    number: int
    data: bytes
    place: int

    def answer(self) -> Answer:
        length, checksum = _ANSWER.unpack_from(self.data)
        return Answer(self.connection, self.number, length, checksum, self.data[_ANSWER.size :])


class DamagedRecordingError(Exception):
    """A recording is damaged; the message names the byte."""

    def __init__(self, message: str, place: int) -> None:
        super().__init__(f"byte {place}: {message}")


class RequestFile:
    """Reads a recording.

    Raises:
        DamagedRecordingError: It cannot be read.

    """

    def __init__(self, stream: BinaryIO) -> None:
        self._stream = stream
        self._place = len(_MAGIC)
        magic = stream.read(len(_MAGIC))
        if magic != _MAGIC:
            has_format = magic.startswith(_MAGIC_PREFIX) and not _MAGIC.startswith(magic)
            raise DamagedRecordingError(
                "another version of harrow wrote it" if has_format else "not a recording", 0
            )
        self.terms = self._terms()

    def entries(self) -> Iterator[RecordedEntry]:
        """Yield all entries.

        Raises:
            DamagedRecordingError: The file is damaged.

        """
        kind = 0
        while kind != END:
            place, block = self._place, self._read_block()
            at = 0
            while at < len(block):
                begin = at + _ENTRY.size
                if begin > len(block):
                    raise DamagedRecordingError("this block ends within an entry", place)
                kind, connection, number, length = _ENTRY.unpack_from(block, at)
                at = begin + length
                has_length = at <= len(block) and length in _LENGTHS.get(kind, _ANY_LENGTH)
                if kind not in _KINDS or not has_length:
                    raise DamagedRecordingError("this block has an entry that harrow does not write", place)
                yield RecordedEntry(kind, connection, number, block[begin:at], place)
        if self._stream.read(1):
            raise DamagedRecordingError("the recording ends here, but the file does not", self._place)

    def _terms(self) -> RecordedTerms:
        place = self._place
        try:
            document = json.loads(self._read_block())
            if document["unique"] is not None:
                parse_identity(document["unique"])
            return RecordedTerms(
                addresses={
                    int(broker): _address(str(host), int(port))
                    for broker, (host, port) in document["addresses"].items()
                },
                clock=_clock(float(document["zero_ms"]), float(document["time_scale"])),
                unique=document["unique"],
                has_login=bool(document["login"]),
                has_program=bool(document["program"]),
            )
        except (ValueError, TypeError, LookupError, AttributeError, RecursionError, OverflowError):
            raise DamagedRecordingError("the first block does not describe a served cluster", place) from None

    def _read_block(self) -> bytes:
        """Return the plain bytes of the next block."""
        place = self._place
        head = self._stream.read(_BLOCK.size)
        if len(head) < _BLOCK.size:
            raise DamagedRecordingError("the recording is cut off", place)
        compressed_length, length, checksum = _BLOCK.unpack(head)
        if max(compressed_length, length) > _BLOCK_BYTES_MAX:
            raise DamagedRecordingError("this block is larger than harrow writes any", place)
        compressed = self._stream.read(compressed_length)
        if len(compressed) < compressed_length:
            raise DamagedRecordingError("the recording is cut off within this block", place)
        try:
            reader = zlib.decompressobj()
            plain = reader.decompress(compressed, length + 1)
        except zlib.error:
            plain = b""
        if len(plain) != length or zlib.crc32(plain) != checksum or not length:
            raise DamagedRecordingError("this block has been changed since the run was recorded", place)
        self._place = place + _BLOCK.size + compressed_length
        return plain


def _address(host: str, port: int) -> Address:
    if len(host.encode()) > _HOST_BYTES_MAX or port not in _PORTS:
        raise ValueError("no broker listens there")
    return Address(host, port)


def _clock(zero_ms: float, time_scale: float) -> ClientClock:
    if not (0 <= zero_ms < _ZERO_MAX_MS and 0 < time_scale < math.inf):
        raise ValueError("no clock of a machine is like that")
    return ClientClock(zero_ms, time_scale)
