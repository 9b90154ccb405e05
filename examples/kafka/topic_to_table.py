"""Append the records of a Kafka topic to a Delta table, each exactly once.

    python topic_to_table.py --brokers 127.0.0.1:9092 --topic readings --table /lake/readings

Each partition has an appender, and an offset is the number of an append. The table records the last
one, in the same version as the rows: there a process goes on. The offsets of the consumer group
are for tools that show how far it is, and nothing is read from them.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import signal
import threading
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from confluent_kafka import (
    OFFSET_BEGINNING,
    Consumer,
    KafkaError,
    KafkaException,
    Message,
    Producer,
    TopicCollection,
    TopicPartition,
)
from confluent_kafka.admin import AdminClient

from lakelog.core import Appender, DeltaLog, Ticket, UnfitRow, appender
from lakelog.core.errors import AppenderStoppedError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

BATCH_SECONDS, BATCH_RECORDS = 0.1, 1000
"""How long records wait at most for others, and how many: an append of many rows costs little more
than one of a single row."""
_ONE_BY_ONE = {"classic": {"partition.assignment.strategy": "cooperative-sticky"}}
"""Partitions that stay are read on while others change hands; a newer protocol does that anyway."""


def row_of(message: Message) -> dict[str, Any] | None:
    """A record as a row of the table; `None` for no row. Yours may read another format.

    Raises:
        ValueError: the record can't be read.
    """
    value = message.value()
    if value is None:  # the key was deleted from a compacted topic
        return None
    row = json.loads(value)
    if not isinstance(row, dict):
        raise ValueError("it is no object of JSON")
    # The offset tells which record does not fit, where the table finds that out.
    return {**row, "kafka_partition": message.partition(), "kafka_offset": message.offset()}


def say(text: str) -> None:
    """Print a line at once."""
    print(text, flush=True)


class DeadLetters:
    """A topic that gets the records that don't fit: where they were, what they say, and why."""

    def __init__(self, topic: str, client: Mapping[str, str]) -> None:
        self._topic, self._lock = topic, threading.Lock()
        self._producer = Producer({"log_level": 3, **client, "enable.idempotence": True})

    def put(self, topic: str, partition: int, rows: Sequence[UnfitRow]) -> None:
        """Return once the broker has them: the commit that leaves them out comes after this."""
        failed: list[KafkaError] = []
        with self._lock:  # appenders call from threads of their own
            for each in rows:
                offset = each.row.get("kafka_offset", each.seq)
                where = {"topic": topic, "partition": partition, "offset": offset}
                letter = {**where, "reason": each.reason, "row": each.row}
                self._producer.produce(
                    self._topic,
                    json.dumps(letter, default=str),
                    on_delivery=lambda error, _: error and failed.append(error),
                )
            self._producer.flush()
        if failed:
            raise KafkaException(failed[0])


@dataclass(slots=True)
class Owned:
    """A partition that this process reads."""

    name: str
    appender: Appender
    told: int
    """The last offset that was said to be in the table."""
    rows: list[dict[str, Any]] = field(default_factory=list)
    """Of the records that were read since the last append."""
    read: int = -1
    """The offset of the last of them; -1 for none."""
    last: Ticket | None = None
    """Of the last append."""

    def append(self) -> None:
        """Append what was read, as one append with the last offset.

        It waits for room where the table is slower than the topic, for no longer than `patience`,
        which is to be shorter than `max.poll.interval.ms`.

        Raises:
            AppenderStoppedError: it is not taken.
        """
        if self.read >= 0:
            rows, seq = self.rows, self.read
            self.rows, self.read = [], -1
            self.last = self.appender.append(rows, seq=seq)

    def check(self) -> None:
        """Find out whether the appender has stopped.

        Raises:
            AppenderStoppedError: it has.
        """
        if self.last is not None and self.last.done():
            self.last.result()


class TopicToTable:
    """One consumer of a group that shares a topic; start as many as it has partitions, at most."""

    def __init__(
        self,
        table: DeltaLog,
        topic: str,
        client: Mapping[str, str],
        *,
        group: str = "lakelog",
        dead_letters: str | None = None,
        say: Callable[[str], object] = say,
        **options: Any,
    ) -> None:
        """Connect to nothing yet.

        Args:
            table: where the rows go; it must exist.
            topic: where the records are.
            client: settings of Kafka's client: the brokers, how to log in.
            group: of the consumers.
            dead_letters: the topic of records that don't fit; without it the first of them raises.
            say: is told what happens.
            options: of the appenders: `every`, `patience`, `max_bytes`, `schema_mode`, …
        """
        self._table, self._topic, self._say, self._options = table, topic, say, options
        self._dead = None if dead_letters is None else DeadLetters(dead_letters, client)
        self._admin = AdminClient({"log_level": 3, **client})
        self._owned: dict[int, Owned] = {}
        self._consumer = Consumer(
            {
                # What is no longer there is an error, and not passed over.
                "auto.offset.reset": "error",
                **_ONE_BY_ONE.get(client.get("group.protocol", "classic"), {}),
                **client,
                "group.id": group,
                "enable.auto.commit": False,
            }
        )

    def run(self, ended: threading.Event) -> None:
        """Append until that is set, then commit what was taken.

        Raises:
            KafkaException: the consumer can't go on.
            AppenderStoppedError: nor can an appender.
            DeltaAnalysisError: a record does not fit, and there are no dead letters.
        """
        self._consumer.subscribe(
            [self._topic], on_assign=self._assigned, on_revoke=self._revoked, on_lost=self._lost
        )
        looked = 0.0
        try:
            while not ended.is_set():
                message = self._consumer.poll(BATCH_SECONDS)
                if message is not None:
                    self._take(message)
                if message is None or time.monotonic() - looked >= BATCH_SECONDS:
                    self._look()
                    looked = time.monotonic()
        finally:
            self._consumer.close()  # which calls `_revoked`

    def _take(self, message: Message) -> None:
        if message.error() is not None:
            self._bear(message.error())
            return
        owned = self._owned[message.partition()]
        try:
            if (row := row_of(message)) is not None:
                owned.rows.append(row)
        except (ValueError, RecursionError) as exc:
            unread = {"value": message.value().decode(errors="backslashreplace")}
            owned.appender.reject(unread, str(exc), seq=message.offset())
        owned.read = message.offset()
        if len(owned.rows) >= BATCH_RECORDS:
            self._append(message.partition())

    def _bear(self, error: KafkaError) -> None:
        if error.code() == KafkaError._AUTO_OFFSET_RESET:
            self._say(
                "records that the table lacks are no longer in the topic; to go on with the oldest "
                "that are, set auto.offset.reset=earliest"
            )
            raise KafkaException(error)
        if error.fatal():
            raise KafkaException(error)
        self._say(error.str())  # the client tries again by itself

    def _append(self, partition: int) -> None:
        owned = self._owned[partition]
        try:
            owned.append()
            owned.check()
        except AppenderStoppedError as exc:
            self._go_on(partition, exc)

    def _look(self) -> None:
        """Append what was read, and tell the group what is in the table by now."""
        news = []
        for partition in self._owned:
            self._append(partition)
            news += self._news(partition, self._owned[partition])
        self._tell(news)

    def _tell(self, news: list[TopicPartition]) -> None:
        if news:
            with contextlib.suppress(KafkaException):  # the table knows it, whoever else does
                self._consumer.commit(offsets=news, asynchronous=True)

    def _news(self, partition: int, owned: Owned) -> list[TopicPartition]:
        last = owned.appender.last_seq
        if last <= owned.told:
            return []
        owned.told = last
        self._say(f"{owned.name}: the table has it up to {last}")
        return [TopicPartition(self._topic, partition, last + 1)]

    def _go_on(self, partition: int, failure: AppenderStoppedError) -> None:
        """Where another process had the partition, and committed for it once more: go on after it.

        Raises:
            AppenderStoppedError: the table is no further; another try would fail in the same way.
        """
        before = self._owned[partition].appender.last_seq
        start = self._open(partition)
        if self._owned[partition].appender.last_seq <= before:
            raise failure
        self._consumer.seek(start)

    def _open(self, partition: int) -> TopicPartition:
        """Open the appender of a partition.

        Returns:
            Where the consumer goes on.
        """
        topic, dead = self._topic, self._dead
        # A topic that is deleted and made again begins at offset 0, with another id.
        described = self._admin.describe_topics(TopicCollection([topic]))
        app_id = f"kafka:{topic}:{described[topic].result().topic_id}:{partition}"
        opened = appender(
            self._table,
            app_id=app_id,
            dead_letter=None if dead is None else lambda rows: dead.put(topic, partition, rows),
            **self._options,
        )
        last, name = opened.last_seq, f"{topic}[{partition}]"
        self._owned[partition] = Owned(name, opened, last)
        self._say(f"{name}: goes on after {last}")
        return TopicPartition(topic, partition, last + 1 if last >= 0 else OFFSET_BEGINNING)

    def _assigned(self, consumer: Consumer, partitions: list[TopicPartition]) -> None:
        # Not at the offsets that the group has.
        consumer.incremental_assign([self._open(each.partition) for each in partitions])

    def _revoked(self, _: Consumer, partitions: list[TopicPartition]) -> None:
        self._tell(self._closed(partitions))

    def _lost(self, _: Consumer, partitions: list[TopicPartition]) -> None:
        # Another process may have them already, and tells the group itself.
        self._closed(partitions)

    def _closed(self, partitions: list[TopicPartition]) -> list[TopicPartition]:
        """Commit what was taken, before another process opens appenders for these partitions.

        Returns:
            What is news for the group.
        """
        news = []
        for each in partitions:
            owned = self._owned.pop(each.partition, None)
            if owned is None:  # its appender could not be opened
                continue
            try:
                owned.append()
                owned.appender.close()
            except AppenderStoppedError as exc:
                self._say(f"{owned.name}: whoever has it next reads again what is missing: {exc}")
            news += self._news(each.partition, owned)
            self._say(f"{owned.name}: is given back")
        return news


def main() -> None:
    parser = argparse.ArgumentParser(description="Append the records of a topic to a table.")
    parser.add_argument("--brokers", required=True, metavar="HOST:PORT,…")
    parser.add_argument("--topic", required=True)
    parser.add_argument("--table", required=True, metavar="URI", help="it must exist")
    parser.add_argument("--group", default="lakelog", help="of the consumers (default: lakelog)")
    parser.add_argument("--dead-letters", metavar="TOPIC", help="of records that don't fit")
    parser.add_argument("--every", default="1s", help="the longest wait of a row (default: 1s)")
    parser.add_argument(
        "-X", action="append", default=[], metavar="KEY=VALUE", help="a setting of Kafka's client"
    )
    parser.add_argument(
        "--conf", action="append", default=[], metavar="KEY=VALUE", help="a setting of the storage"
    )
    asked = parser.parse_args()
    client = dict(each.split("=", 1) for each in asked.X)
    conf = dict(each.split("=", 1) for each in asked.conf)
    ended = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: ended.set())
    TopicToTable(
        DeltaLog.for_table(asked.table, conf),
        asked.topic,
        {"bootstrap.servers": asked.brokers, **client},
        group=asked.group,
        dead_letters=asked.dead_letters,
        every=asked.every,
    ).run(ended)


if __name__ == "__main__":
    main()
