"""What a run costs: for clusters of many sizes, beside a commit, and as they grow."""
