"""TLS with a self-signed certificate and passwords for brokers started by hand.

Brokers authenticate each other by PLAIN. Their settings have the passwords of PLAIN, and the
metadata of the cluster has those of SCRAM.
"""

import subprocess
from pathlib import Path
from typing import Final

from harrow.live_cluster.processes.ports import LOOPBACK

PASSWORD_VARIABLE: Final = "HARROW_TEST_PASSWORD"  # noqa: S105 - a name
PASSWORD: Final = "a password of several words"  # noqa: S105 - of brokers that end with the test
USER: Final = "harrow"
LISTENER: Final = "SASL_SSL"
PLAIN: Final = "PLAIN"
SCRAM: Final = "SCRAM-SHA-512"
_STORE_PASSWORD: Final = "of-the-store"  # noqa: S105 - see above
_ADMIN: Final = "admin"


class Protection:
    """Keys and a certificate from Java's ``keytool``, and a user of a *mechanism*."""

    def __init__(self, folder: Path, java: Path, mechanism: str) -> None:
        self.mechanism = mechanism
        self._keytool = java.resolve().with_name("keytool")
        self._keys, self._trusted = folder / "keys.p12", folder / "trusted.p12"
        self.certificate = folder / "brokers.pem"
        self._run(
            *("-genkeypair", "-keystore", self._keys, "-keyalg", "RSA", "-validity", "2"),
            # Brokers look up the name of an address, so the certificate has `localhost` too.
            *("-dname", "CN=brokers", "-ext", f"san=ip:{LOOPBACK},dns:localhost"),
        )
        self._run("-exportcert", "-rfc", "-keystore", self._keys, "-file", self.certificate)
        self._run("-importcert", "-noprompt", "-keystore", self._trusted, "-file", self.certificate)

    def settings(self) -> dict[str, object]:
        """Return the settings of the brokers."""
        users = {_ADMIN: "among-brokers", **({USER: PASSWORD} if self.mechanism == PLAIN else {})}
        accounts = " ".join(f'user_{name}="{password}"' for name, password in users.items())
        login = f'username="{_ADMIN}" password="{users[_ADMIN]}"'
        jaas = f"listener.name.{LISTENER.lower()}.{{}}.sasl.jaas.config"
        modules = "org.apache.kafka.common.security"
        return {
            "security.inter.broker.protocol": LISTENER,
            "sasl.enabled.mechanisms": f"{PLAIN},{SCRAM}",
            "sasl.mechanism.inter.broker.protocol": PLAIN,
            jaas.format(PLAIN.lower()): f"{modules}.plain.PlainLoginModule required {login} {accounts};",
            jaas.format(SCRAM.lower()): f"{modules}.scram.ScramLoginModule required;",
            **self._store("keystore", self._keys),
            **self._store("truststore", self._trusted),
        }

    def in_zookeeper(self, address: str) -> list[str]:
        """Return the command of Kafka that writes the password into the metadata."""
        user = ("--entity-type", "users", "--entity-name", USER)
        password = f"{self.mechanism}=[password={PASSWORD}]"
        return [
            "kafka.admin.ConfigCommand",
            "--zookeeper",
            address,
            "--alter",
            "--add-config",
            password,
            *user,
        ]

    def in_format(self) -> list[str]:
        """Return the arguments for ``kafka-storage format``."""
        return ["--add-scram", f'{self.mechanism}=[name={USER},password="{PASSWORD}"]']

    def lines(self) -> str:
        """Return the lines for the target file."""
        return "\n".join(
            (
                "security:",
                f"  security.protocol: {LISTENER}",
                f"  sasl.mechanism: {self.mechanism}",
                f"  sasl.username: {USER}",
                f"  sasl.password: ${{{PASSWORD_VARIABLE}}}",
                f"  ssl.ca.location: {self.certificate}",
                "",
            )
        )

    def _store(self, name: str, file: Path) -> dict[str, object]:
        return {
            f"ssl.{name}.location": file,
            f"ssl.{name}.type": "PKCS12",
            f"ssl.{name}.password": _STORE_PASSWORD,
        }

    def _run(self, *arguments: object) -> None:
        store = ("-alias", "brokers", "-storetype", "PKCS12", "-storepass", _STORE_PASSWORD)
        subprocess.run([self._keytool, *map(str, arguments), *store], check=True, capture_output=True)
