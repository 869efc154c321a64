"""What brokers and controllers log, read while they write it: why a log was cut, why a leader was elected."""
