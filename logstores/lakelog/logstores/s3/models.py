"""The SDK's descriptions of its services, read once per process.

They are megabytes of JSON, the same for every client. Each session of the SDK would read them for
itself, and a process that talks to many endpoints would keep as many copies.
"""

from __future__ import annotations

import functools
import gzip
import os
import threading
from typing import Any, Final

from lakelog.logstores.systems import after_fork

_SERVICE: Final = "s3"

_reading = threading.RLock()


def _reset_after_fork() -> None:
    # The lock may have been held at the fork, by a thread that the child doesn't have. What was
    # read by then is data, and may stay.
    global _reading
    _reading = threading.RLock()


after_fork(_reset_after_fork)


def loader_of(core: Any) -> Any:
    """Reads the SDK's models, that of S3 without a look at the others.

    Before the SDK's own loader reads one, it lists the folders of all four hundred, and then it
    makes ordered dictionaries, for three times what plain ones take. Those of other services, of
    which some are for credentials, are read as ever.

    Args:
        core: a botocore session. Those that look in the same folders are given the same loader,
            whose list of folders they must not change (a session of boto3 does).
    """
    with _reading:
        return _loader(core.get_config_variable("data_path"))


@functools.lru_cache(maxsize=4)
def _loader(data_path: str | None) -> Any:
    import orjson
    from botocore.loaders import JSONFileLoader, Loader, create_loader

    class QuickFiles(JSONFileLoader):  # type: ignore[misc]  # botocore is untyped
        def load_file(self, file_path: str) -> Any:
            for path, opened in ((f"{file_path}.json", open), (f"{file_path}.json.gz", gzip.open)):
                if os.path.isfile(path):  # noqa: PTH113  # it is asked hundreds of times
                    with opened(path, "rb") as file:
                        return orjson.loads(file.read())
            return None

    whole = create_loader(data_path)

    class S3First(Loader):  # type: ignore[misc]  # botocore is untyped
        def list_available_services(self, type_name: str) -> Any:  # noqa: ARG002  # the SDK's
            return [_SERVICE]

        def load_service_model(
            self, service_name: str, type_name: str, api_version: str | None = None
        ) -> Any:
            # One thread at a time: the first to read a model completes it in place.
            with _reading:
                if service_name != _SERVICE:
                    return whole.load_service_model(service_name, type_name, api_version)
                return super().load_service_model(service_name, type_name, api_version)

    return S3First(whole.search_paths, file_loader=QuickFiles(), include_default_search_paths=False)
