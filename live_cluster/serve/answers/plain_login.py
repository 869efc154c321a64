"""Lets clients log in with SASL/PLAIN (KIP-12, KIP-43, KIP-152)."""

import hmac
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from kafka.protocol.metadata import ApiVersionsRequest
from kafka.protocol.sasl import (
    SaslAuthenticateRequest,
    SaslAuthenticateResponse,
    SaslHandshakeRequest,
    SaslHandshakeResponse,
)

from harrow.campaigns.language.problem import FileError, Problem
from harrow.live_cluster.wire.client_requests import BadRequestError, ClientRequest
from harrow.live_cluster.wire.errors import error_code

Users = Mapping[str, str]
"""The passwords of users."""

_MECHANISM: Final = "PLAIN"
RECORDED_USERS: Final[Users] = {"user": "password"}
"""Stand for all users in a recording, which keeps no names and no passwords."""
_ACCEPTED, _REFUSED = b"\0user\0password", b"\0\0"
_FAILED: Final = "Authentication failed: Invalid username or password"
LOGIN_VERSIONS: Final = {SaslHandshakeRequest.API_KEY: (1, 1), SaslAuthenticateRequest.API_KEY: (0, 2)}
"""Version 0 of SaslHandshake is missing, after which clients send tokens without a header."""


def read_users(file: Path) -> Users:
    """Read a file with a line ``USER=PASSWORD`` for each user.

    Raises:
        FileError: It cannot be read, or has no users or other lines.

    """
    try:
        lines = file.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or "not UTF-8"
        raise FileError([Problem(str(file), 0, 0, f"cannot be read: {reason}")]) from None
    users: dict[str, str] = {}
    for number, line in enumerate(lines, start=1):
        user, equals, password = line.partition("=")
        if not line.strip() or line.startswith("#"):
            continue
        if not (equals and user and password):
            raise FileError([Problem(str(file), number, 1, "write USER=PASSWORD")])
        users[user] = password
    if not users:
        raise FileError([Problem(str(file), 1, 1, "there is no user: write USER=PASSWORD")])
    return users


class PlainLogin:
    """The login of one connection (``SaslServerAuthenticator.java``).

    Until it ``is_done``, a client may only ask for versions and log in. If it ``has_failed``, the
    connection ends with the answer.
    """

    def __init__(self, users: Users) -> None:
        self._users = users
        self._has_shaken_hands = False
        self.is_done = False
        self.has_failed = False

    def answer(self, request: ClientRequest) -> Any:
        """Return the answer to a request of the login; None if the request is for others.

        Raises:
            BadRequestError: The client has not logged in, or sends a request out of turn.

        """
        if self.is_done or request.api_key == ApiVersionsRequest.API_KEY:
            return None
        low, high = LOGIN_VERSIONS.get(request.api_key, (0, -1))
        if request.body is None or not low <= request.version <= high:
            raise BadRequestError(f"API {request.api_key} version {request.version} before the login")
        if request.api_key == SaslHandshakeRequest.API_KEY:
            return self._shake_hands(request)
        if not self._has_shaken_hands:
            raise BadRequestError("SaslAuthenticate before SaslHandshake")
        return self._authenticate(request)

    def _shake_hands(self, request: ClientRequest) -> Any:
        self._has_shaken_hands = request.body.mechanism == _MECHANISM
        self.has_failed = not self._has_shaken_hands
        return SaslHandshakeResponse[request.version](
            error_code=error_code("UNSUPPORTED_SASL_MECHANISM" if self.has_failed else "NONE"),
            mechanisms=[_MECHANISM],
        )

    def _authenticate(self, request: ClientRequest) -> Any:
        self.is_done = self.is_correct(request.body.auth_bytes or b"")
        self.has_failed = not self.is_done
        return SaslAuthenticateResponse[request.version](
            error_code=error_code("SASL_AUTHENTICATION_FAILED" if self.has_failed else "NONE"),
            error_message=_FAILED if self.has_failed else None,
            auth_bytes=b"",
            session_lifetime_ms=0,
        )

    def is_correct(self, token: bytes) -> bool:
        """Return whether a token of PLAIN names a user and the password (RFC 4616)."""
        authorization, _, rest = token.partition(b"\0")
        user, separator, password = rest.partition(b"\0")
        expected = self._users.get(user.decode("utf-8", errors="replace"))
        if expected is None or not separator or authorization not in (b"", user):
            return False
        return hmac.compare_digest(password, expected.encode())


def as_recorded(request: ClientRequest, login: PlainLogin | None) -> Any:
    """Return the body of a SaslAuthenticate as a recording keeps it: with other words.

    They fare the same if `RECORDED_USERS` are the users.
    """
    is_correct = login is not None and login.is_correct(request.body.auth_bytes or b"")
    return SaslAuthenticateRequest[request.version](auth_bytes=_ACCEPTED if is_correct else _REFUSED)
