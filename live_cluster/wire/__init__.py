"""Requests to real brokers, one at a time, in any version of any API.

The schemas are kafka-python's. A function that takes a `BrokerConnection` raises
`ConnectionLostError` if the broker does not answer in time, answers something else, or does not
know the request. The docstrings of these functions do not repeat this.
"""
