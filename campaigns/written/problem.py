"""What can be wrong with a plan that is to be written."""


class UnwritablePlanError(ValueError):
    """A plan that no campaign file says; the message says what a file would be refused for."""
