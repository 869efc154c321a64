"""Whatever stands in a campaign file, `harrow run` ends with exit code 0 to 3 and without a traceback."""

from pathlib import Path
from random import Random

import pytest
from typer.testing import CliRunner

from cli.main import app
from tests.properties.campaign_mutants import mutants

CHUNKS = 20
FILES_IN_CHUNK = 500
# A mutant may ask for a thousand records a second for a day: what matters is how it ends.
EVENTS_MAX = 3_000


@pytest.mark.parametrize("chunk", range(CHUNKS))
def test_mutated_files_on_the_command_line(chunk: int, tmp_path: Path) -> None:
    made = mutants(Random(1_000 + chunk))
    path = tmp_path / "mutant.yaml"
    exit_codes = dict.fromkeys(range(4), 0)
    for _ in range(FILES_IN_CHUNK):
        text = next(made)
        path.write_text(text, encoding="utf-8", errors="surrogatepass", newline="")
        result = CliRunner().invoke(
            app, ["run", str(path), "--no-results", "--quiet", "--set", f"limits.events={EVENTS_MAX}"]
        )
        assert result.exception is None or isinstance(result.exception, SystemExit), text
        assert result.exit_code in exit_codes, text
        assert "Traceback" not in result.output
        exit_codes[result.exit_code] += 1
    # Runs that end well and files that are refused both have to occur, or nothing was tried.
    assert exit_codes[0]
    assert exit_codes[2]
