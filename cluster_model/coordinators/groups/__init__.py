"""Consumer groups, classic protocol: who is a member, who reads what, and up to where a group has read."""
