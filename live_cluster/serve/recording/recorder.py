"""Defines what a served run tells about its clients while they use the cluster."""

from harrow.live_cluster.serve.ports.control_port import ControlRequest


class Recorder:
    """Takes everything that enters a served run from outside, and what clients are answered.

    The model and these inputs determine a run. This class keeps none of them.
    """

    def arrive(self, at_us: int) -> None:
        """Begin the inputs that take effect at *at_us*, after all events of the model until then.

        Each moment is later than the one before.
        """

    def opened(self, connection: int, broker: int) -> None:
        """Take a connection that a client has opened to a broker."""

    def received(self, connection: int, frame: bytes) -> None:
        """Take a request, or bytes that a client sent instead of one."""

    def closed(self, connection: int) -> None:
        """Take the end of a connection that its client ended, or that the server could not keep."""

    def forget(self, connection: int) -> None:
        """Forget a connection, which its client or the server has ended."""

    def answered(self, connection: int, correlation_id: int, response: bytes) -> None:
        """Take the response to the earliest request of a connection that waits for one."""

    def controlled(self, request: ControlRequest) -> None:
        """Take a request of a program that controls the run."""

    def program_ended(self) -> None:
        """Take the end of the program that harrow has started."""

    def ended(self) -> None:
        """Take the end of the time in which clients use the cluster."""
