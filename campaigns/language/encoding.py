"""Says why the bytes of a file are no text in UTF-8."""

from typing import Final

UTF16_MARKS: Final = (b"\xff\xfe", b"\xfe\xff")
"""How a file in UTF-16 begins."""

UTF16: Final = "UTF-16, as PowerShell writes it: save it as UTF-8"


def encoding_mistake(error: UnicodeDecodeError) -> str:
    """Return what is wrong with bytes that cannot be decoded as UTF-8."""
    if error.object.startswith(UTF16_MARKS):
        return UTF16
    return f"not UTF-8: the byte 0x{error.object[error.start]:02x}"
