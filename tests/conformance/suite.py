"""The official conformance suite: its environment, one scenario of it, and what counts as passed."""
import json
import os
import re
import shlex
import signal
import subprocess
import sys
from pathlib import Path

from interop.environments import clean_environ, node_environment

import mcp_sync

from .scenarios import MODERN

# The npm tag "latest" is older than revision 2026-07-28.
SUITE = ("conformance", "@modelcontextprotocol/conformance@0.2.0-alpha.12")

DRIVER = Path(__file__).with_name("driver.py")

#: Seconds that a driver may take, and how many more a whole run may. Only failures reach them.
DRIVER_LIMIT = 40.0
SUITE_LIMIT = 20.0

_LISTED = re.compile(r"^\s+- (\S+) \[(.*)\]$", re.MULTILINE)
_EXIT = re.compile(r"^Client exited with code (-?\d+)$", re.MULTILINE)
_SPOKE = re.compile(r"^spoke (\S+)$", re.MULTILINE)


class Outcome:
    """What one scenario brought.

    :param scenario: which.
    :param checks: the suite's checks, as it wrote them.
    :param ended: how the suite ended, 0 for well.
    :param printed: what the suite printed, and the driver if it failed.
    :param spoke: the revision that the driver says it spoke, or None.
    """

    def __init__(self, scenario, checks, ended, printed, spoke):
        self.scenario = scenario
        self.checks = checks
        self.ended = ended
        self.printed = printed
        self.spoke = spoke
        failed = _EXIT.search(printed)
        self.driver_ended = int(failed.group(1)) if failed else 0

    def count(self, status):
        return sum(check["status"] == status for check in self.checks)

    @property
    def faults(self):
        """What is wrong, one line each; nothing if it passed.

        Stricter than the suite: to that a driver passes that does nothing, in some scenarios also one that fails.
        """
        faults = [
            "{status} of {id}: {why}".format(why=check.get("errorMessage") or check["description"], **check)
            for check in self.checks
            if check["status"] in ("FAILURE", "WARNING")
        ]
        succeeded = self.count("SUCCESS")
        if succeeded < self.scenario.successes:
            faults.append("{} checks succeeded, not {}".format(succeeded, self.scenario.successes))
        if self.spoke is not None and (self.spoke == MODERN) != (self.scenario.version == MODERN):
            faults.append("the driver spoke {}".format(self.spoke))
        if self.driver_ended != 0:
            faults.append("the driver ended with {}".format(self.driver_ended))
        if self.ended != 0 and not faults:
            faults.append("the suite ended with {}".format(self.ended))
        return faults


class Suite:
    """The suite, installed. Any thread."""

    def __init__(self):
        node, modules = node_environment(*SUITE, own=True)
        self._command = [str(node), str(modules / "@modelcontextprotocol" / "conformance" / "dist" / "index.js")]

    def scenarios(self):
        """:returns: what the suite has for clients: the name of each scenario, with its revisions."""
        listed = _LISTED.findall(self._run(["list", "--client"], SUITE_LIMIT)[1])
        return {name: revisions.split(",") for name, revisions in listed}

    def outcome(self, scenario, directory, driver=DRIVER, limit=DRIVER_LIMIT):
        """Run one scenario, alone.

        :param directory: an empty directory, for what the suite writes.
        :param driver: the program that is the client.
        :param limit: seconds that the driver may take.
        """
        # With "exec" the shell becomes the driver, so that the suite can end it.
        driven = "exec {} -W error {}".format(shlex.quote(sys.executable), shlex.quote(str(driver)))
        arguments = ["client", "--command", driven, "--scenario", scenario.name, "--spec-version", scenario.version]
        arguments += ["--timeout", str(int(limit * 1000)), "--output-dir", str(directory)]
        if scenario.extension:
            arguments.append("--force")  # it belongs to no revision
        ended, printed = self._run(arguments, limit + SUITE_LIMIT)
        checks, spoke = [], None
        for written in directory.glob("*/checks.json"):
            checks = json.loads(written.read_text(encoding="utf-8"))
            spoke = _SPOKE.search(written.with_name("stdout.txt").read_text(encoding="utf-8"))
        return Outcome(scenario, checks, ended, printed, spoke and spoke.group(1))

    def _run(self, arguments, limit):
        environ = clean_environ()
        # The driver is to use the package that these tests use, wherever that is.
        environ["PYTHONPATH"] = str(Path(mcp_sync.__file__).resolve().parents[1])
        process = subprocess.Popen(
            self._command + arguments,
            env=environ,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            encoding="utf-8",
            errors="replace",
            start_new_session=True,
        )
        try:
            printed, _ = process.communicate(timeout=limit)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            printed, _ = process.communicate()
        return process.returncode, printed
