"""The shared run of a plan equals a run that simulates each step of idle fetches.

Tests of a group run in the order of their files, and this file comes after those that check runs.
So it also notices a test that modified the shared run.
"""

from tests.properties.test_idle_fetches import assert_same, run
from tests.scenarios.library_plans import each_plan, library_plans, library_run


@each_plan()
def test_stepping_each_idle_fetch_gives_the_shared_run(name: str) -> None:
    assert_same(library_run(name), run(library_plans()[name], 0, stepped=True))
