"""Lets real clients use the model of a cluster, through ports on this machine."""
