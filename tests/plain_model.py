"""A mark for tests that need plain Python."""

from typing import Final

import pytest

from harrow.compilation import COMPILED, compilation

patches_the_model: Final = pytest.mark.skipif(
    compilation()[0] == COMPILED, reason="compiled code ignores patched methods"
)
