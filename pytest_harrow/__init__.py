"""The pytest plugin: collects campaign files as tests, and runs campaigns from Python in a fixture.

pytest imports this package in every project where harrow is installed. So it imports harrow's other
packages only when a project has a campaign.
"""
