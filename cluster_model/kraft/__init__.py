"""Models KRaft: a quorum of controllers keeps a cluster's metadata as a replicated log."""
