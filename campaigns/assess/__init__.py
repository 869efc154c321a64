"""Assesses a cluster: what each fault model does to records and service under its settings."""
