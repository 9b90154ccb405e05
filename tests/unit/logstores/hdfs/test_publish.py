"""A rename whose answer was lost, and what is said when the next try is refused for good."""

from __future__ import annotations

import errno
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, cast

import pytest

from lakelog.logstores import CommitOutcomeUnknownError
from lakelog.logstores.hdfs.publish import publish
from lakelog.logstores.object_store.store import RetryPolicy, TryAgainError

if TYPE_CHECKING:
    from collections.abc import Callable

    from lakelog.logstores.hdfs.client import HdfsClient

DRAFT = "/t/_delta_log/.0.json.x.tmp"
TARGET = "/t/_delta_log/0.json"
BODY = b"mine\n"


class NameNode:
    """Files, and what becomes of each rename and delete."""

    def __init__(
        self, *, lands: bool, refusal: Exception, delete: bool, confirm: bool = True
    ) -> None:
        self.files = {DRAFT: BODY}
        self.confirmed: list[str] = []
        self._may_confirm = confirm
        self._lands = lands
        self._refusal = refusal
        self._may_delete = delete
        self._renames = 0

    def rename(self, source: str, target: str, *, overwrite: bool) -> None:
        self._renames += 1
        if self._renames > 1:
            raise self._refusal
        if self._lands:
            self.files[target] = self.files.pop(source)
        raise TryAgainError("the answer was lost", may_have_landed=True)

    def delete(self, path: str) -> bool:
        if not self._may_delete:
            raise self._refusal
        return self.files.pop(path, None) is not None

    def status(self, path: str) -> Any:
        if path in self.files:
            return SimpleNamespace(length=len(self.files[path]))
        return SimpleNamespace(length=0) if path == "/t/_delta_log" else None

    def confirm(self, path: str, status: Any) -> None:
        if not self._may_confirm:
            raise self._refusal
        self.confirmed.append(path)

    def reader(self, path: str) -> bytes:
        return self.files[path]

    def piece(self, path: str, reader: bytes, at: int, count: int) -> bytes:
        return reader[at : at + count]

    def again(self, path: str, request: Callable[[], Any]) -> Any:
        return request()


REFUSALS = [
    OSError(errno.EROFS, "safe mode"),
    PermissionError(errno.EACCES, "the ticket has expired"),
    OSError(errno.EIO, "disk on fire"),
]


def published(node: NameNode) -> None:
    publish(
        cast("HdfsClient", node), DRAFT, TARGET, BODY, RetryPolicy(first_wait=0.0), overwrite=False
    )


@pytest.mark.parametrize("refusal", REFUSALS)
@pytest.mark.parametrize("lands", [True, False])
def test_a_refusal_after_a_lost_answer_is_no_proof_that_nothing_was_made(
    refusal: Exception, lands: bool
) -> None:
    """A NameNode that restarts over a rename comes back in safe mode and refuses the next one."""
    node = NameNode(lands=lands, refusal=refusal, delete=False)
    with pytest.raises(CommitOutcomeUnknownError, match="the answer was lost"):
        published(node)


@pytest.mark.parametrize("refusal", REFUSALS)
def test_a_draft_that_is_gone_tells_that_the_lost_rename_was_made(refusal: Exception) -> None:
    node = NameNode(lands=True, refusal=refusal, delete=True)
    published(node)
    assert node.files == {TARGET: BODY}
    assert node.confirmed == [TARGET]


@pytest.mark.parametrize("refusal", REFUSALS)
def test_a_rename_that_is_seen_and_not_confirmed_is_no_commit(refusal: Exception) -> None:
    """A NameNode shows it before it is safe in its log, and may take it back."""
    node = NameNode(lands=True, refusal=refusal, delete=True, confirm=False)
    with pytest.raises(CommitOutcomeUnknownError, match="confirmed"):
        published(node)


@pytest.mark.parametrize("refusal", REFUSALS)
def test_a_draft_that_can_be_deleted_tells_that_it_was_not(refusal: Exception) -> None:
    node = NameNode(lands=False, refusal=refusal, delete=True)
    with pytest.raises(OSError, match="was not written"):
        published(node)
    assert node.files == {}


def test_a_name_that_is_taken_is_a_conflict_whatever_was_lost_before() -> None:
    node = NameNode(lands=False, refusal=FileExistsError(errno.EEXIST, "taken"), delete=True)
    with pytest.raises(FileExistsError):
        published(node)


LOST = TryAgainError("no answer", may_have_landed=True)


class Lossy(NameNode):
    """Loses the answer to each rename, and to so many deletions, after what a story does."""

    def __init__(self, *stories: Callable[[dict[str, bytes]], None]) -> None:
        super().__init__(lands=False, refusal=OSError(errno.EROFS, "safe mode"), delete=True)
        self._stories = list(stories)

    def delete(self, path: str) -> bool:
        if self._stories:
            self._stories.pop(0)(self.files)
            raise LOST
        return super().delete(path)


def _deletes(files: dict[str, bytes]) -> None:
    files.pop(DRAFT, None)


def _renames(files: dict[str, bytes]) -> None:
    files[TARGET] = files.pop(DRAFT)


def test_a_draft_and_no_target_is_no_commit_whatever_was_lost() -> None:
    """A deletion was carried out and its answer lost: no late rename can find the draft."""
    node = Lossy(_deletes)
    with pytest.raises(OSError, match="was not written"):
        published(node)
    assert node.files == {}


@pytest.mark.parametrize("theirs", [BODY, b"others\n"])
def test_a_draft_that_a_lost_deletion_may_have_taken_proves_nothing(theirs: bytes) -> None:
    def story(files: dict[str, bytes]) -> None:
        _deletes(files)
        files[TARGET] = theirs

    with pytest.raises(CommitOutcomeUnknownError, match="did not settle it"):
        published(Lossy(story))


def test_a_lost_deletion_of_nothing_leaves_no_doubt() -> None:
    node = Lossy(lambda _: None, lambda _: None)
    _renames(node.files)
    published(node)
    assert node.files == {TARGET: BODY}


def test_a_rename_that_a_failover_took_back_is_none() -> None:
    """The first NameNode showed it; the one that took over has the draft, and deletes it."""
    node = Lossy(lambda files: files.update({DRAFT: BODY, TARGET: b"old\n"}), _deletes)
    node.files = {TARGET: BODY}
    with pytest.raises(CommitOutcomeUnknownError, match="did not settle it"):
        publish(
            cast("HdfsClient", node), DRAFT, TARGET, BODY, RetryPolicy(first_wait=0.0),
            overwrite=True,
        )  # fmt: skip
    assert node.files == {TARGET: b"old\n"}
