"""Writers of the lock table that die, sleep, or don't use it, at every step they have."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest

from lakelog.logstores.errors import CommitOutcomeUnknownError
from lakelog.logstores.s3_dynamodb import LockTableError, LostDraftError, TableBypassedError
from lakelog.logstores.s3_dynamodb.lock_rows import CommitRow, commit_file_name
from support.lock_table import PREFIX, TTL, CrashError, Hand, World

if TYPE_CHECKING:
    from collections.abc import Callable

DAY = 86_400.0


def requests_of(work: Callable[[Hand], object]) -> list[str]:
    """The pauses that a piece of work passes, on a table with one commit."""
    pauses: list[str] = []
    world = World()
    Hand(world).write(0, "zero")
    work(Hand(world, pauses.append))
    return pauses


COMMIT = requests_of(lambda hand: hand.write(1, "one"))
COMMIT_OF_THE_JVM = requests_of(lambda hand: hand.write_as_the_jvm(1, "one"))


def stop_at(number: int, then: Callable[[], None]) -> Callable[[str], None]:
    """Do something at the pause of a number."""
    passed = 0

    def pause(_: str) -> None:
        nonlocal passed
        if passed == number:
            passed += 1
            then()
        passed += 1

    return pause


def die() -> None:
    raise CrashError


def crashed(at: int, *, jvm: bool = False) -> World:
    """A log with one commit, whose second writer died at a pause."""
    world = World()
    Hand(world).write(0, "zero")
    hand = Hand(world, stop_at(at, die))
    with pytest.raises(CrashError):
        (hand.write_as_the_jvm if jvm else hand.write)(1, "one")
    return world


def test_a_commit_takes_the_steps_of_delta_in_their_order() -> None:
    before, name = commit_file_name(0), commit_file_name(1)
    draft = f".tmp/{name}.<uuid>"
    seen = [re.sub(r"[0-9a-f]{8}-[0-9a-f-]{27}", "<uuid>", each) for each in COMMIT]
    assert [each.replace(PREFIX, "") for each in seen] == [
        f"head {name}",
        "newest row",
        f"head {before}",
        *(f"create {draft}", f"created {draft}"),
        *(f"insert row {name}", f"inserted row {name}"),
        *(f"create {name}", f"created {name}"),
        *(f"replace row {name}", f"replaced row {name}"),
    ]


@pytest.mark.parametrize("at", range(len(COMMIT)))
def test_after_a_crash_at_any_step_a_listing_finishes_or_finds_nothing(at: int) -> None:
    world = crashed(at)
    decided = world.row(1) is not None
    assert Hand(world).list_versions() == ([0, 1] if decided else [0])
    assert world.text(1) == ("one" if decided else None)
    row = world.row(1)
    assert row is None or row.complete


@pytest.mark.parametrize("at", range(len(COMMIT)))
def test_after_a_crash_at_any_step_a_read_of_the_version_finds_what_was_decided(at: int) -> None:
    world = crashed(at)
    decided = world.row(1) is not None
    assert Hand(world).read(1) == ("one" if decided else None)


@pytest.mark.parametrize("jvm", [False, True])
@pytest.mark.parametrize("at", range(len(COMMIT)))
def test_after_a_crash_at_any_step_the_next_writer_goes_on(at: int, jvm: bool) -> None:
    world = crashed(at)
    hand = Hand(world)
    write = hand.write_as_the_jvm if jvm else hand.write
    version = 1 if world.row(1) is None else 2
    if version == 2:
        with pytest.raises(FileExistsError):
            hand.write(1, "rival")
        assert world.text(1) == "one", "the loser can read the winner at once"
    write(version, "next")
    assert world.log() == (
        {0: "zero", 1: "one", 2: "next"} if version == 2 else {0: "zero", 1: "next"}
    )


@pytest.mark.parametrize("at", range(len(COMMIT_OF_THE_JVM)))
def test_a_crash_of_the_jvm_at_any_step_is_mended_by_us(at: int) -> None:
    world = crashed(at, jvm=True)
    decided = world.row(1) is not None
    version = 2 if decided else 1
    Hand(world).write(version, "next")
    assert world.log() == {0: "zero", **({1: "one"} if decided else {}), version: "next"}


@pytest.mark.parametrize("jvm", [False, True])
def test_who_loses_at_the_row_is_told_so_and_can_read_the_winner_even_if_that_one_died(
    jvm: bool,
) -> None:
    world = World()
    Hand(world).write(0, "zero")

    def die_ahead() -> None:
        pauses = COMMIT_OF_THE_JVM if jvm else COMMIT
        dying = Hand(world, stop_at(pauses.index(f"inserted row {commit_file_name(1)}"), die))
        with pytest.raises(CrashError):
            (dying.write_as_the_jvm if jvm else dying.write)(1, "winner")

    hand = Hand(world, stop_at(COMMIT.index(f"insert row {commit_file_name(1)}"), die_ahead))
    with pytest.raises(FileExistsError):
        hand.write(1, "loser")
    assert world.log() == {0: "zero", 1: "winner"}


@pytest.mark.parametrize("jvm", [False, True])
@pytest.mark.parametrize("at", range(len(COMMIT)))
def test_two_who_finish_one_commit_at_once_agree(at: int, jvm: bool) -> None:
    world = crashed(at)
    row = world.row(1)
    if row is None or row.complete:
        return
    finishing = requests_of(lambda hand: hand.log.finish(CommitRow(*_key(1), ".tmp/none", True)))
    assert finishing == [], "a complete row costs nothing"
    for point in range(6):

        def meanwhile(row: CommitRow = row) -> None:
            hand = Hand(world)
            (hand.fix_as_the_jvm if jvm else hand.log.finish)(row)

        Hand(world, stop_at(point, meanwhile)).log.finish(row)
        assert world.text(1) == "one"
        finished = world.row(1)
        assert finished is not None
        assert finished.complete


def _key(version: int) -> tuple[str, str]:
    return "s3a://bucket/t", commit_file_name(version)


def test_older_commits_need_no_look_since_each_writer_finishes_its_predecessor() -> None:
    world = crashed(COMMIT.index(f"inserted row {commit_file_name(1)}"))
    Hand(world).write(2, "two")
    assert all(row.complete for row in world.rows.values())


# Sleepers: the row of the rival has expired when they wake up.


@pytest.mark.parametrize("heeds", [True, False])
@pytest.mark.parametrize("at", range(len(COMMIT)))
def test_a_writer_that_slept_past_the_expiry_of_its_rivals_row_does_no_harm(
    at: int, heeds: bool
) -> None:
    world = World(heeds=heeds)
    Hand(world).write(0, "zero")

    def sleep() -> None:
        if world.row(1) is None:
            Hand(world).write(1, "rival")
        else:
            Hand(world).list_versions()
        world.now += TTL + DAY
        world.expire()

    hand = Hand(world, stop_at(at, sleep))
    try:
        hand.write(1, "one")
    except FileExistsError:
        assert world.text(1) == "rival"
    else:
        assert world.text(1) == "one", "what was acknowledged is there"
    assert sorted(world.log()) == [0, 1]
    Hand(world).write(2, "two")


@pytest.mark.parametrize("at", range(COMMIT.index(f"inserted row {commit_file_name(1)}") + 1))
def test_a_writer_that_slept_until_cleanup_removed_its_version_does_not_make_it_again(
    at: int,
) -> None:
    world = World()
    Hand(world).write(0, "zero")

    def sleep() -> None:
        if world.row(1) is not None:
            return
        for version in (1, 2, 3):
            Hand(world).write(version, f"rival {version}")
        world.now += TTL + DAY
        world.expire()
        for version in (0, 1):
            del world.objects[PREFIX + commit_file_name(version)]

    inserted = COMMIT.index(f"inserted row {commit_file_name(1)}")
    hand = Hand(world, stop_at(at, sleep))
    if at < inserted:
        with pytest.raises(OSError, match=r"exists|does not exist"):
            hand.write(1, "one")
        assert sorted(world.log()) == [2, 3]
    else:
        hand.write(1, "one")
        assert world.log() == {0: "zero", 1: "one"}
    Hand(world).list_versions()
    Hand(world).write(max(world.log()) + 1, "next")


def test_a_sleeper_that_died_behind_a_cleaned_log_leaves_a_row_that_makes_no_file() -> None:
    world = World()
    for version in range(4):
        Hand(world).write(version, f"{version}")
    world.now += TTL + DAY
    world.expire()
    for version in (0, 1):
        del world.objects[PREFIX + commit_file_name(version)]
    world.rows[_key(1)] = CommitRow(*_key(1), ".tmp/dead")
    world.objects[PREFIX + ".tmp/dead"] = (b"one", None, world.now)
    assert Hand(world).list_versions() == [2, 3]


def test_the_row_of_a_sleeper_that_died_is_laid_to_rest_and_its_rivals_file_stands() -> None:
    world = World()
    Hand(world).write(0, "zero")
    Hand(world).write(1, "rival")
    world.now += TTL + DAY
    world.expire()
    row = CommitRow(*_key(1), ".tmp/dead")
    world.rows[_key(1)] = row
    world.objects[PREFIX + ".tmp/dead"] = (b"one", None, world.now)
    assert Hand(world).list_versions() == [0, 1]
    assert world.text(1) == "rival"
    finished = world.row(1)
    assert finished is not None
    assert finished.complete


@pytest.mark.parametrize("rival", [True, False])
@pytest.mark.parametrize("request_", ["head", "create"])
def test_a_sleeper_whose_file_can_not_be_made_is_told_that_no_one_knows(
    rival: bool, request_: str
) -> None:
    world = World()
    Hand(world).write(0, "zero")
    asleep = False

    def pause(name: str) -> None:
        nonlocal asleep
        if name == f"insert row {commit_file_name(1)}" and not asleep:
            asleep = True
            if rival:
                Hand(world).write(1, "rival")
            world.now += TTL + DAY
            world.expire()
        if asleep and name == f"{request_} {PREFIX}{commit_file_name(1)}":
            raise PermissionError("may not")

    with pytest.raises(CommitOutcomeUnknownError, match="may not"):
        Hand(world, pause).write(1, "one")
    assert Hand(world).list_versions() == [0, 1]
    assert world.text(1) == ("rival" if rival else "one")


# Writers that bypass the table.


def bypass(world: World, version: int, text: str = "bypassed") -> None:
    key = PREFIX + commit_file_name(version)
    world.objects[key] = (text.encode(), "another token", world.now)


def test_a_commit_after_one_that_bypassed_the_table_is_refused() -> None:
    world = World()
    Hand(world).write(0, "zero")
    bypass(world, 1)
    with pytest.raises(TableBypassedError, match=r"0001\.json is new and has no row.*0000\.json"):
        Hand(world).write(2, "two")
    assert sorted(world.log()) == [0, 1]
    assert world.row(2) is None


def test_a_bypass_between_row_and_file_is_reported_as_unknown_and_stops_all_of_us() -> None:
    world = World()
    Hand(world).write(0, "zero")
    inserted = COMMIT.index(f"inserted row {commit_file_name(1)}")
    hand = Hand(world, stop_at(inserted, lambda: bypass(world, 1)))
    with pytest.raises(CommitOutcomeUnknownError, match="bypasses the DynamoDB table"):
        hand.write(1, "one")
    for work in (Hand(world).list_versions, lambda: Hand(world).write(2, "two")):
        with pytest.raises(TableBypassedError, match=r"lakelog migrate s3a://bucket/t --to dynamo"):
            work()
    assert world.text(1) == "bypassed"


def test_the_guard_can_be_turned_off() -> None:
    world = World()
    Hand(world, guard=False).write(0, "zero")
    bypass(world, 1)
    Hand(world, guard=False).write(2, "two")
    inserted = COMMIT.index(f"inserted row {commit_file_name(1)}")
    hand = Hand(world, stop_at(inserted, lambda: bypass(world, 3)), guard=False)
    with pytest.raises(FileExistsError):
        hand.write(3, "three")
    assert Hand(world, guard=False).list_versions() == [0, 1, 2, 3]


def test_the_guard_is_silent_on_a_table_that_came_from_another_store() -> None:
    world = World()
    for version in range(3):
        bypass(world, version, f"before {version}")
    Hand(world).write(3, "three")
    assert Hand(world).list_versions() == [0, 1, 2, 3]


def test_the_guard_is_silent_where_rows_expired_in_any_order() -> None:
    world = World()
    for version in range(3):
        Hand(world).write(version, f"{version}")
    world.now += TTL + 1
    del world.rows[_key(2)]
    Hand(world).write(3, "three")
    world.now += TTL + 1
    world.expire()
    Hand(world).write(4, "four")
    assert sorted(world.log()) == list(range(5))


def test_the_guard_is_silent_where_the_predecessor_comes_while_it_is_looked_for() -> None:
    world = World()
    Hand(world).write(0, "zero")
    look = COMMIT.index("newest row") + 1
    Hand(world, stop_at(look, lambda: Hand(world).write(1, "one"))).write(2, "two")
    assert sorted(world.log()) == [0, 1, 2]


def test_a_predecessor_that_comes_unfinished_while_it_is_looked_for_is_finished() -> None:
    world = World()
    Hand(world).write(0, "zero")

    def die_before_the_end() -> None:
        replacing = COMMIT.index(f"replace row {commit_file_name(1)}")
        with pytest.raises(CrashError):
            Hand(world, stop_at(replacing, die)).write(1, "one")

    look = COMMIT.index("newest row") + 1
    Hand(world, stop_at(look, die_before_the_end)).write(2, "two")
    assert world.log() == {0: "zero", 1: "one", 2: "two"}
    assert all(row.complete for row in world.rows.values())


def test_the_guard_is_silent_where_another_writer_copied_the_draft_later() -> None:
    world = crashed(COMMIT.index(f"inserted row {commit_file_name(1)}"))
    world.now += TTL * 3
    row = world.row(1)
    assert row is not None
    Hand(world).fix_as_the_jvm(row)
    Hand(world).write(2, "two")


# What nobody can mend is said.


def test_a_draft_that_is_gone_is_named_with_the_way_out() -> None:
    world = crashed(COMMIT.index(f"inserted row {commit_file_name(1)}"))
    row = world.row(1)
    assert row is not None
    del world.objects[PREFIX + row.temp_path]
    for work in (
        Hand(world).list_versions,
        lambda: Hand(world).read(1),
        lambda: Hand(world).write(2, "two"),
    ):
        with pytest.raises(LostDraftError, match=f"{row.temp_path} is gone.*delete-item"):
            work()
    finished = world.row(1)
    assert finished is not None
    assert not finished.complete


@pytest.mark.parametrize("failure", [PermissionError("may not put"), ValueError("of the SDK")])
def test_a_row_is_never_completed_where_its_file_could_not_be_made(failure: Exception) -> None:
    world = World()
    Hand(world).write(0, "zero")

    def fail(pause: str) -> None:
        if pause == f"create {PREFIX}{commit_file_name(1)}":
            raise failure

    Hand(world, fail).write(1, "one")
    row = world.row(1)
    assert row is not None
    assert not row.complete
    assert Hand(world).read(1) == "one", "the commit was acknowledged, so everybody finds it"


def test_rows_of_a_table_that_was_dropped_are_told_apart_from_a_lost_race() -> None:
    world = World()
    for version in range(3):
        Hand(world).write(version, f"{version}")
    world.objects.clear()
    with pytest.raises(LockTableError, match="old rows of a table that was dropped"):
        Hand(world).write(0, "anew")


def test_a_missing_predecessor_is_refused() -> None:
    world = World()
    Hand(world).write(0, "zero")
    with pytest.raises(OSError, match=r"previous commit .*0001\.json does not exist.*no row"):
        Hand(world).write(2, "two")
    assert sorted(world.log()) == [0]


def test_rows_under_another_scheme_are_found_before_the_first_commit() -> None:
    world = World()
    Hand(world).write(0, "zero")
    row = world.rows.pop(_key(0))
    world.rows["s3://bucket/t", row.file_name] = CommitRow(
        "s3://bucket/t", row.file_name, row.temp_path, True, int(world.now) + TTL
    )
    with pytest.raises(LockTableError, match=r"has rows for s3://bucket/t .*keyScheme=s3\."):
        Hand(world).write(1, "one")
    world.now += TTL + 1  # expired, if not deleted yet: those writers are gone
    Hand(world).write(1, "one")
