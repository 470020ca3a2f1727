"""Which frameworks the tests here run under, in environments that are made with a Python of their time."""

import glob
import os
import subprocess
from pathlib import Path
from typing import Dict, List, NamedTuple, Optional, Tuple

from interop.environments import clean_environ, python_environment

#: What mcp_sync itself needs, and what runs the tests.
NEEDED = ("requests>=2.25,<3", "sseclient-py>=1.8,<2", "cachetools>=4.2,<9", "pytest>=7,<9")


class Together(NamedTuple):
    """Frameworks of one time, in one environment.

    :param name: of the environment.
    :param pythons: the Pythons that they run on, the first choice first.
    :param requirements: what is installed.
    """

    name: str
    pythons: Tuple[str, ...]
    requirements: Tuple[str, ...]


class Framework(NamedTuple):
    """One framework.

    :param name: for the names of the tests.
    :param where: its environment.
    """

    name: str
    where: Together


OLDEST = Together("frameworks-2020", ("3.8", "3.7", "3.9"), ("Django==2.2.*", "Flask==2.2.*", "Werkzeug==2.2.*"))
OLD = Together(
    "frameworks-2021",
    ("3.7", "3.8", "3.9"),
    # What Flask 1.1 asks for has no upper bounds, and what fitted it is no longer the newest.
    (
        "Django==3.2.*",
        "Flask==1.1.*",
        "Werkzeug==1.0.*",
        "Jinja2==2.11.*",
        "MarkupSafe==1.1.*",
        "itsdangerous==1.1.*",
        "click==7.1.*",
    ),
)
YOUNG = Together("frameworks-2023", ("3.10", "3.11", "3.9", "3.12"), ("Django==4.2.*",))
NEWEST = Together("frameworks-newest", ("3.13", "3.14", "3.12"), ("Django>=5.2", "Flask==3.*"))

DJANGO = (
    Framework("django-2.2", OLDEST),
    Framework("django-3.2", OLD),
    Framework("django-4.2", YOUNG),
    Framework("django-newest", NEWEST),
)
FLASK = (Framework("flask-1.1", OLD), Framework("flask-2.2", OLDEST), Framework("flask-3", NEWEST))


def pythons() -> "Dict[str, str]":
    """The Pythons of this machine that can make environments, by version."""
    root = os.environ.get("PYENV_ROOT") or os.path.join(os.path.expanduser("~"), ".pyenv")
    folders = os.environ.get("PATH", "").split(os.pathsep) + glob.glob(os.path.join(root, "versions", "*", "bin"))
    found: "Dict[str, str]" = {}
    for folder in folders:
        for path in sorted(glob.glob(os.path.join(folder, "python3.*"))):
            version = os.path.basename(path)[len("python") :]
            if version.count(".") == 1 and version[2:].isdigit() and version not in found and _works(path, version):
                found[version] = path
    return found


def _works(path: str, version: str) -> bool:
    """Whether it is that Python, and whole: one that is only a pointer to another, or lacks TLS, is not."""
    tell = "import ssl, sys, venv, ensurepip; print('%d.%d' % sys.version_info[:2])"
    try:
        done = subprocess.run(
            [path, "-I", "-c", tell],
            env=clean_environ(),
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            universal_newlines=True,
            timeout=60,
        )
    except OSError:
        return False
    return done.returncode == 0 and done.stdout.strip() == version


def chosen(where: Together, found: "Dict[str, str]") -> "Optional[str]":
    """The Python for an environment, or None if there is none here."""
    return next((found[version] for version in where.pythons if version in found), None)


def environment(where: Together, interpreter: str) -> Path:
    """The Python of an environment, which is made if it is not there."""
    requirements: List[str] = list(NEEDED) + list(where.requirements)
    return Path(python_environment(where.name, *requirements, interpreter=interpreter))
