"""How large a campaign may be: beyond these a file is a mistake, or an attack."""

from typing import Final

BROKERS_MAX: Final = 100
PARTITIONS_MAX: Final = 1_000
CLIENTS_MAX: Final = 100
VARIANTS_MAX: Final = 100
