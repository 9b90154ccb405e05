"""The same files for fsspec, and so for pyarrow: data files and checkpoints."""

import io

from fsspec import AbstractFileSystem

from lakelog_redis.files import files_at


class RedisFileSystem(AbstractFileSystem):
    """Whole files only: a file is sent when it is closed."""

    protocol = "redis"

    def __init__(self, url, **options):
        """Connect at the first request."""
        super().__init__(url, **options)
        self._files = files_at(url)

    def ls(self, path, detail=True, **kwargs):
        """List a folder, or give the one file."""
        path = path.rstrip("/")
        if self._files.is_folder(path):
            rows = [self._row(f"{path}/{name}", *rest) for name, *rest in self._files.entries(path)]
        else:
            rows = [self._row(path, len(self._files.get(path)), 0, False)]
        return rows if detail else [row["name"] for row in rows]

    def info(self, path, **kwargs):
        """Describe a file or a folder."""
        path = path.rstrip("/")
        if self._files.is_folder(path):
            return self._row(path, 0, 0, True)
        folder, _, name = path.rpartition("/")
        for found, *rest in self._files.entries(folder, name):
            if found == name:
                return self._row(path, *rest)
            break
        raise FileNotFoundError(path)

    def makedirs(self, path, exist_ok=False):
        """Make a folder and its parents."""
        self._files.make_folder(path.rstrip("/"))

    def mkdir(self, path, create_parents=True, **kwargs):
        """Make a folder and its parents."""
        self._files.make_folder(path.rstrip("/"))

    def _rm(self, path):
        self._files.delete(path.rstrip("/"))

    def rmdir(self, path):
        """Delete an empty folder."""
        self._files.delete(path.rstrip("/"))

    def cp_file(self, path1, path2, **kwargs):
        """Copy a file; moves are made of this."""
        self._files.put(path2, self._files.get(path1), overwrite=True)

    def _open(self, path, mode="rb", **kwargs):
        if "r" in mode:
            return io.BytesIO(self._files.get(path))
        return _Upload(self._files, path)

    @staticmethod
    def _row(path, length, time, is_folder):
        kind = "directory" if is_folder else "file"
        return {"name": path, "size": length, "type": kind, "mtime": time / 1000}


class _Upload(io.BytesIO):
    def __init__(self, files, path):
        super().__init__()
        self._files, self._path = files, path

    def close(self):
        if not self.closed:
            self._files.put(self._path, self.getvalue(), overwrite=True)
        super().close()
