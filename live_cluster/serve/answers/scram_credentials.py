"""Keeps the SCRAM credentials of users (KIP-554).

Clients cannot log in with them, as on a broker that enables no SCRAM mechanism.
"""

from collections import Counter
from typing import Any, Final

from harrow.cluster_model.errors import NONE
from harrow.live_cluster.wire.errors import error_code

_MECHANISMS: Final = (1, 2)
"""SCRAM-SHA-256 and SCRAM-SHA-512 (``ScramMechanism``)."""
_ITERATIONS_MIN: Final = 4_096
_ITERATIONS_MAX: Final = 16_384
_USERS_MAX: Final = 1_000
_NAME_MAX: Final = 1_000
"""The characters of a name. Kafka bounds neither."""
_DUPLICATE: Final = "DUPLICATE_RESOURCE"
_MISSING: Final = "RESOURCE_NOT_FOUND"
_UNACCEPTABLE: Final = "UNACCEPTABLE_CREDENTIAL"

_Error = tuple[str, str | None]
"""The name of an error and its message."""


class ScramCredentials:
    """The users with credentials, and for each mechanism how often their password is hashed."""

    def __init__(self) -> None:
        self._iterations: dict[str, dict[int, int]] = {}

    def alter(self, request: Any, _: int) -> Any:
        """Change credentials, and return the answer (``ScramControlManager.alterCredentials``)."""
        kind = request.header.get_response_class()
        changes: dict[str, Any] = {}
        refused: dict[str, _Error] = {}
        for change in (*request.deletions, *request.upsertions):
            if change.name in refused:
                continue
            error = self._error(change, users=len(self._iterations.keys() | changes.keys()))
            if changes.pop(change.name, None) is not None:
                error = _DUPLICATE, "A user credential cannot be altered twice in the same request"
            if error[0] == NONE:
                changes[change.name] = change
            else:
                refused[change.name] = error
        for change in changes.values():
            if _is_upsertion(change):
                self._iterations.setdefault(change.name, {})[change.mechanism] = change.iterations
            else:
                self._delete(change.name, change.mechanism)
        results = dict.fromkeys(changes, (NONE, None)) | refused
        return kind(
            results=[
                kind.AlterUserScramCredentialsResult(
                    user=user, error_code=error_code(error), error_message=message
                )
                for user, (error, message) in results.items()
            ]
        )

    def describe(self, request: Any, _: int) -> Any:
        """Describe the credentials of users, or of all users (``ScramImage.describe``)."""
        kind = request.header.get_response_class()
        counts = Counter(user.name for user in request.users or ()) or dict.fromkeys(self._iterations, 1)
        result = kind.DescribeUserScramCredentialsResult
        return kind(
            error_code=0,
            error_message=None,
            results=[self._described(result, user, count) for user, count in counts.items()],
        )

    def _described(self, kind: Any, user: str, count: int) -> Any:
        error: _Error = NONE, None
        if count > 1:
            error = (
                _DUPLICATE,
                f"Cannot describe SCRAM credentials for the same user twice in a single request: {user}",
            )
        elif user not in self._iterations:
            error = _MISSING, f"Attempt to describe a user credential that does not exist: {user}"
        by_mechanism = self._iterations[user] if error[0] == NONE else {}
        return kind(
            user=user,
            error_code=error_code(error[0]),
            error_message=error[1],
            credential_infos=[
                kind.CredentialInfo(mechanism=mechanism, iterations=iterations)
                for mechanism, iterations in sorted(by_mechanism.items())
            ],
        )

    def _delete(self, user: str, mechanism: int) -> None:
        by_mechanism = self._iterations[user]
        del by_mechanism[mechanism]
        if not by_mechanism:
            del self._iterations[user]

    def _error(self, change: Any, users: int) -> _Error:
        if not change.name:
            return _UNACCEPTABLE, "Username must not be empty"
        if change.mechanism not in _MECHANISMS:
            return "UNSUPPORTED_SASL_MECHANISM", "Unknown SCRAM mechanism"
        if not _is_upsertion(change):
            if change.mechanism not in self._iterations.get(change.name, ()):
                return _MISSING, "Attempt to delete a user credential that does not exist"
        elif change.iterations < _ITERATIONS_MIN:
            return _UNACCEPTABLE, "Too few iterations"
        elif change.iterations > _ITERATIONS_MAX:
            return _UNACCEPTABLE, "Too many iterations"
        elif len(change.name) > _NAME_MAX or (change.name not in self._iterations and users >= _USERS_MAX):
            return "POLICY_VIOLATION", f"harrow keeps {_USERS_MAX} users with up to {_NAME_MAX} characters"
        return NONE, None


def _is_upsertion(change: Any) -> bool:
    return hasattr(change, "iterations")
