"""How a sweep that spark-submit started is started again."""

import sys

import pytest

from harrow.campaigns.sweep.spark_session import SparkAddress
from harrow.cli.spark import program_words


def test_a_submitted_sweep_is_continued_with_spark_submit(monkeypatch: pytest.MonkeyPatch) -> None:
    address = SparkAddress("spark://host:7077", is_given=True)
    assert program_words(address) == ["harrow"]
    assert program_words(None) == ["harrow"]
    monkeypatch.setenv("PYSPARK_GATEWAY_PORT", "1")
    monkeypatch.setattr(sys, "argv", ["/opt/harrow_on_spark.py", "sweep"])
    expected = ["spark-submit", "--master", "spark://host:7077", "/opt/harrow_on_spark.py"]
    assert program_words(address) == expected
