"""A mark for tests that patch the model, which must then run as plain Python."""

from typing import Final

import pytest

from harrow.compilation import COMPILED, compilation

_IS_COMPILED: Final = compilation()[0] == COMPILED

patches_the_model: Final = pytest.mark.skipif(_IS_COMPILED, reason="compiled code ignores patched methods")
