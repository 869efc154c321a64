"""What holds for all tests."""

import signal

# A shell that starts something in the background may have told it to ignore interrupts, and
# processes that tests start would inherit that.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)
