"""Reads from a record what identifies it to its application: ``--unique key|value|header:NAME``."""

import struct
import zlib
from collections.abc import Callable, Sequence
from typing import Any, Final

from kafka.record.default_records import DefaultRecordBatch

from harrow.campaigns.language.spelling import printable

_ATTRIBUTES: Final = struct.Struct(">h")
_ATTRIBUTES_AT, _RECORDS_AT = 21, 61
_CODEC, _GZIP = 0x07, 0x01
_GZIP_WINDOW: Final = 31
_RECORDS_BYTES_MAX: Final = 64 * 1024 * 1024
_HEADER: Final = "header:"

Identity = Callable[[Any], bytes | str | None]
"""Returns the part of kafka-python's record that identifies it, None if the record lacks it."""


def parse_identity(text: str) -> Identity:
    """Return how records are identified.

    Raises:
        ValueError: The text is not ``key``, ``value`` or ``header:NAME``.

    """
    if text == "key":
        return lambda record: record.key
    if text == "value":
        return lambda record: record.value
    name = text.removeprefix(_HEADER)
    if name == text or not name:
        raise ValueError(f"`{printable(text)}` is not key, value or header:NAME")
    return lambda record: next((value for header, value in record.headers if header == name), None)


def identities(data: bytes, identity: Identity) -> Sequence[str | None]:
    """Return what identifies each record of a batch; nothing if harrow cannot read its codec.

    Raises:
        ValueError: The records are not as the batch says.

    """
    return [_text(identity(record)) for record in records_of(data) or ()]


def records_of(data: bytes) -> Sequence[Any] | None:
    """Return the records of a batch, or None if harrow cannot read its codec.

    Raises:
        ValueError: The records are not as the batch says.

    """
    plain = plain_batch(data)
    if plain is None:
        return None
    try:
        return list(DefaultRecordBatch(plain))
    except Exception as error:  # Hostile bytes may raise anything.
        raise ValueError(f"the batch has torn records: {error}") from error


def plain_batch(data: bytes) -> bytes | None:
    """Return a batch without compression, or None if harrow cannot read its codec.

    Only uncompressed and gzip batches are read, because Python's library has no other codec. The
    length and the checksum in the header stay those of the compressed batch.

    Raises:
        ValueError: The records are not as the batch says.

    """
    (attributes,) = _ATTRIBUTES.unpack_from(data, _ATTRIBUTES_AT)
    codec = attributes & _CODEC
    if codec == 0:
        return data
    if codec != _GZIP:
        return None
    plain = _ATTRIBUTES.pack(attributes & ~_CODEC)
    header = data[:_ATTRIBUTES_AT] + plain + data[_ATTRIBUTES_AT + len(plain) : _RECORDS_AT]
    return header + _decompressed(data[_RECORDS_AT:])


def _decompressed(data: bytes) -> bytes:
    reader = zlib.decompressobj(_GZIP_WINDOW)
    try:
        records = reader.decompress(data, _RECORDS_BYTES_MAX)
    except zlib.error as error:
        raise ValueError(f"the batch is not gzip: {error}") from error
    if reader.unconsumed_tail:
        raise ValueError("the batch has too large records")
    return records


def _text(part: bytes | str | None) -> str | None:
    if part is None or isinstance(part, str):
        return part
    try:
        return bytes(part).decode()
    except UnicodeDecodeError:
        return f"0x{bytes(part).hex()}"
