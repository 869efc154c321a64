"""A served cluster keeps SCRAM credentials as brokers do (``ScramControlManager``, KIP-554)."""

from typing import Any

import pytest
from kafka.protocol.admin import AlterUserScramCredentialsRequest, DescribeUserScramCredentialsRequest

from harrow.cluster_model.errors import NONE
from harrow.live_cluster.wire.connection import BrokerConnection
from harrow.live_cluster.wire.errors import error_name
from tests.live_cluster.serve.answers.test_served_versions import use

SHA_256, SHA_512 = 1, 2
_ALTER, _DESCRIBE = AlterUserScramCredentialsRequest, DescribeUserScramCredentialsRequest


def deletion(user: str, mechanism: int = SHA_256) -> Any:
    return _ALTER.ScramCredentialDeletion(name=user, mechanism=mechanism)


def upsertion(user: str, mechanism: int = SHA_256, iterations: int = 4_096) -> Any:
    secret = {"salt": b"salt", "salted_password": b"password"}
    return _ALTER.ScramCredentialUpsertion(name=user, mechanism=mechanism, iterations=iterations, **secret)


def alteration(*changes: Any) -> Any:
    """Return a request."""
    return _ALTER[0](
        deletions=[each for each in changes if not hasattr(each, "iterations")],
        upsertions=[each for each in changes if hasattr(each, "iterations")],
    )


def alter(connection: BrokerConnection, *changes: Any) -> dict[str, str]:
    """Return the error of each user."""
    answer = connection.ask(alteration(*changes))
    return {result.user: error_name(result.error_code) for result in answer.results}


def described(
    connection: BrokerConnection, *users: str, is_null: bool = False
) -> dict[str, list[tuple[int, int]] | str]:
    """Return the error of each user, or the mechanisms with their iterations."""
    names = None if is_null else [_DESCRIBE.UserName(name=user) for user in users]
    answer = connection.ask(_DESCRIBE[0](users=names))
    return {
        result.user: error_name(result.error_code)
        if result.error_code
        else [(each.mechanism, each.iterations) for each in result.credential_infos]
        for result in answer.results
    }


@pytest.mark.parametrize("release", ["2.8", "4.3"])
def test_credentials_stay_until_they_are_deleted(release: str) -> None:
    def ask(connection: BrokerConnection) -> None:
        assert described(connection) == {}
        assert alter(connection, upsertion("ann"), upsertion("bob", SHA_512, 16_384)) == {
            "ann": NONE,
            "bob": NONE,
        }
        assert alter(connection, upsertion("ann", SHA_512, 5_000)) == {"ann": NONE}
        ann, bob = [(SHA_256, 4_096), (SHA_512, 5_000)], [(SHA_512, 16_384)]
        assert described(connection, is_null=True) == described(connection) == {"ann": ann, "bob": bob}
        assert described(connection, "bob", "eve") == {"bob": bob, "eve": "RESOURCE_NOT_FOUND"}
        assert alter(connection, deletion("ann"), deletion("bob", SHA_512)) == {"ann": NONE, "bob": NONE}
        assert described(connection) == {"ann": ann[1:]}

    use(release, ask)


def test_credentials_that_brokers_refuse_change_nothing() -> None:
    def ask(connection: BrokerConnection) -> None:
        assert alter(connection, upsertion("ann")) == {"ann": NONE}
        before = described(connection)
        for change, error in (
            (upsertion("eve", iterations=4_095), "UNACCEPTABLE_CREDENTIAL"),
            (upsertion("eve", iterations=16_385), "UNACCEPTABLE_CREDENTIAL"),
            (upsertion(""), "UNACCEPTABLE_CREDENTIAL"),
            (upsertion("eve", 0), "UNSUPPORTED_SASL_MECHANISM"),
            (deletion("eve"), "RESOURCE_NOT_FOUND"),
            (deletion("ann", SHA_512), "RESOURCE_NOT_FOUND"),
        ):
            assert list(alter(connection, change).values()) == [error]
        assert alter(connection, deletion("ann"), upsertion("ann", SHA_512)) == {"ann": "DUPLICATE_RESOURCE"}
        assert alter(connection, deletion("eve"), upsertion("eve")) == {"eve": "RESOURCE_NOT_FOUND"}
        assert alter(connection, upsertion("x" * 1_001)) == {"x" * 1_001: "POLICY_VIOLATION"}
        assert described(connection, "ann", "ann") == {"ann": "DUPLICATE_RESOURCE"}
        assert described(connection) == before

    use("4.3", ask)


def test_users_have_credentials_up_to_a_number_that_bounds_memory() -> None:
    def ask(connection: BrokerConnection) -> None:
        errors = alter(connection, *(upsertion(f"user-{number}") for number in range(1_001)))
        refused = {user: error for user, error in errors.items() if error != NONE}
        assert refused == {"user-1000": "POLICY_VIOLATION"}
        assert alter(connection, upsertion("eve")) == {"eve": "POLICY_VIOLATION"}
        assert alter(connection, upsertion("user-0", SHA_512)) == {"user-0": NONE}
        assert alter(connection, deletion("user-1")) == {"user-1": NONE}
        assert alter(connection, upsertion("eve")) == {"eve": NONE}
        assert len(described(connection)) == 1_000

    use("4.3", ask)
