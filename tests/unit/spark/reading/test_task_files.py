from __future__ import annotations

from pyarrow.fs import FileSystem, LocalFileSystem, S3FileSystem

from lakelog.spark.reading.task_files import most_files


def test_a_task_takes_more_small_files_where_all_of_them_are_local() -> None:
    local: FileSystem = LocalFileSystem()
    away: FileSystem = S3FileSystem(anonymous=True, region="none")
    assert most_files([local, local]) == 512
    assert most_files([local, away]) == most_files([away]) == 64
