"""The pytest plugin: collects campaign files as tests, and runs campaigns from Python in a fixture.

pytest imports it in every project where harrow is installed. So it imports the other packages only
when a campaign is there.
"""
