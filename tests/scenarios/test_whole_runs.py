"""The run that the tests of a plan share is the run in which idle fetches take each of their cycles event by event.

Tests of a group come in the order of their files, and this file comes behind those that look at runs: so it also notices
a test that has changed the run for those after it.
"""

from tests.properties.test_idle_fetches import assert_same, run
from tests.scenarios.library_plans import each_plan, library_plans, library_run


@each_plan()
def test_each_cycle_event_by_event_gives_the_run_that_all_tests_of_a_plan_have_looked_at(name: str) -> None:
    assert_same(library_run(name), run(library_plans()[name], 0, stepped=True))
