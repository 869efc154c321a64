"""Starts harrow in spark-submit, which needs a file: ``spark-submit harrow_on_spark.py sweep ...``.

It works from any folder, so that a cluster can store it as its own file.
"""

from harrow.cli.__main__ import main

if __name__ == "__main__":
    main()
