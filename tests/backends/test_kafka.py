"""The example for a topic of Kafka: each record comes to the table once, whatever happens."""

from __future__ import annotations

import importlib.util
import itertools
import json
import queue
import signal
import subprocess
import sys
import threading
import uuid
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from lakelog.core import DeltaLog, appender, create_table, read_arrow
from lakelog.core.alter import add_constraint
from lakelog.core.errors import DeltaAnalysisError
from lakelog.logstores import LocalLogStore

if TYPE_CHECKING:
    from support.servers.kafka import KafkaBroker

EXAMPLE = Path(__file__).parents[2] / "examples" / "kafka" / "topic_to_table.py"
PATIENCE = 60
FAST = {
    "reconnect.backoff.ms": "20",
    "reconnect.backoff.max.ms": "100",
    # A topic is seen late where the broker does not know it when it is asked first.
    "topic.metadata.refresh.interval.ms": "500",
    "log_level": "2",
}
SOON = {"session.timeout.ms": "700", "heartbeat.interval.ms": "200"}
"""How soon a silent consumer is taken for dead."""


@pytest.fixture(scope="module")
def example() -> Any:
    spec = importlib.util.spec_from_file_location(EXAMPLE.stem, EXAMPLE)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[EXAMPLE.stem] = module
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def taken(example: Any, monkeypatch: pytest.MonkeyPatch) -> queue.Queue[Any]:
    """The values of the records that consumers of this process have taken."""
    values, read = queue.Queue[Any](), example.row_of

    def row_of(message: Any) -> Any:
        values.put(message.value())
        return read(message)

    monkeypatch.setattr(example, "row_of", row_of)
    return values


def take(taken: queue.Queue[Any], count: int) -> None:
    """Wait until so many more are taken."""
    for _ in range(count):
        taken.get(timeout=PATIENCE)


@pytest.fixture
def table(tmp_path: Path) -> str:
    table = str(tmp_path / "t")
    create_table(table, "id bigint not null, kafka_partition int, kafka_offset bigint")
    return table


class Topic:
    """A topic of its own, and who writes to it."""

    def __init__(
        self, broker: KafkaBroker, partitions: int = 1, config: dict[str, str] | None = None
    ) -> None:
        self.name = f"readings-{uuid.uuid4().hex[:8]}"
        self.client: dict[str, Any] = {"bootstrap.servers": broker.address, **FAST}
        self.admin = AdminClient(self.client)
        self._producer = Producer(self.client)
        self._partitions, self._config = partitions, config or {}
        self.create()

    def create(self) -> None:
        _done(
            self.admin.create_topics(
                [NewTopic(self.name, self._partitions, 1, config=self._config)]
            )
        )

    def send(self, *values: Any, partition: int = 0, **more: Any) -> int:
        """Rows, or what is no row, as bytes.

        Returns:
            The offset of the last of them.
        """
        offsets = [-1]
        more["on_delivery"] = lambda _, message: offsets.append(message.offset())
        for each in values:
            value = each if isinstance(each, bytes | None) else json.dumps({"id": each})
            self._producer.produce(self.name, value, partition=partition, **more)
        assert self._producer.flush(PATIENCE) == 0
        return max(offsets)

    def told(self, group: str = "lakelog") -> list[int]:
        """The offsets of the group."""
        consumer = Consumer({**self.client, "group.id": group})
        asked = [TopicPartition(self.name, each) for each in range(self._partitions)]
        found = [each.offset for each in consumer.committed(asked, PATIENCE)]
        consumer.close()
        return found

    def tell(self, offset: int, group: str = "lakelog") -> None:
        """Give the group an offset of partition 0, as any tool may."""
        consumer = Consumer({**self.client, "group.id": group})
        consumer.commit(offsets=[TopicPartition(self.name, 0, offset)], asynchronous=False)
        consumer.close()

    def records(self) -> list[Any]:
        """What partition 0 has, from the first to the last."""
        consumer = Consumer(
            {
                **self.client,
                "group.id": "look",
                "auto.offset.reset": "earliest",
                "enable.partition.eof": True,
            }
        )
        consumer.assign([TopicPartition(self.name, 0)])
        found = []
        while (message := consumer.poll(PATIENCE)) is not None and message.error() is None:
            found.append(message)
        consumer.close()
        return found


def _done(futures: dict[Any, Any]) -> None:
    for each in futures.values():
        each.result(PATIENCE)


class Running:
    """A consumer that runs, and what it says."""

    def __init__(self) -> None:
        self._lines: queue.Queue[str | None] = queue.Queue()
        self.said: list[str] = []

    def until(self, *lines: str) -> list[str]:
        """Wait until it has said each of these, in any order; what else it says is passed over."""
        left, passed = set(lines), []
        while left:
            line = self._lines.get(timeout=PATIENCE)
            assert line is not None, f"it has ended, and never said {left}: {self.said}"
            self.said.append(line)
            passed.append(line)
            left = {each for each in left if each not in line}
        return passed


class InThread(Running):
    """It runs in this process."""

    def __init__(
        self, example: Any, topic: Topic, table: str, client: Any = (), **options: Any
    ) -> None:
        super().__init__()
        self._ended = threading.Event()
        self._error: BaseException | None = None
        settings = {**topic.client, **dict(client)}
        options = {"every": "20ms", **options}
        self._consumer = example.TopicToTable(
            DeltaLog.for_table(table), topic.name, settings, say=self._lines.put, **options
        )
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        try:
            self._consumer.run(self._ended)
        except BaseException as exc:
            self._error = exc
        self._lines.put(None)

    def end(self) -> None:
        self._ended.set()
        self.wait()

    def wait(self) -> None:
        """Until it ends by itself.

        Raises:
            BaseException: what it has ended with.
        """
        self._thread.join(PATIENCE)
        self._ended.set()  # where it has not, it is to leave the group to the tests that follow
        assert not self._thread.is_alive()
        if self._error is not None:
            raise self._error

    def __enter__(self) -> InThread:
        return self

    def __exit__(self, kind: object, *_: object) -> None:
        self._ended.set()
        if kind is None:
            self.wait()


class InProcess(Running):
    """It runs in a process of its own, by its command line."""

    def __init__(self, topic: Topic, table: str) -> None:
        super().__init__()
        argv = [sys.executable, str(EXAMPLE), "--topic", topic.name, "--table", table]
        argv += ["--brokers", topic.client["bootstrap.servers"], "--every", "20ms"]
        for key, value in {**FAST, **SOON}.items():
            argv += ["-X", f"{key}={value}"]
        self.process = subprocess.Popen(
            argv, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
        )
        self._thread = threading.Thread(target=self._read)
        self._thread.start()

    def _read(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self._lines.put(line)
        self._lines.put(None)

    def end(self, number: signal.Signals) -> int:
        self.process.send_signal(number)
        return self.process.wait(PATIENCE)

    def __enter__(self) -> InProcess:
        return self

    def __exit__(self, *_: object) -> None:
        self.process.kill()
        self.process.wait(PATIENCE)
        self._thread.join(PATIENCE)
        assert self.process.stdout is not None
        self.process.stdout.close()


def ids(table: str) -> list[int]:
    found: list[int] = read_arrow(table)["id"].to_pylist()
    return sorted(found)


def has(topic: Topic, last: int, partition: int = 0) -> str:
    return f"{topic.name}[{partition}]: the table has it up to {last}"


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_it_goes_on_where_the_table_is_and_not_where_the_group_is(
    protocol: str, kafka: KafkaBroker, example: Any, table: str
) -> None:
    topic, client = Topic(kafka, 2), {"group.protocol": protocol}
    topic.send(*range(100))
    topic.send(*range(100, 150), partition=1)
    group = f"group-{protocol}"
    with InThread(example, topic, table, client, group=group) as run:
        run.until(has(topic, 99), has(topic, 49, 1))
    assert topic.told(group) == [100, 50]
    topic.send(*range(150, 160))
    for offset in (110, 0):  # as if all were read, and nothing
        topic.tell(offset, group)
        topic.send(160 + offset)
        with InThread(example, topic, table, client, group=group) as run:
            run.until(has(topic, 110 if offset else 111))
    assert ids(table) == [*range(161), 270]
    assert topic.told(group) == [112, 50]


def test_kills_in_the_middle_of_a_stream_lose_nothing_and_double_nothing(
    kafka: KafkaBroker, table: str
) -> None:
    topic, sent = Topic(kafka, 2), itertools.count()
    acknowledged = 99
    for _ in range(2):
        with InProcess(topic, table) as run:
            # Of the records before these, too, which the last one may have taken.
            for partition in (0, 1):
                topic.send(*itertools.islice(sent, 100), partition=partition)
            run.until(has(topic, acknowledged), has(topic, acknowledged, 1))
            for partition in (0, 1):
                topic.send(*itertools.islice(sent, 1000), partition=partition)
            acknowledged += 1100
            assert run.end(signal.SIGKILL) == -signal.SIGKILL
    acknowledged -= 100
    with InProcess(topic, table) as run:
        run.until(has(topic, acknowledged), has(topic, acknowledged, 1))
        assert run.end(signal.SIGTERM) == 0
    assert ids(table) == list(range(next(sent)))


@pytest.mark.nightly
def test_partitions_pass_from_one_consumer_to_another(
    kafka: KafkaBroker, example: Any, table: str, taken: queue.Queue[Any]
) -> None:
    topic, sent = Topic(kafka, 4), itertools.count()

    def send() -> None:
        for partition in range(4):
            topic.send(*itertools.islice(sent, 10), partition=partition)

    def goes_on(after: int, run: Running, count: int) -> None:
        found = ""
        while found.count(f"goes on after {after}") < count:
            found += "".join(run.until("goes on after"))

    send()
    # Rows come to the table by what closes their appender alone, and are sent meanwhile.
    with InThread(example, topic, table, every="1h") as first:
        take(taken, 40)
        with InThread(example, topic, table, every="1h") as second:
            goes_on(9, second, 2)
            send()
            take(taken, 40)
            first.end()
            goes_on(19, second, 2)
            send()
            take(taken, 40)
    assert ids(table) == list(range(next(sent)))
    assert topic.told() == [30] * 4
    assert taken.empty()  # none was read twice
    assert not any("missing" in line for line in [*first.said, *second.said])


@pytest.mark.nightly
def test_a_consumer_that_was_taken_for_dead_comes_back(
    kafka: KafkaBroker, example: Any, table: str
) -> None:
    topic = Topic(kafka)
    with InProcess(topic, table) as first:
        first.until("goes on after -1")
        topic.send(*range(10))
        first.until(has(topic, 9))
        with InThread(example, topic, table, SOON) as second:
            first.process.send_signal(signal.SIGSTOP)
            topic.send(*range(10, 20))
            second.until("goes on after 9", has(topic, 19))
            first.process.send_signal(signal.SIGCONT)
            first.until("is given back")
            topic.send(*range(20, 30))
            second.until(has(topic, 29))
        first.until("goes on after 29")
        topic.send(*range(30, 40))
        first.until(has(topic, 39))
        assert first.end(signal.SIGTERM) == 0
    assert ids(table) == list(range(40))


@pytest.mark.nightly
def test_what_another_one_commits_late_is_not_committed_again(
    kafka: KafkaBroker, example: Any, table: str
) -> None:
    topic = Topic(kafka)
    topic.send(*range(10))
    with InThread(example, topic, table) as run:
        run.until(has(topic, 9))
        (app_id,) = DeltaLog.for_table(table).update().transactions
        with appender(table, app_id=app_id) as late:  # it had the partition before
            late.append([{"id": 10}, {"id": 11}], seq=11)
        topic.send(*range(10, 1000))  # more than are taken before it is found out
        run.until("goes on after 11", has(topic, 999))
    assert ids(table) == list(range(1000))


def test_a_record_that_does_not_fit_is_a_dead_letter(
    kafka: KafkaBroker, example: Any, table: str
) -> None:
    add_constraint(table, "is_small", "id < 1000")
    topic, dead = Topic(kafka), Topic(kafka)
    topic.send(0, b"{", b"[1]", "two", None, 1000, b'{"id": null}', b"\xff", 8)
    with pytest.raises(DeltaAnalysisError, match="seq 1 could be put aside"):
        InThread(example, topic, table).wait()
    assert ids(table) == [0]
    with InThread(example, topic, table, dead_letters=dead.name) as run:
        run.until(has(topic, 8))
    assert ids(table) == [0, 8]
    letters = [json.loads(each.value()) for each in dead.records()]
    assert {(each["topic"], each["partition"]) for each in letters} == {(topic.name, 0)}
    rows = {each["offset"]: each["row"] for each in letters}
    for offset, row in rows.items():
        assert row.pop("kafka_offset", offset) == offset
        row.pop("kafka_partition", None)
    assert rows == {
        1: {"value": "{"},
        2: {"value": "[1]"},
        3: {"id": "two"},
        5: {"id": 1000},
        6: {"id": None},
        7: {"value": "\\xff"},
    }
    assert all(each["reason"] for each in letters)


@pytest.mark.nightly
def test_offsets_without_a_record_are_no_end(kafka: KafkaBroker, example: Any, table: str) -> None:
    topic = Topic(kafka)
    producer = Producer({**topic.client, "transactional.id": topic.name})
    producer.init_transactions(PATIENCE)
    for number, ends in enumerate([producer.commit_transaction, producer.abort_transaction] * 2):
        producer.begin_transaction()
        for each in range(3):
            producer.produce(topic.name, json.dumps({"id": 3 * number + each}))
        assert producer.flush(PATIENCE) == 0  # or the end of an aborted one drops them unsent
        ends(PATIENCE)
    # The end of a transaction has an offset, the last one's before or after these.
    last = topic.send(None, 100)
    with InThread(example, topic, table) as run:
        run.until(has(topic, last))
    assert ids(table) == [0, 1, 2, 6, 7, 8, 100]


@pytest.mark.nightly
def test_a_topic_that_is_compacted_meanwhile_is_read_on(
    kafka: KafkaBroker, example: Any, table: str
) -> None:
    hour = 3_600_000
    compacted = {"cleanup.policy": "compact", "min.cleanable.dirty.ratio": "0.001"}
    topic = Topic(kafka, config={**compacted, "segment.ms": str(hour)})
    topic.send(*range(4), key="k", timestamp=hour)
    with InThread(example, topic, table) as run:
        run.until(has(topic, 3))
    topic.send(*range(4, 20), key="k", timestamp=hour)
    topic.send(20, key="other", timestamp=3 * hour)  # in a new segment
    while len(topic.records()) > 2:
        pass
    with InThread(example, topic, table) as run:
        run.until("goes on after 3", has(topic, 20))
    assert ids(table) == [0, 1, 2, 3, 19, 20]


@pytest.mark.nightly
def test_records_that_are_gone_unread_are_an_error(
    kafka: KafkaBroker, example: Any, table: str
) -> None:
    topic = Topic(kafka)
    topic.send(*range(5))
    with InThread(example, topic, table) as run:
        run.until(has(topic, 4))
    topic.send(*range(5, 15))
    _done(topic.admin.delete_records([TopicPartition(topic.name, 0, 10)]))
    gone = InThread(example, topic, table)
    with pytest.raises(KafkaException):
        gone.wait()
    gone.until("no longer in the topic")
    assert ids(table) == list(range(5))
    with InThread(example, topic, table, {"auto.offset.reset": "earliest"}) as run:
        run.until(has(topic, 14))
    assert ids(table) == [*range(5), *range(10, 15)]


@pytest.mark.nightly
def test_a_topic_that_is_made_again_begins_again(
    kafka: KafkaBroker, example: Any, table: str
) -> None:
    topic = Topic(kafka)
    topic.send(*range(10))
    with InThread(example, topic, table) as run:
        run.until(has(topic, 9))
    _done(topic.admin.delete_topics([topic.name]))
    topic.create()
    topic.send(*range(10, 15))
    with InThread(example, topic, table) as run:
        run.until("goes on after -1", has(topic, 4))
    assert ids(table) == list(range(15))


@pytest.mark.nightly
def test_no_more_is_held_than_there_is_room_for(
    kafka: KafkaBroker,
    example: Any,
    table: str,
    taken: queue.Queue[Any],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(example, "BATCH_RECORDS", 50)
    topic = Topic(kafka)
    topic.send(*range(1000))
    # An append holds more than 1,024 bytes; it is room that they wait for, and not the interval.
    with InThread(example, topic, table, every="1h", max_bytes=5000):
        take(taken, 1000)
    assert ids(table) == list(range(1000))
    assert DeltaLog.for_table(table).update().version >= 1000 / 50 / 4


@pytest.mark.nightly
def test_what_was_read_comes_to_the_table_while_the_broker_is_dead(
    kafka: KafkaBroker,
    example: Any,
    table: str,
    taken: queue.Queue[Any],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    write, permits = LocalLogStore.write, threading.Semaphore(0)

    def permitted(store: Any, path: str, *args: Any, **more: Any) -> None:
        assert not path.endswith(".json") or permits.acquire(timeout=PATIENCE)
        write(store, path, *args, **more)

    monkeypatch.setattr(example, "BATCH_RECORDS", 5)
    monkeypatch.setattr(LocalLogStore, "write", permitted)
    topic = Topic(kafka)
    topic.send(*range(10))
    with InThread(example, topic, table, max_bytes=1) as run:  # each append is a commit
        take(taken, 10)
        kafka.kill()
        for last in (4, 9):  # with the second one it is asked to tell the group of the first
            permits.release()
            run.until(has(topic, last))
        kafka.start()
        permits.release(100)
        topic.send(*range(10, 20))
        run.until(has(topic, 19))
    assert ids(table) == list(range(20))
    assert topic.told() == [20]
