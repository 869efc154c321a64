"""A promise says in words which settings permit an exception."""

from harrow.checks.permission import Permission, Promise


def test_settings_with_the_same_restriction_share_an_entry() -> None:
    lost = "when the record is lost"
    promise = Promise(
        promised_by=("high watermark",),
        permissions=(
            Permission(setting="acks=0"),
            Permission(setting="retention.ms", when=lost),
            Permission(setting="acks=1", when="until the record is committed"),
            Permission(setting="disk failure", when=lost),
            Permission(setting="disk failure", when=lost),
            Permission(setting="DeleteRecords", when=lost),
        ),
    )
    assert promise.permitted_by == (
        "acks=0",
        "retention.ms, disk failure or DeleteRecords, when the record is lost",
        "acks=1, until the record is committed",
    )
