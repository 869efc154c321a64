"""Defines the base types of messages."""

from typing import ClassVar, Protocol

from harrow.cluster_model.compiling import mypyc_attr


class Body(Protocol):
    """The body of a message: a request or a response."""

    @property
    def api(self) -> str:
        """The name of the request in Kafka's protocol."""


@mypyc_attr(allow_interpreted_subclasses=True)
class Request:
    """A request of a client to a server."""

    __slots__ = ()

    api: ClassVar[str]
