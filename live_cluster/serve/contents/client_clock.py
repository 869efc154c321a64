"""Defines the clock of clients, which passes faster or slower than that of the model."""

from typing import Final

from harrow.cluster_model.lazy_dataclass import dataclass

_US_PER_MS: Final = 1_000


@dataclass(frozen=True, slots=True)
class ClientClock:
    """The clock of clients: its time at time zero of the model, and how fast that time passes."""

    zero_ms: float
    time_scale: float

    def model_us(self, client_ms: int) -> int:
        """Return a time of clients as a time of the model."""
        return int((client_ms - self.zero_ms) * _US_PER_MS * self.time_scale)

    def client_ms(self, model_us: int) -> int:
        """Return a time of the model as a time of clients."""
        return int(self.zero_ms + model_us / _US_PER_MS / self.time_scale)
