"""Files and folders in Redis.

    f:<path>    a string: the file's bytes
    d:<folder>  a sorted set: the names in it; the empty name marks that the folder exists
    t:<folder>  a hash: name -> when it was written, milliseconds

Members of equal score are ordered by their bytes, and UTF-8 orders as code points do: a listing
is one range. Scripts run alone, so a file and its entry appear at the same moment. Keys are made
inside the scripts, which Redis Cluster does not allow: give it one server.
"""

from contextlib import contextmanager
from functools import cache

from redis import Redis
from redis.backoff import NoBackoff
from redis.exceptions import RedisError, ResponseError
from redis.retry import Retry

MADE, TAKEN, ABSENT = 1, 0, -1

_PUT = """
local folder, name, body, overwrite = ARGV[1], ARGV[2], ARGV[3], ARGV[4]
if redis.call('EXISTS', 'd:' .. folder) == 0 then return -1 end
local key = 'f:' .. folder .. '/' .. name
if redis.call('EXISTS', 'd:' .. folder .. '/' .. name) == 1 then return 0 end
if overwrite == '0' and redis.call('EXISTS', key) == 1 then return 0 end
local now = redis.call('TIME')
redis.call('SET', key, body)
redis.call('ZADD', 'd:' .. folder, 0, name)
redis.call('HSET', 't:' .. folder, name, now[1] * 1000 + math.floor(now[2] / 1000))
return 1
"""
_ENTRIES = """
local folder, start = ARGV[1], ARGV[2]
if redis.call('EXISTS', 'd:' .. folder) == 0 then return false end
local found = {}
for _, name in ipairs(redis.call('ZRANGEBYLEX', 'd:' .. folder, '[' .. start, '+')) do
  if name ~= '' then
    local path = folder .. '/' .. name
    table.insert(found, name)
    table.insert(found, redis.call('STRLEN', 'f:' .. path))
    table.insert(found, redis.call('HGET', 't:' .. folder, name) or 0)
    table.insert(found, redis.call('EXISTS', 'd:' .. path))
  end
end
return found
"""


@contextmanager
def as_os_errors(kind=RedisError):
    """Redis's errors are no OSErrors, which is what the contract's callers look for."""
    try:
        yield
    except kind as error:
        raise OSError(f"Redis: {error}") from error


@cache
def files_at(url):
    """The files of a server: connections are shared, and a store that is pickled has none."""
    return Files(url)


class Files:
    """What the store and the file system share; no request is repeated behind their backs."""

    def __init__(self, url):
        """Connect at the first request."""
        once = Retry(NoBackoff(), 0)
        self._redis = Redis.from_url(url, retry=once, socket_timeout=10, socket_connect_timeout=5)
        self._put = self._redis.register_script(_PUT)
        self._entries = self._redis.register_script(_ENTRIES)

    @as_os_errors(ResponseError)  # of a connection that broke, the store knows what to think
    def put(self, path, body, *, overwrite):
        """Make a file: MADE, TAKEN, or ABSENT where its folder is."""
        folder, _, name = path.rpartition("/")
        return self._put(args=[folder, name, body, int(overwrite)])

    @as_os_errors()
    def get(self, path):
        """The bytes of a file."""
        body = self._redis.get("f:" + path)
        if body is None:
            raise FileNotFoundError(f"{path} does not exist")
        return body

    def entries(self, folder, start=""):
        """Name, length, modification time and whether it is a folder, from a name on."""
        with as_os_errors():
            found = self._entries(args=[folder, start])
        if found is None:
            raise FileNotFoundError(f"{folder} does not exist")
        for at in range(0, len(found), 4):
            name, length, time, is_folder = found[at : at + 4]
            yield name.decode(), length, int(time), bool(is_folder)

    @as_os_errors()
    def make_folder(self, path):
        """Make a folder and its parents."""
        parts = path.split("/")
        with self._redis.pipeline() as together:
            for count in range(1, len(parts) + 1):
                together.zadd("d:" + "/".join(parts[:count]), {"": 0})
                if count > 1:
                    together.zadd("d:" + "/".join(parts[: count - 1]), {parts[count - 1]: 0})
            together.execute()

    @as_os_errors()
    def is_folder(self, path):
        """Whether a folder of that path exists."""
        return bool(self._redis.exists("d:" + path))

    @as_os_errors()
    def delete(self, path):
        """Delete a file, or an empty folder."""
        folder, _, name = path.rpartition("/")
        with self._redis.pipeline() as together:
            together.delete("f:" + path, "d:" + path, "t:" + path)
            together.zrem("d:" + folder, name)
            together.hdel("t:" + folder, name)
            together.execute()
