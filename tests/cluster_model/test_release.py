"""Release profiles: what each release does, switch by switch, and the mutants."""

import pytest

from harrow.cluster_model.release.profiles import (
    MUTANTS,
    RELEASES,
    REPAIRED_SINCE,
    REPAIRS,
    SWITCHES,
    Behaviours,
)
from harrow.cluster_model.release.replication import (
    ANSWERED_EPOCH,
    HIGH_WATERMARK,
    LEADER_EPOCH,
    NO_TRUNCATION,
)
from harrow.cluster_model.release.switch import DEFAULT_RELEASE, Mutant, Repair

# The first profile in which a switch has a value, from the KIPs and the source of the releases.
FIRST_RELEASES: dict[str, dict[str, object]] = {
    "follower_truncation": {
        "0.10.2": HIGH_WATERMARK,
        "0.11": LEADER_EPOCH,
        "2.0": ANSWERED_EPOCH,
    },  # KIP-101, KIP-279
    "epoch_entry_on_election": {"0.10.2": False, "2.0": True},  # KAFKA-7415, 2.0.1
    "isr_expansion_checks_epoch_start": {"0.10.2": False, "2.0": True},  # KAFKA-7128, 2.0.1
    "fetch_leader_epoch_fencing": {"0.10.2": False, "2.4": True},  # KIP-320, 2.1
    "fetch_sessions": {"0.10.2": False, "1.1": True},  # KIP-227, 1.1
    "fetch_sessions_keep_epoch": {"0.10.2": False, "2.8": True},  # KAFKA-9338, 2.5
    "control_requests_carry_broker_epoch": {"0.10.2": False, "2.4": True},  # KIP-380, 2.2
    "controller_writes_fenced": {"0.10.2": False, "2.4": True},  # KAFKA-6082, 2.1
    "requests_wait_for_registration": {"0.10.2": False, "2.0": True},  # KAFKA-6772, 2.0
    "broker_opens_sockets_when_ready": {"0.10.2": False, "3.6": True},  # KAFKA-14658, 3.5
    "idempotence": {"0.10.2": False, "0.11": True},  # KIP-98
    "retention_waits_for_hw": {"0.10.2": False, "0.11": True},  # KAFKA-5634, 0.11.0.1
    "cleaner_waits_for_hw": {"0.10.2": False, "3.6": True},  # KAFKA-13194, 3.1
    "tombstones_have_delete_horizon": {"0.10.2": False, "3.6": True},  # KIP-534, 3.1
    "cleaner_retains_empty_last_batch": {"0.10.2": False, "4.0": True},  # KAFKA-17076, 4.0
    "log_start_follows_leader": {"0.10.2": False, "0.11": True},  # KIP-107
    "follower_accepts_log_start_mid_batch": {"0.10.2": False, "1.1": True},  # KAFKA-6975, 1.0.2 and 1.1.1
    "producer_batches_retained": {"0.10.2": 0, "0.11": 1, "1.1": 5},  # KAFKA-5494, 1.0
    "idempotent_in_flight_max": {"0.10.2": 1, "1.1": 5},  # KAFKA-5494, 1.0
    "unknown_producer_id_error": {"0.10.2": False, "1.1": True},  # KAFKA-5793, 1.0
    "unknown_producer_sequence_accepted": {"0.10.2": False, "2.8": True},  # KIP-360, 2.5
    "delivery_timeout": {"0.10.2": False, "2.4": True},  # KIP-91, 2.1
    "sticky_partitioner": {"0.10.2": False, "2.4": True},  # KIP-480, 2.4
    "truncation_drops_empty_last_epoch": {"0.10.2": False, "2.8": True},  # KAFKA-10706, 2.6.1
    "maximal_isr": {"0.10.2": False, "2.8": True},  # KIP-497, 2.7
    "isr_expansion_checks_registration": {"0.10.2": False, "3.6": True},  # KIP-841, 3.3
    "hw_ignores_unregistered_followers": {"0.10.2": False, "3.6": True},  # KAFKA-15021, 3.6
    "truncation_on_fetch": {"0.10.2": False, "2.8": True},  # KIP-595, 2.7
    "requests_wait_for_isr_write": {"0.10.2": True, "2.8": False},  # KIP-497, 2.7
    "reelection_counts_as_fetch": {"0.10.2": True, "3.6": False},  # 3.3
    "producer_bumps_epoch": {"0.10.2": False, "2.8": True},  # KIP-360, 2.5
    "empty_log_requires_sequence_zero": {
        "0.10.2": True,
        "2.8": False,
    },  # KIP-360, 2.5, until KAFKA-15591, 4.5
    "unknown_producer_sequence_is_zero": {"0.10.2": True, "2.8": False},  # KIP-360, 2.5 (KAFKA-14359)
    "kraft_allows_unclean_election": {"0.10.2": False, "3.9": True},  # KAFKA-12670, 3.9
    "log_dir_failure_reported": {"0.10.2": False, "3.9": True},  # KIP-858, 3.7
    "hw_waits_for_min_isr": {"0.10.2": False, "3.9": True},  # KAFKA-15583, 3.7
    "producer_fenced_error": {"0.10.2": False, "2.8": True},  # KIP-588, 2.7
    "repeated_registration_keeps_epoch": {"0.10.2": False, "3.9": True},  # KAFKA-16952, 3.9
    "unfencing_resets_broker_metadata_offset": {"0.10.2": False, "3.9": True},  # 32576f61ce8, 3.7
    "transaction_verification": {"0.10.2": False, "3.6": True},  # KIP-890, 3.6
    "transactional_commits_verified": {"0.10.2": False, "3.9": True},  # KAFKA-15784, 3.7
    "transaction_abortable_error": {"0.10.2": False, "3.9": True},  # KAFKA-16314, 3.8
    "transactions_v2": {"0.10.2": False, "4.0": True},  # KIP-890, 4.0
    "ongoing_transaction_checks_epoch": {"0.10.2": False, "4.0": True},  # KAFKA-18575, 4.0
    "stale_epoch_refused_before_verification": {"0.10.2": False, "4.3": True},  # KAFKA-18042, 4.1
    "stale_epoch_reported_before_txn_state": {
        "0.10.2": False,
        "3.9": True,
    },  # KAFKA-19690, 3.9.2, 4.0.1, 4.1.1
    "cleaner_retains_empty_batch_only_at_hw": {"0.10.2": False, "4.4": True},  # KAFKA-20452, 4.4
    "assignor_change_triggers_assignment": {"0.10.2": False, "4.4": True},  # KAFKA-20434, 4.4
    "emptied_group_assigns_at_once": {"0.10.2": False, "4.4": True},  # KAFKA-20442, 4.4
    "static_member_rejoins_full_group": {"0.10.2": False, "4.4": True},  # KAFKA-20601, 4.4
    "previous_instance_id_released": {"0.10.2": False, "4.4": True},  # 4.4
    "specific_transactional_commit_errors": {"0.10.2": False, "4.4": True},  # KIP-1319, 4.4
    "stale_fetch_response_ignored": {"0.10.2": False, "3.9": True},  # KAFKA-18991, 3.9.1, 4.0.1
    "min_isr_limited_to_replica_count": {"0.10.2": False, "3.9": True},  # KAFKA-15583, 3.7
}

IN_EVERY_RELEASE = [
    "cleaner_retains_latest_record",
    "cleaner_retains_tombstones",
    "controller_epoch_fencing",
    "leader_epoch_fencing",
    "sequence_check",
    "hw_waits_for_whole_isr",
    "ack_waits_for_hw",
    "consumer_reads_below_hw",
    "hw_never_falls",
    "hw_limited_to_log_end",
    "recovery_point_follows_flush",
    "epoch_cache_truncated_with_log",
    "isr_expansion_checks_hw",
    "isr_shrink_waits_for_write",
    "leader_discards_refused_isr",
    "isr_write_conditional",
    "min_isr_checked",
    "deposed_leader_fails_pending_produces",
    "truncation_rebuilds_producer_state",
    "followers_track_producer_state",
    "unclean_election_only_if_enabled",
    "preferred_leader_must_be_in_isr",
    "diverging_fetch_keeps_follower_leo",
    "duplicate_ack_waits_for_hw",
    "shutdown_flushes_logs",
    "unclean_shutdown_removes_from_elr",
    "alter_partition_fenced",
    "election_raises_leader_epoch",
    "producer_ids_allocated_once",
    "one_vote_per_epoch",
    "snapshot_replaces_only_shorter_log",
    "snapshot_of_committed_metadata",
    "transactional_producer_epoch_checked",
    "lso_below_open_transactions",
    "markers_written_to_all_partitions",
    "new_coordinator_completes_commit",
]

IN_NO_RELEASE = [
    "abandoned_batch_keeps_sequence",
    "repeated_isr_write_recognised",
    "reelected_leader_forgets_positions",
    "isr_change_survives_repeated_state",
    "recovery_restores_earlier_epochs",
    "coordinator_load_waits_for_commit",
]


@pytest.mark.parametrize("switch", FIRST_RELEASES)
def test_a_switch_has_its_documented_value_in_every_release(switch: str) -> None:
    value: object = None
    expected = {}
    for name in RELEASES:
        value = FIRST_RELEASES[switch].get(name, value)
        expected[name] = value
    assert {name: release.behaviours.value(switch) for name, release in RELEASES.items()} == expected


@pytest.mark.parametrize("switch", IN_EVERY_RELEASE)
def test_some_switches_are_on_in_every_release(switch: str) -> None:
    assert {release.behaviours.value(switch) for release in RELEASES.values()} == {True}


@pytest.mark.parametrize("switch", IN_NO_RELEASE)
def test_some_safe_switches_are_off_in_every_release(switch: str) -> None:
    assert {release.behaviours.value(switch) for release in RELEASES.values()} == {False}
    assert SWITCHES[switch].safe is True


def test_releases_are_listed_oldest_first() -> None:
    assert list(RELEASES) == ["0.10.2", "0.11", "1.1", "2.0", "2.4", "2.8", "3.6", "3.9", "4.0", "4.3", "4.4"]
    versions = [release.version for release in RELEASES.values()]
    assert versions == sorted(versions)
    assert RELEASES[DEFAULT_RELEASE].behaviours == Behaviours()


@pytest.mark.parametrize("mutant", MUTANTS.values(), ids=list(MUTANTS))
def test_a_mutant_sets_one_switch_to_a_value_that_its_release_does_not_have(mutant: Mutant) -> None:
    assert MUTANTS[mutant.name] == mutant
    sound = RELEASES[mutant.kafka].behaviours
    if mutant.switch not in UNREPAIRED:
        assert sound.value(mutant.switch) != mutant.value
    assert mutant.value in SWITCHES[mutant.switch].choices


UNREPAIRED = (
    *("fetch_sessions_keep_epoch", "maximal_isr", "stale_fetch_response_ignored"),
    *("abandoned_batch_keeps_sequence", "repeated_isr_write_recognised"),
    *(
        "empty_log_requires_sequence_zero",
        "reelected_leader_forgets_positions",
        "isr_change_survives_repeated_state",
    ),
    "coordinator_load_waits_for_commit",
)
"""Flaws that the release of the mutant has too: the swarms repair them."""


@pytest.mark.parametrize("switch", SWITCHES)
def test_every_switch_is_documented_and_every_release_has_one_of_its_choices(switch: str) -> None:
    documented = SWITCHES[switch]
    assert documented.doc.endswith(".")
    assert documented.source
    for release in RELEASES.values():
        assert release.behaviours.value(switch) in documented.choices


@pytest.mark.parametrize("switch", SWITCHES)
def test_every_switch_has_a_safe_value_and_its_meaning(switch: str) -> None:
    documented = SWITCHES[switch]
    assert documented.safe in documented.choices
    assert documented.meaning
    assert not documented.meaning.endswith(".")


@pytest.mark.parametrize("mutant", MUTANTS.values(), ids=list(MUTANTS))
def test_no_mutant_is_safe(mutant: Mutant) -> None:
    assert mutant.value != SWITCHES[mutant.switch].safe


def test_later_repairs_of_the_default_release_are_listed_with_their_values() -> None:
    assert REPAIRED_SINCE == {
        "cleaner_retains_empty_last_batch": True,
        "cleaner_waits_for_hw": True,
        "truncation_drops_empty_last_epoch": True,
        "stale_fetch_response_ignored": True,
        "fetch_sessions_keep_epoch": True,
        "previous_incarnation_fetch_ignored": True,
        "hw_ignores_unregistered_followers": True,
        "isr_expansion_checks_registration": True,
        "maximal_isr": True,
        "ongoing_transaction_checks_epoch": True,
        "static_leader_skips_assignment": True,
        "transaction_verification": True,
        "transactional_commits_verified": True,
        "transactions_v2": True,
        "unknown_producer_sequence_accepted": True,
    }


@pytest.mark.parametrize("repair", REPAIRS.values(), ids=list(REPAIRS))
def test_a_repair_is_in_the_profiles_since_its_release(repair: Repair) -> None:
    if repair.switch is None:
        assert repair.is_opt_in
        return
    since = [release.version >= repair.version[: len(release.version)] for release in RELEASES.values()]
    assert False in since
    if True not in since:
        assert REPAIRED_SINCE.get(repair.switch, repair.value) == repair.value
        return
    arrived = RELEASES[list(RELEASES)[since.index(True)]]
    last_without = RELEASES[list(RELEASES)[since.index(True) - 1]]
    assert last_without.behaviours.value(repair.switch) != arrived.behaviours.value(repair.switch)


def test_a_repair_is_missing_only_at_values_that_releases_before_it_had() -> None:
    kip_101, kip_279 = REPAIRS["KIP-101"], REPAIRS["KIP-279"]
    values = (HIGH_WATERMARK, LEADER_EPOCH, ANSWERED_EPOCH, NO_TRUNCATION)
    assert [kip_101.is_missing(value) for value in values] == [True, False, False, False]
    assert [kip_279.is_missing(value) for value in values] == [True, True, False, False]


def test_a_switch_is_hidden_only_by_switches() -> None:
    assert {other for switch in SWITCHES.values() for other in switch.hidden_by} <= set(SWITCHES)
