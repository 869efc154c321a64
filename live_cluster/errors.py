"""What can go wrong with processes, brokers and clients that are no fault of harrow's."""


class LiveError(Exception):
    """A run on real brokers cannot go on; the message says why."""
