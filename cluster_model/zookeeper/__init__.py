"""ZooKeeper as a control plane, and what a broker does there."""
