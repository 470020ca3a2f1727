"""Fixtures for the tests inside the programs that this package is used in: gunicorn, Celery, uWSGI, gevent."""
import os
import shutil
import sys
import sysconfig
from pathlib import Path

import pytest
from interop.environments import python_environment

from mcp_sync.testing import Server

CONFIG = "docs://service/config"
#: What the package itself needs, and what it is a guest of.
OURS = ("requests", "sseclient-py", "cachetools")
GUNICORN_AND_CELERY = ("gunicorn-celery", "gunicorn[gevent]==27.*", "celery==5.*") + OURS
UWSGI = ("uwsgi", "uWSGI==2.0.31") + OURS
#: The last one that has no threads unless it is told so.
OLD_UWSGI = ("old-uwsgi", "uWSGI==2.0.26") + OURS

collect_ignore_glob = []
if sys.version_info < (3, 11) or not Path("/proc/self/fd").exists():
    # Their environments are made with the Python that runs the tests; who has which socket open is read in /proc.
    collect_ignore_glob.append("test_*.py")


@pytest.fixture
def server():
    with Server() as server:
        server.add(CONFIG, "colour = blue")
        yield server


@pytest.fixture(scope="session")
def python():
    """:returns: the path of a Python that has gunicorn, gevent and Celery."""
    return python_environment(*GUNICORN_AND_CELERY)


def _compiled(*requirements):
    compiler = shutil.which("cc") or shutil.which("gcc")
    header = Path(sysconfig.get_paths()["include"]) / "Python.h"
    if not (compiler and header.exists()) and not os.environ.get("CI"):
        pytest.skip("uWSGI is compiled here, and there is no C compiler, or no Python.h")
    return python_environment(*requirements).parent


@pytest.fixture(scope="session")
def uwsgi():
    """:returns: the path of a uWSGI that always has threads."""
    return _compiled(*UWSGI) / "uwsgi"


@pytest.fixture(scope="session")
def old_uwsgi():
    """:returns: the path of a uWSGI that has threads if it is told so."""
    if sys.version_info >= (3, 13):
        pytest.skip("uWSGI 2.0.26 cannot be compiled for this Python")
    return _compiled(*OLD_UWSGI) / "uwsgi"
