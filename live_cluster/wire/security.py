"""Encrypts and authenticates a connection to a broker."""

import ssl
from collections.abc import Mapping
from dataclasses import field
from functools import cached_property
from socket import socket
from typing import Any, Final

from kafka.errors import KafkaError
from kafka.net.sasl import get_sasl_mechanism
from kafka.protocol.sasl import SaslAuthenticateRequest, SaslHandshakeRequest

from harrow.cluster_model.lazy_dataclass import dataclass

MECHANISMS: Final = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512")
"""The mechanisms that harrow's own connections support: all of them take a name and a password."""
PROTOCOLS: Final = ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")


class AuthenticationError(OSError):
    """A broker refuses the name or the password, or does not support the mechanism."""


@dataclass(frozen=True)
class Security:
    """Client settings by librdkafka's names (``sasl.*``, for example); some are secret."""

    settings: Mapping[str, str] = field(default_factory=dict, repr=False)

    @property
    def protocol(self) -> str:
        """One of `PROTOCOLS`."""
        return self.settings.get("security.protocol", "PLAINTEXT").upper()

    @property
    def mechanism(self) -> str | None:
        """The SASL mechanism, None if clients do not authenticate by SASL."""
        if not self.protocol.startswith("SASL"):
            return None
        return self.settings.get("sasl.mechanism") or self.settings.get("sasl.mechanisms")

    def secured(self, plain: socket, host: str) -> socket:
        """Return the socket, with TLS if the protocol says so.

        Raise OSError on a bad certificate.
        """
        return (
            self._context.wrap_socket(plain, server_hostname=host) if self.protocol.endswith("SSL") else plain
        )

    def authenticate(self, ask: Any) -> None:
        """Authenticate if the protocol is SASL (KIP-152).

        *ask* sends a request and returns the answer. Raise `AuthenticationError` if the broker
        refuses.
        """
        if self.mechanism is None:
            return
        if ask(SaslHandshakeRequest[1](mechanism=self.mechanism)).error_code:
            raise AuthenticationError(f"it does not authenticate by {self.mechanism}")
        mechanism = get_sasl_mechanism(self.mechanism)(
            sasl_mechanism=self.mechanism,
            sasl_plain_username=self.settings.get("sasl.username", ""),
            sasl_plain_password=self.settings.get("sasl.password", ""),
        )
        try:
            while not mechanism.is_done():
                answer = ask(SaslAuthenticateRequest[0](auth_bytes=mechanism.auth_bytes()))
                if answer.error_code:
                    raise AuthenticationError("it refuses the name or the password")
                mechanism.receive(answer.auth_bytes)
        except (KafkaError, ValueError) as error:
            raise AuthenticationError(f"authenticating failed: {type(error).__name__}") from error

    @cached_property
    def _context(self) -> ssl.SSLContext:
        settings = self.settings
        context = ssl.create_default_context(cafile=settings.get("ssl.ca.location"))
        if settings.get("ssl.endpoint.identification.algorithm", "https") in ("", "none"):
            context.check_hostname = False
        if settings.get("enable.ssl.certificate.verification", "true").lower() == "false":
            context.check_hostname = False
            context.verify_mode = ssl.CERT_NONE
        if (certificate := settings.get("ssl.certificate.location")) is not None:
            context.load_cert_chain(
                certificate, settings.get("ssl.key.location"), settings.get("ssl.key.password")
            )
        return context


PLAINTEXT: Final = Security()
