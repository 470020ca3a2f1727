"""Which frameworks the tests here run under, each in an environment of its own, made with a Python of its time."""

import glob
import os
import subprocess
from pathlib import Path
from typing import Dict, List, NamedTuple, Optional, Tuple

from interop.environments import clean_environ, python_environment

#: What mcp_sync itself needs, and what runs the tests.
NEEDED = ("requests>=2.25,<3", "sseclient-py>=1.8,<2", "cachetools>=4.2,<9", "pytest>=7,<9")


class Framework(NamedTuple):
    """One framework.

    :param name: for the names of the tests.
    :param pythons: the Pythons that it runs on, the first choice first.
    :param requirements: what is installed.
    """

    name: str
    pythons: Tuple[str, ...]
    requirements: Tuple[str, ...]


DJANGO = (
    Framework("django-2.2", ("3.8", "3.7", "3.9"), ("Django==2.2.*",)),
    Framework("django-3.2", ("3.9", "3.8", "3.10"), ("Django==3.2.*",)),
    Framework("django-4.2", ("3.10", "3.11", "3.9", "3.12"), ("Django==4.2.*",)),
    Framework("django-newest", ("3.13", "3.14", "3.12"), ("Django>=5.2",)),
)
FLASK = (
    Framework(
        "flask-1.1",
        ("3.7", "3.8", "3.9"),
        # What it asks for has no upper bounds, and what fitted it is no longer the newest.
        ("Flask==1.1.*", "Werkzeug==1.0.*", "Jinja2==2.11.*", "MarkupSafe==1.1.*", "itsdangerous==1.1.*", "click==7.1.*"),
    ),
    Framework("flask-2.2", ("3.8", "3.9", "3.10", "3.11"), ("Flask==2.2.*", "Werkzeug==2.2.*")),
    Framework("flask-3", ("3.13", "3.12", "3.11", "3.10"), ("Flask==3.*",)),
)


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


def chosen(framework: Framework, found: "Dict[str, str]") -> "Optional[str]":
    """The Python for a framework, or None if there is none here."""
    return next((found[version] for version in framework.pythons if version in found), None)


def environment(framework: Framework, interpreter: str) -> Path:
    """The Python of the environment."""
    requirements: List[str] = list(NEEDED) + list(framework.requirements)
    return Path(python_environment(framework.name, *requirements, interpreter=interpreter))
