"""A chaos harness for Apache Kafka: break a modelled cluster on purpose, see which promises hold.

The packages of harrow are the folders at the top of the repository; here are links to them, so that
an editable installation, mypy and pytest import them under the name that they have when installed.
"""

import sys

from harrow.compilation import Finder, source_lines

if source_lines():
    sys.meta_path.insert(0, Finder())
