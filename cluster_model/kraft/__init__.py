"""KRaft: a quorum of controllers that keeps a cluster's metadata as a replicated log."""
