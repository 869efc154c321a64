"""What messages have in common, whoever sends them."""

from typing import ClassVar, Protocol

from harrow.cluster_model.compiling import mypyc_attr


class Body(Protocol):
    """What a message says: a request, or an answer."""

    @property
    def api(self) -> str:
        """The name of the request in Kafka's protocol."""


@mypyc_attr(allow_interpreted_subclasses=True)
class Request:
    """What a client asks of a server."""

    __slots__ = ()

    api: ClassVar[str]
