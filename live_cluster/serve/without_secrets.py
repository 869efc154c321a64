"""Keeps passwords out of a recording of requests."""

from collections.abc import Callable
from typing import Any, Final

from kafka.protocol.admin import AlterUserScramCredentialsRequest
from kafka.protocol.sasl import SaslAuthenticateRequest

from harrow.live_cluster.serve.answers.plain_login import PlainLogin, as_recorded
from harrow.live_cluster.wire.client_requests import FRAME_MIN, BadRequestError, ClientRequest, read_request


def without_secrets(frame: bytes, login: PlainLogin | None) -> bytes:
    """Return a frame as a recording keeps it: with other secrets, but the same answer."""
    replace = _REPLACEMENTS.get(frame[:2])
    if replace is None:
        return frame
    try:
        request = read_request(frame)
    except BadRequestError:
        request = None
    if request is None or request.body is None:
        # Its client loses the connection, as with every damaged request.
        return frame[:FRAME_MIN]
    recorded = replace(request, login)
    recorded.with_header(request.correlation_id, request.client_id)
    return bytes(recorded.encode(header=True, framed=False))


def _without_salted_passwords(request: ClientRequest, _: PlainLogin | None) -> Any:
    for upsertion in request.body.upsertions:
        upsertion.salt = upsertion.salted_password = b""
    return request.body


_REPLACEMENTS: Final[dict[bytes, Callable[[ClientRequest, PlainLogin | None], Any]]] = {
    SaslAuthenticateRequest.API_KEY.to_bytes(2): as_recorded,
    AlterUserScramCredentialsRequest.API_KEY.to_bytes(2): _without_salted_passwords,
}
