"""Failures of processes, brokers and clients that are not harrow's own mistakes."""


class LiveError(Exception):
    """A run on real brokers cannot continue; the message says why."""
