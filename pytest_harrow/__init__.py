"""The pytest plugin: campaign files as tests, and a fixture that runs campaigns from Python.

pytest imports it in every project where harrow is installed, so it imports the other rooms only when
a campaign is there.
"""
