"""Imports before a fork: the SDK of a storage takes longer to import than a commit takes."""

from __future__ import annotations

import contextlib
import importlib
import os
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable


def import_what_it_imports(work: Callable[[], object]) -> None:
    """Let a fork do it, whose locks and connections go with it; import what it had in the end."""
    heard, said = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            os.close(heard)
            work()
            with os.fdopen(said, "w") as out:
                out.write("\n".join(list(sys.modules)))
        finally:
            os._exit(0)
    os.close(said)
    with os.fdopen(heard) as pipe:
        names = pipe.read().split()
    os.waitpid(pid, 0)
    for name in names:
        with contextlib.suppress(ImportError):
            importlib.import_module(name)
    if "botocore.client" in sys.modules:
        _load_models_of_s3()


def _load_models_of_s3() -> None:
    """Into a cache that forks inherit: to make a client asks nobody, and starts no thread."""
    import botocore.session

    from lakelog.logstores.s3.models import loader_of

    core = botocore.session.get_session()
    core.register_component("data_loader", loader_of(core))
    core.set_credentials("some", "some")
    core.create_client("s3", region_name="us-east-1").close()
