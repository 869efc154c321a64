"""Models the coordinators of transactions and of groups.

A broker coordinates the transactional ids or groups in each partition of an internal topic that it
leads.
"""
