"""A file on HDFS, all or nothing: written under a unique name, then renamed in one step.

The NameNode renames under its lock, so only one of the writers that want a name gets it. When the
reply to a rename is lost, the draft shows what happened, because its name is unique and no other
process touches it: while it is there the rename has not happened, and once it is gone it has. So
the same rename is asked for again, and

    done                       -> published, now
    the name is taken          -> the draft still stands: another writer was first
    no such draft              -> the lost rename was carried out; the file holds our bytes
    refused, after a lost one  -> as below
    no answer, to the end      -> the draft is deleted: if it was there, no late rename can use it;
                                  if that can't be had either, the outcome is unknown

A NameNode shows a rename before it is safe in its log, and one that stalls and dies takes it back.
So what is settled by looking alone is confirmed by an edit that is logged after the rename.
"""

from __future__ import annotations

import errno
import itertools
import os
import uuid
from functools import partial
from typing import TYPE_CHECKING, Final

from lakelog.logstores.errors import CommitOutcomeUnknownError
from lakelog.logstores.hdfs.client import CHUNK
from lakelog.logstores.hdfs.errors import REFUSED
from lakelog.logstores.hdfs.webhdfs import WebHdfsError
from lakelog.logstores.object_store.store import RetryPolicy, TryAgainError

if TYPE_CHECKING:
    from lakelog.logstores.hdfs.client import HdfsClient
    from lakelog.logstores.hdfs.webhdfs import WebHdfs

_REMOVAL: Final = RetryPolicy(budget=2.0, reach=0.0)


def draft_name(target: str) -> str:
    """A unique name next to the target's, hidden, as Delta's own store names it."""
    folder, _, name = target.rpartition("/")
    return f"{folder}/.{name}.{uuid.uuid4()}.tmp"


def write_draft(
    client: HdfsClient, web: WebHdfs, target: str, body: bytes, policy: RetryPolicy
) -> str:
    """Write a whole draft next to `target`, and return its name. A failed one is removed.

    Raises:
        FileNotFoundError: the folder does not exist.
        OSError: it can't be written.
    """
    patience = policy.start()
    draft = ""
    while True:
        try:
            if web.is_usable and (draft := _written_by_web(client, web, target, body)):
                return draft
            # A name of its own: under the other one a late request could still write.
            draft = draft_name(target)
            _write_natively(client, draft, body)
        except TryAgainError as error:
            remove(client, draft)
            if not patience.pause_after(error):
                raise patience.spent(f"{target} was not written: {error}") from error
        except BaseException:
            remove(client, draft)
            raise
        else:
            return draft


def remove(client: HdfsClient, draft: str) -> None:
    """Remove a draft, by two tries and more for two seconds; one that stays is hidden and harmless.

    What made it a failed one (a connection cut in two, a failover) may spoil the first.
    """
    if not draft:
        return
    patience = _REMOVAL.start()
    for tries in itertools.count(1):
        try:
            client.delete(draft)
        except TryAgainError as error:
            if not patience.pause_after(error) and tries > 1:
                return
        except OSError:
            return
        else:
            return


def _written_by_web(client: HdfsClient, web: WebHdfs, target: str, body: bytes) -> str:
    """The name of a draft that WebHDFS wrote; empty if it could not."""
    draft = draft_name(target)
    try:
        web.create(draft, body)
        # Seen by the NameNode that will rename it, and whole: else this is another cluster's
        # WebHDFS, or a proxy in between cut the bytes.
        seen = client.status(draft)
        if seen is not None and seen.length == len(body):
            return draft
        web.rest(f"the NameNode does not have what {', '.join(client.service.web)} accepted")
    except WebHdfsError as error:
        web.rest(str(error))
    except BaseException:
        remove(client, draft)
        raise
    remove(client, draft)
    return ""


def _write_natively(client: HdfsClient, draft: str, body: bytes) -> None:
    writer = client.writer(draft, overwrite=True, create_parent=False)
    for start in range(0, len(body), CHUNK):
        client.call(draft, partial(writer.write, body[start : start + CHUNK]))
    client.call(draft, writer.close)


def publish(
    client: HdfsClient,
    draft: str,
    target: str,
    body: bytes,
    policy: RetryPolicy,
    *,
    overwrite: bool,
) -> None:
    """Rename a whole draft to its target.

    Raises:
        FileExistsError: not `overwrite`, and another writer has the name.
        CommitOutcomeUnknownError: it can't be found out.
        OSError: it was not published.
    """
    lost = ""
    patience = policy.start()
    while True:
        try:
            # Asked for again with the same draft: only one of the requests can find it, so a
            # repeated one can't publish twice.
            client.rename(draft, target, overwrite=overwrite)
        except FileNotFoundError:
            _judge(client, target, body, lost, overwrite=overwrite)
            return
        except TryAgainError as error:
            seen = str(error)
            lost = seen if error.may_have_landed else lost
            more = patience.pause_after(error)
        except OSError as error:
            if not lost or isinstance(error, FileExistsError):
                raise
            # This one was refused (safe mode, an expired ticket). The lost one may not have been.
            _give_up(client, draft, target, body, policy, lost, str(error), overwrite=overwrite)
            return
        else:
            return
        if not more:
            _give_up(client, draft, target, body, policy, lost, seen, overwrite=overwrite)
            return


def _give_up(
    client: HdfsClient,
    draft: str,
    target: str,
    body: bytes,
    policy: RetryPolicy,
    lost: str,
    seen: str,
    *,
    overwrite: bool,
) -> None:
    try:
        # To delete it is to ask: if it was there nothing was renamed, and nothing can be any more.
        was_there = _delete_draft(client, draft, policy)
    except _LostDeletionError as error:
        if lost and not _is_absent(client, target):
            raise _unsettled(draft, target, lost, error) from error
        was_there = True  # nothing was renamed, and no late rename can use the draft any more
    except (OSError, TryAgainError) as error:
        if lost:
            raise _unsettled(draft, target, lost, error) from error
        was_there = True  # no rename was ever delivered
    if was_there:
        raise OSError(REFUSED, f"was not written: {seen}", target)
    _judge(client, target, body, lost, overwrite=overwrite)


class _LostDeletionError(Exception):
    """A draft was there and is gone; whether by our deletion or by a rename can't be known."""


def _delete_draft(client: HdfsClient, draft: str, policy: RetryPolicy) -> bool:
    """Delete a draft; return whether it was still there.

    Asked again: what spoilt the renames (a connection cut in two) may spoil the first answer. It
    is looked at before each deletion, so that a lost answer to one of nothing leaves no doubt.

    Raises:
        _LostDeletionError: the answer to a deletion was lost.
        TryAgainError: no answer.
        OSError: it was refused.
    """
    lost: TryAgainError | None = None
    patience = policy.start(policy.grace)
    while True:
        there = False
        try:
            there = client.status(draft) is not None
            was_there = client.delete(draft)
        except TryAgainError as error:
            if there and error.may_have_landed:
                lost = error
            if not patience.pause_after(error):
                raise
        else:
            if lost is not None and not was_there:
                raise _LostDeletionError(str(lost)) from lost
            return was_there


def _is_absent(client: HdfsClient, target: str) -> bool:
    try:
        return client.again(target, lambda: client.status(target)) is None
    except OSError:
        return False


def _unsettled(draft: str, target: str, lost: str, error: Exception) -> CommitOutcomeUnknownError:
    evidence = (
        f"the rename of {draft} to it got no answer ({lost}), and later checks did not settle it"
    )
    return CommitOutcomeUnknownError(target, f"{evidence} ({error})")


def _judge(client: HdfsClient, target: str, body: bytes, lost: str, *, overwrite: bool) -> None:
    """Return if the draft that is gone has become the target; raise what happened otherwise."""
    try:
        found = client.again(target, lambda: client.status(target))
        if found is not None and found.length == len(body):
            content = client.again(
                target, lambda: client.piece(target, client.reader(target), 0, len(body))
            )
            # By the bytes: a commit names its transaction in them, so equal ones are this writer's.
            if content == body:
                client.again(target, lambda: client.confirm(target, found))
                return
        folder = client.again(target, lambda: client.status(target.rpartition("/")[0] or "/"))
    except OSError as error:
        raise CommitOutcomeUnknownError(
            target,
            f"its draft is gone, so it was renamed, but the NameNode did not let it be read and "
            f"confirmed ({error})",
        ) from error
    if lost and (found is not None or folder is not None):
        if overwrite and found is not None:
            return  # ours was there, and another writer has replaced it since
        what = "it holds other bytes" if found is not None else "it is absent"
        raise CommitOutcomeUnknownError(
            target, f"the answer to its rename was lost ({lost}), the draft is gone, and {what}"
        )
    if folder is None:
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), target)
    if found is not None and not overwrite:
        raise FileExistsError(errno.EEXIST, "another writer made it", target)
    raise OSError(REFUSED, "was not written: another process removed its draft", target)
