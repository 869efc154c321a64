"""`harrow run` of any campaign file ends with exit code 0 to 3 and without a traceback."""

from pathlib import Path
from random import Random

import pytest
from typer.main import get_command

from harrow.cli.main import app
from tests.properties.campaign_mutants import mutants

# A mutated campaign may send a thousand records per second for a day. Only its end matters here.
EVENTS_MAX = 3_000


@pytest.mark.soak(size=40, rounds_in_test=1, rounds_in_soak=600)
def test_mutated_files_never_end_in_a_traceback(
    numbers: range, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    texts = mutants(Random(1_000_000 + numbers.start))
    path = tmp_path / "mutant.yaml"
    words = ["run", str(path), "--no-results", "--quiet", "--set", f"limits.events={EVENTS_MAX}"]
    harrow = get_command(app)
    exit_codes = dict.fromkeys(range(4), 0)
    for _ in numbers:
        text = next(texts)
        path.write_text(text, encoding="utf-8", errors="surrogatepass", newline="")
        with pytest.raises(SystemExit) as ended:
            harrow.main(words, prog_name="harrow")
        assert ended.value.code in exit_codes, text
        printed = capsys.readouterr()
        assert "Traceback" not in printed.out + printed.err, text
        exit_codes[ended.value.code] += 1
    # Both successful runs and refused files must occur, otherwise the test shows nothing.
    assert exit_codes[0]
    assert exit_codes[2]
