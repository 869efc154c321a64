"""With invalid files and failing streams each command exits with 0 to 3 and a brief reason."""

import subprocess
import sys
from typing import Final

import pytest

from harrow.cli.requests import COMMANDS
from tests.hostile import edges
from tests.patience import PATIENCE_S
from tests.plain_environment import PYTHONPATH, ROOT, plain_environment

pytest.importorskip("pyarrow")
pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="uses devices and folders of Linux")

PARTS: Final = 80


@pytest.mark.soak(size=1, rounds_in_test=1, rounds_in_soak=PARTS)
def test_no_file_and_no_stream_crashes_a_command(numbers: range) -> None:
    completed = subprocess.run(
        [sys.executable, "-m", "tests.hostile.edges", "--part", f"{numbers.start}/{PARTS}"],
        cwd=ROOT,
        env={**plain_environment(), "PYTHONPATH": PYTHONPATH},
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=False,
    )
    assert completed.returncode == 0, completed.stdout + completed.stderr


def test_every_argument_of_a_command_has_a_sample() -> None:
    """A case shows little if its other arguments are invalid too."""
    for command in COMMANDS:
        for parameter in edges.parameters(command):
            if parameter.name != "action" and (parameter.param_type_name == "argument" or parameter.required):
                metavar = str(parameter.metavar)
                assert {metavar, metavar.strip("[].")} & edges.SAMPLES.keys(), (command, parameter.name)
