"""``python -m harrow`` is the command ``harrow``."""

from harrow.cli.__main__ import main

main()
