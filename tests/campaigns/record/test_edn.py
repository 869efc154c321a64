"""Histories in EDN, as Jepsen writes them, are read like the same histories in JSON."""

import json
import tracemalloc
from typing import Any

import pytest

from harrow.campaigns.record.edn import EdnError, ElementsOfVector, looks_like_edn, parse_edn
from harrow.campaigns.record.history_file import HistoryError, read_history
from harrow.checks.finding import HELD, INCONCLUSIVE, PERMITTED, VIOLATED
from harrow.checks.history.judge import judge_history
from harrow.checks.stated_settings import StatedSettings

TORN = """\
{:process 0, :type :invoke, :f :txn, :value [[:send 5 1] [:send 6 1] [:poll]], :time 10, :index 0}
#jepsen.history.Op{:index 1, :time 20, :type :info, :process 0, :f :txn, :value [[:send 5 1] [:send 6 1] [:poll]], :error [:timeout]}
{:process :nemesis, :type :info, :f :start-kill, :value #{"n1" "n2"}, :time 21, :index 2}
{:process 1, :type :invoke, :f :assign, :value [5 6], :time 22, :index 3}
{:process 1, :type :ok, :f :assign, :value [5 6], :time 23, :index 4}
{:process 1, :type :invoke, :f :poll, :value [[:poll]], :time 24, :index 5}
{:process 1, :type :ok, :f :poll, :value [[:poll {5 [[0 1]]}]], :time 25, :index 6}
{:process 1, :type :invoke, :f :poll, :value [[:poll]], :time 26, :index 7}
{:process 1, :type :ok, :f :poll, :value [[:poll {}]], :time 27, :rebalance-log {:before [], :during [{:keys [7]}]}, :index 8}
"""


def lines(text: str) -> list[bytes]:
    return text.encode().splitlines(keepends=True)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("{:f :txn, :value [[:send 5 [nil -3]]]}", {"f": "txn", "value": [["send", 5, [None, -3]]]}),
        ("#jepsen.history.Op{:a/b true 11 false}", {"a/b": True, "11": False}),
        ("[1N 2.5 3e2 4M (a b) #{:c}]", [1, 2.5, 300.0, 4, ["a", "b"], ["c"]]),
        (r"""["a\"\\b\n" "\u00e9" ""] ; and so on""", ['a"\\b\n', "é", ""]),
        ("[1 #_[2 {:x 3}] 4 #_ #_ 5 6]", [1, 4]),
        ('#inst "2024-08-20"', "2024-08-20"),
    ],
)
def test_edn_elements_become_json_values(text: str, expected: Any) -> None:
    assert parse_edn(text) == expected


@pytest.mark.parametrize(
    ("text", "position", "reason"),
    [
        ("{:a 1", 5, "`{` is not closed"),
        ("{:a 1]", 5, "`]` closes nothing that is open"),
        ("{:a}", 3, "a map with a key that has no value"),
        ("1 2", 0, "expected one element, not 2"),
        ("; nothing", 0, "expected one element, not 0"),
        ('[1 "a', 3, "not EDN"),
    ],
)
def test_invalid_edn_is_reported_with_its_position(text: str, position: int, reason: str) -> None:
    with pytest.raises(EdnError) as caught:
        parse_edn(text)
    assert (caught.value.position, caught.value.reason) == (position, reason)


def test_a_line_of_json_is_not_taken_for_edn() -> None:
    assert [looks_like_edn(line) for line in (b'{"process": 0}', b"{}", b"", b"[1]")] == [False] * 4
    assert all(looks_like_edn(line) for line in (b" {:process 0}", b"#jepsen.history.Op{:index 1}"))


def test_a_half_read_transaction_is_torn() -> None:
    verdict = judge_history(read_history(lines(TORN), "history.edn"))
    assert [name for name, rule in verdict.rules.items() if rule.findings] == ["torn-transaction"]
    assert verdict.status == VIOLATED
    (finding,) = verdict.rules["torn-transaction"].findings
    assert (finding.partition, finding.value) == ("6", 1)
    assert dict(finding.details)["operations"] == [1, 6]


@pytest.mark.parametrize("stated", [{"read_committed": False}, {"transactional": False}])
def test_without_transactions_or_read_committed_half_of_an_operation_may_be_read(stated: Any) -> None:
    verdict = judge_history(read_history(lines(TORN), "history.edn"), StatedSettings(**stated))
    assert verdict.rules["torn-transaction"].status == PERMITTED


def test_a_partition_without_a_final_empty_poll_proves_nothing() -> None:
    verdict = judge_history(read_history(lines(TORN.replace("[5 6]", "[5]")), "history.edn"))
    assert verdict.rules["torn-transaction"].status == HELD


def test_json_and_edn_of_one_history_are_judged_alike() -> None:
    as_json = [json.dumps(parse_edn(line.decode())).encode() for line in lines(TORN)]
    one, other = (judge_history(read_history(each, "history")) for each in (as_json, lines(TORN)))
    assert one == other
    assert one.status != INCONCLUSIVE


def test_every_malformed_line_of_edn_is_reported_with_its_position() -> None:
    text = "\n{:process 0, :type :ok, :f :send, :value [[:send 5 1]]\n{:process 0, :type :okay, :f :send, :value []}\n"
    with pytest.raises(HistoryError) as caught:
        read_history(lines(TORN + text), "history.edn")
    listed = [(problem.line, problem.column, problem.message) for problem in caught.value.problems]
    assert listed == [
        (11, 56, "not EDN: `{` is not closed"),
        (12, 14, 'unknown `type` "okay"; did you mean `ok`?'),
    ]


def status_of(text: str) -> str:
    return judge_history(read_history(lines(text), "h.edn"), StatedSettings()).status


VECTORS = {
    "each on a line": "[\n" + TORN + "]\n",
    "on one line": "[" + TORN.replace("\n", " ") + "]",
    "with commas, comments and no end of line": "; a test\n[" + TORN.replace("\n", ",\n  ") + "] ; the end",
    "each on several lines": "[" + TORN.replace(", :", "\n  :") + "]",
    "as a list": "(" + TORN + ")",
    "with something left out": "[#_ {:process 7} " + TORN + "]",
}


@pytest.mark.parametrize("text", VECTORS.values(), ids=list(VECTORS))
def test_a_history_as_one_vector_equals_the_same_history_as_lines(text: str) -> None:
    assert status_of(text) == status_of(TORN) == VIOLATED
    assert len(read_history(lines(text), "h.edn").processes) == len(
        read_history(lines(TORN), "h.edn").processes
    )


EVERYTHING = r"""; a comment [{
( ; another " one
{:a 1, "b;#_" [nil true false] :c/d #{ 1 -2N 2.5 } ; with a ] in it
 [0 1] "\\"}, #_ {:left [out]}
 #_ #_ 7
 ("left"
   out) #some.tag{:a
 #other "text
on two lines"} :x #_x
 y 9
 #_{:a 1}) ; } the end
"""


@pytest.mark.parametrize("lines_at_once", [1, 2, 3, 5, 100])
def test_elements_and_their_positions_do_not_depend_on_how_a_vector_is_split(lines_at_once: int) -> None:
    every = EVERYTHING.splitlines(keepends=True)
    starts = range(0, len(every), lines_at_once)
    # The first piece includes the opening bracket.
    pieces = ["".join(every[start : start + lines_at_once]) for start in starts]
    if lines_at_once == 1:
        pieces[:2] = ["".join(pieces[:2])]
    vector = ElementsOfVector(pieces, size_max=1_000)
    elements, places = [], []
    for several in vector:
        elements += several
        places += [vector.place_of(number) for number in range(len(several))]
    assert elements == parse_edn(EVERYTHING)
    assert places == [(3, 1), (7, 9), (9, 16), (10, 2), (10, 4)]


def problems(text: str) -> list[tuple[int, int, str]]:
    with pytest.raises(HistoryError) as caught:
        read_history(lines(text), "h.edn")
    return [(problem.line, problem.column, problem.message) for problem in caught.value.problems]


GOOD = "{:process 0, :type :invoke, :f :poll, :value [[:poll]]}"


@pytest.mark.parametrize(
    ("text", "line", "column", "message"),
    [
        (f"[{GOOD}\n {{:process 0}}]", 2, 2, "an operation needs a field `type`"),
        (f"[{GOOD}\n #jepsen.history.Op{{:process 0}}]", 2, 2, "an operation needs a field `type`"),
        (f"[{GOOD}\n nil]", 2, 2, "an operation is an object, not null"),
        (f'[{GOOD} "é" {{:a}}]', 1, 65, "not EDN: a map with a key that has no value"),
        (f"[{GOOD}\n", 2, 1, "not EDN: `[` is not closed"),
        (f"[{GOOD}", 1, 57, "not EDN: `[` is not closed"),
        (f"[{GOOD}]\n{GOOD}", 2, 1, "not EDN: there is more after the end of the vector"),
        (f"[{GOOD}\n}}", 2, 1, "not EDN: `}` closes nothing that is open"),
    ],
)
def test_a_mistake_in_a_vector_has_its_line_and_column(
    text: str, line: int, column: int, message: str
) -> None:
    assert (line, column, message) in problems(text)


def test_jepsens_history_txt_is_refused_with_one_message() -> None:
    text = "0\t:invoke\t:txn\t[[:send 5 1]]\n:nemesis\t:info\t:start\tnil\n0\t:ok\t:txn\t[[:send 5 [0 1]]]\n"
    ((line, column, message),) = problems(text)
    assert (line, column) == (1, 1)
    assert message.startswith("this is the history.txt of a Jepsen test")
    assert message.endswith("use the history.edn beside it")


def test_a_long_string_needs_no_memory_beyond_its_text() -> None:
    text = '{:value "' + "x" * 1_000_000 + '"}'
    tracemalloc.start()
    parse_edn(text)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 10 * len(text)


@pytest.mark.parametrize(
    ("text", "place", "reason"),
    [
        ("[1 " + "9" * 1_001 + "]", 3, "a number with more than 1000 digits"),
        ("[" * 201 + "]" * 201, 200, "more than 200 elements are open"),
    ],
)
def test_an_element_that_is_too_long_is_reported_at_its_start(text: str, place: int, reason: str) -> None:
    with pytest.raises(EdnError) as caught:
        parse_edn(text)
    assert (caught.value.position, caught.value.reason) == (place, reason)


def test_a_map_with_a_collection_as_a_key_becomes_a_list_of_pairs() -> None:
    nested = "1"
    for _ in range(100):
        nested = "{" + nested + " 1}"
    assert parse_edn("{[0 1] 2 :a 3}") == [[[0, 1], 2], ["a", 3]]
    assert len(str(parse_edn(nested))) < 1_000
