"""Defines the interface of targets, what all targets share, and the model as a target."""
