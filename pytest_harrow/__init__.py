"""The pytest plugin: campaign files as tests, and a fixture that runs campaigns from Python.

It is a package of its own, with a name that no other project has: pytest imports it
wherever harrow is installed, also in projects that have a package `cli` themselves.
"""
