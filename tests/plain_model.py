"""What can be tried of plain Python alone."""

from typing import Final

import pytest

from harrow.compilation import COMPILED, compilation

patches_the_model: Final = pytest.mark.skipif(
    compilation()[0] == COMPILED, reason="compiled code calls its own methods, whatever is put in their place"
)
