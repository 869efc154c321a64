"""The version of harrow, in the one place that everything else reads it from."""

from typing import Final

VERSION: Final = "0.1.0"
