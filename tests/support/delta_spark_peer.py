"""Talk to the real delta-spark from a test: one long-lived session in a process of its own.

with DeltaSparkPeer(delta_spark.installed()) as peer:
    peer.write(table, arrow_table, partition_by=["month"])
    assert peer.read(table, version=0).num_rows == 3
"""

from __future__ import annotations

import json
import os
import queue
import shutil
import subprocess
import sys
import tempfile
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import pyarrow as pa
import pyarrow.parquet as pq

from support.spark_java import submit_options

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from types import TracebackType

    from support.delta_spark import DeltaSpark

SERVER = Path(__file__).with_name("delta_spark_server.py")
START_SECONDS = 180.0


class DeltaSparkError(Exception):
    """delta-spark raised; `kind` is the simple name of its Java exception."""

    def __init__(self, kind: str, message: str) -> None:
        super().__init__(f"{kind}: {message}")
        self.kind = kind


class DeltaSparkPeer:
    """A delta-spark session. Commands run one after another; any thread may give them.

    It begins with the first command.

    Args:
        peer: Where delta-spark stands, from `delta_spark.installed()`.
        confs: Spark confs of the session, beside those that Delta needs.
        timeout: Seconds that a command may take before the session is killed.
        bridged: Whether `lakelog.spark.bridge` begins the session, so that its process has the
            LogStore service. It runs in our environment then, with delta-spark's PySpark.
    """

    def __init__(
        self,
        peer: DeltaSpark,
        confs: Mapping[str, str] | None = None,
        *,
        timeout: float = 180.0,
        bridged: bool = False,
    ) -> None:
        self._timeout = timeout
        self._lock = threading.Lock()
        self._scratch = Path(tempfile.mkdtemp(prefix="delta-spark-peer-"))
        self._log = (self._scratch / "spark.log").open("w+")
        jars = ",".join(map(str, peer.jars))
        python = sys.executable if bridged else str(peer.python)
        self._command = [python, str(SERVER), jars, json.dumps(dict(confs or {}))]
        self._environment = _clean_environment()
        self._environment["SPARK_SUBMIT_OPTS"] = submit_options(peer.python)
        if bridged:
            self._command.append("bridged")
            # Goes before the folder of our environment that has a PySpark too.
            (theirs,) = peer.python.parents[1].glob("lib/python*/site-packages")
            self._environment["PYTHONPATH"] = str(theirs)
        self._process: subprocess.Popen[str] | None = None
        self._answers: queue.SimpleQueue[str] = queue.SimpleQueue()
        self._listener: threading.Thread | None = None

    def sql(self, text: str) -> list[dict[str, Any]]:
        """Run one statement: DML, DDL, a query. Rows come as JSON values, in Spark's order."""
        return list(self._call("sql", text))

    def write(
        self,
        path: str | Path,
        data: pa.Table,
        *,
        mode: str = "append",
        partition_by: Sequence[str] = (),
        options: Mapping[str, str] | None = None,
    ) -> None:
        """Write Arrow data with `df.write.format("delta")`, types kept as Parquet keeps them."""
        source = self._scratch / "source.parquet"
        with self._lock:
            pq.write_table(data, source)
            self._exchange(
                "write",
                str(path),
                source=str(source),
                mode=mode,
                partition_by=list(partition_by),
                options=dict(options or {}),
            )

    def append_rows(self, path: str | Path, schema: str, *batches: Sequence[Sequence[Any]]) -> None:
        """Append batches of rows, one commit each, without waiting for the caller between them."""
        self._call("append_rows", str(path), schema=schema, batches=[list(b) for b in batches])

    def append_rows_by_lakelog(
        self, path: str | Path, schema: str, rows: Sequence[Sequence[Any]]
    ) -> None:
        """Append rows by `lakelog.spark` in the same session, which is bridged."""
        self._call("append_rows_by_lakelog", str(path), schema=schema, rows=list(rows))

    def merges(self, jobs: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
        """Run MERGEs, one after another: of each its metrics, or its error."""
        return list(self._call("merges", list(jobs)))

    def row_changes(self, jobs: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
        """Run DELETEs and UPDATEs, one after another: of each nothing, or its error."""
        return list(self._call("row_changes", list(jobs)))

    def read(
        self,
        path: str | Path,
        *,
        version: int | None = None,
        timestamp: str | None = None,
        where: str | None = None,
    ) -> pa.Table:
        """What delta-spark sees in the table, as Arrow; rows in no particular order."""
        target = self._scratch / "read"
        with self._lock:
            options = _travel(version, timestamp)
            self._exchange("read", str(path), target=str(target), options=options, where=where)
            table = pa.concat_tables(pq.read_table(f) for f in target.glob("*.parquet"))
            shutil.rmtree(target)
        return table

    def count(
        self, path: str | Path, *, version: int | None = None, where: str | None = None
    ) -> int:
        """How many rows delta-spark counts."""
        return int(self._call("count", str(path), options=_travel(version, None), where=where))

    def schema(self, path: str | Path, *, version: int | None = None) -> dict[str, Any]:
        """The schema as delta-spark reads it, in Spark's JSON form."""
        text = self._call("schema", str(path), options=_travel(version, None))
        return dict(json.loads(text))

    def history(self, path: str | Path) -> list[dict[str, Any]]:
        """`DESCRIBE HISTORY`, newest first."""
        return list(self._call("history", str(path)))

    def detail(self, path: str | Path) -> dict[str, Any]:
        """`DESCRIBE DETAIL`."""
        return dict(self._call("detail", str(path)))

    def version(self, path: str | Path) -> int:
        """The table's newest version, looked up anew."""
        return int(self._call("version", str(path)))

    def stream(
        self,
        path: str | Path,
        sink: str | Path,
        checkpoint: str | Path,
        options: Mapping[str, str] | None = None,
    ) -> None:
        """Copy a table to another one by a streaming query, as far as it is now."""
        places = {"sink": str(sink), "checkpoint": str(checkpoint)}
        self._call("stream", str(path), **places, options=dict(options or {}))

    def stream_rows(
        self,
        path: str | Path,
        checkpoint: str | Path,
        options: Mapping[str, str],
        columns: Sequence[str],
    ) -> list[list[Any]]:
        """What a streaming query reads, as far as the table is now: those columns that it has."""
        more = {"checkpoint": str(checkpoint), "columns": list(columns)}
        found: list[list[Any]] = self._call("stream_rows", str(path), **more, options=dict(options))
        return found

    def java_function(self, name: str, kind: str, returns: str = "string") -> None:
        """Give SQL a function: a Java class of the session's jars."""
        self._call("java_function", name, kind=kind, returns=returns)

    def script(
        self, path: str | Path, function: str, *args: str | Path, alone: bool = False
    ) -> Any:
        """Call a function of a Python file with the session and these texts: what it returns.

        Args:
            path: the file.
            function: the function's name.
            args: what it is given.
            alone: what it does depends on nothing but itself, `args` and the files that they name.
        """
        given = [*map(str, args)]
        return self._call("script", str(path), function=function, args=given, alone=alone)

    def checkpoint(self, path: str | Path) -> int:
        """Write a checkpoint of the newest version, and say which that is."""
        return int(self._call("checkpoint", str(path)))

    def transaction(self, path: str | Path, steps: Sequence[Any]) -> int | None:
        """Run one transaction of delta-spark's own, whose steps `delta_spark_transaction` has.

        Returns:
            The version that it committed, or None where there was no need to.
        """
        found = self._call("transaction", str(path), steps=list(steps))
        return None if found is None else int(found)

    def close(self) -> None:
        """End the session; a process that doesn't go by itself is killed."""
        if self._process is not None:
            self._end(self._process)
        self._log.close()
        shutil.rmtree(self._scratch, ignore_errors=True)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        value: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def _started(self) -> subprocess.Popen[str]:
        if self._process is None:
            self._process = subprocess.Popen(
                self._command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=self._log,
                text=True,
                cwd=self._scratch,
                env=self._environment,
            )
            self._answers = queue.SimpleQueue()
            self._listener = threading.Thread(
                target=_listen, args=(self._process, self._answers), daemon=True
            )
            self._listener.start()
            try:
                self._answer(START_SECONDS)
            except BaseException:
                self._abandon()
                raise
        return self._process

    def _end(self, process: subprocess.Popen[str]) -> None:
        try:
            if process.stdin is not None:
                process.stdin.close()
            process.wait(30)
        except (subprocess.TimeoutExpired, BrokenPipeError):
            process.kill()
            process.wait()
        if self._listener is not None:
            self._listener.join()
        if process.stdout is not None:
            process.stdout.close()

    def _call(self, op: str, *args: Any, **kwargs: Any) -> Any:
        with self._lock:
            return self._exchange(op, *args, **kwargs)

    def _exchange(self, op: str, *args: Any, **kwargs: Any) -> Any:
        process = self._started()
        if process.stdin is None or process.poll() is not None:
            self._abandon()
            raise RuntimeError(f"delta-spark's process has ended; {self._last_words()}")
        command = json.dumps({"op": op, "args": args, "kwargs": kwargs})
        try:
            process.stdin.write(command + "\n")
            process.stdin.flush()
            return self._answer(self._timeout)
        except DeltaSparkError:
            raise
        except BaseException:  # the test's own time may be up, in any line of this
            self._abandon()
            raise

    def _answer(self, seconds: float) -> Any:
        try:
            line = self._answers.get(timeout=seconds)
        except queue.Empty:
            message = f"delta-spark did not answer within {seconds:g} s"
            raise TimeoutError(f"{message}; {self._last_words()}") from None
        if not line:
            raise RuntimeError(f"delta-spark's process has ended; {self._last_words()}")
        answer = json.loads(line)
        if "error" in answer:
            raise DeltaSparkError(**answer["error"])
        return answer["result"]

    def _abandon(self) -> None:
        """Begin the next command with another process: this one's answer may still come."""
        process, self._process = self._process, None
        if process is not None:
            process.kill()
            self._end(process)

    def _last_words(self) -> str:
        self._log.flush()
        text = Path(self._log.name).read_text(errors="replace")
        return f"it said last:\n{text[-3000:]}"


def _listen(process: subprocess.Popen[str], answers: queue.SimpleQueue[str]) -> None:
    for line in process.stdout or ():
        answers.put(line)
    answers.put("")


def _travel(version: int | None, timestamp: str | None) -> dict[str, str]:
    options = {}
    if version is not None:
        options["versionAsOf"] = str(version)
    if timestamp is not None:
        options["timestampAsOf"] = timestamp
    return options


def _clean_environment() -> dict[str, str]:
    """The caller's environment without what would lead to the caller's own PySpark."""
    foreign = ("PYTHONPATH", "SPARK_HOME", "PYSPARK_", "SPARK_CONF_DIR", "VIRTUAL_ENV")
    return {k: v for k, v in os.environ.items() if not k.startswith(foreign)}
