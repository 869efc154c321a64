"""A table lays out the cells of a narrow column."""

from io import StringIO

from rich.console import Console

from harrow.cli.render.layout import columns, indented


def test_a_cell_is_not_wrapped_beside_an_empty_column() -> None:
    table = columns("broker", "address", "")
    table.add_row("0", "127.0.0.1:21001", "")
    output = StringIO()
    Console(file=output, width=80).print(indented(table, 2))
    assert [line.split() for line in output.getvalue().splitlines()] == [
        ["broker", "address"],
        ["0", "127.0.0.1:21001"],
    ]
