"""A call that takes long: its progress, how it is cancelled, and a task that another process waits for.

    python long_task.py                                                 a server of its own
    python long_task.py http://127.0.0.1:8000/mcp train '{"epochs": 90}'      until it is done, or Ctrl-C
"""

import json
import os
import sys
import tempfile
import threading
from typing import Any, Dict

from mcp_sync import Cancellation, Cancelled, Client, Progress, TaskHandle
from mcp_sync.testing import Server


def show(progress: Progress) -> None:
    done = "" if progress.fraction is None else "%3.0f%% " % (100 * progress.fraction)
    print("  %s%s" % (done, progress.message or ""))


def wait_for(client: Client, tool: str, arguments: Dict[str, Any]) -> None:
    # Ten seconds without a sign of progress are too many, and so is an hour in all.
    result = client.call_tool(tool, arguments, on_progress=show, timeout=10, max_timeout=3600)
    print("done: %s" % result.text)


def cancel(client: Client, tool: str, arguments: Dict[str, Any]) -> None:
    """Any thread can cancel a call: a timer, a button, another request."""
    cancellation = Cancellation()

    def show_and_lose_patience(progress: Progress) -> None:
        show(progress)
        threading.Thread(target=cancellation.cancel, args=("it takes too long",)).start()

    try:
        client.call_tool(tool, arguments, on_progress=show_and_lose_patience, cancellation=cancellation)
    except Cancelled as error:
        print("cancelled: %s" % error)


# -- A task goes on whether anybody waits for it or not. Whoever has its handle can ask how it is doing. -------------------


def begin(server: str, tool: str, arguments: Dict[str, Any], file: str) -> None:
    """One process begins it, and stores the handle. Keep it as you keep credentials: some servers ask for no others."""
    with Client(server) as client:
        task = client.start_tool(tool, arguments)
        if not isinstance(task, TaskHandle):
            print("done at once: %s" % task.text)  # whether it is a task is for the server to say
            return
        with open(file, "w") as stored:
            json.dump(task.to_dict(), stored)
        print("begun, and stored")


def pick_up(server: str, file: str) -> None:
    """Another process waits for it. It could as well look once (``refresh()``), or have it cancelled (``cancel()``)."""
    with open(file) as stored, Client(server) as client:
        task = client.task(json.load(stored))
        result = task.wait(timeout=3600, on_progress=show)
        print("%s: %s" % (task.status, result.text))


def train(arguments: Dict[str, Any], call: Any) -> str:
    """A tool that takes its time. (It is written for the server of this example; others have their own ways.)"""
    gone = call.cancelled
    for epoch in range(1, arguments["epochs"] + 1):
        call.progress(epoch, arguments["epochs"], "epoch %d" % epoch)
        if gone.wait(arguments["seconds"]):
            return "given up"  # nobody waits for it any more
    return "trained for %d epochs" % arguments["epochs"]


def main() -> None:
    if len(sys.argv) > 1:
        with Client(sys.argv[1]) as client:
            try:
                wait_for(client, sys.argv[2], json.loads(sys.argv[3]) if len(sys.argv) > 3 else {})
            except KeyboardInterrupt:
                print("given up; the server is told")
        return
    with Server() as server, Client(server.url) as client, tempfile.TemporaryDirectory() as folder:
        server.add_tool("train", train)
        wait_for(client, "train", {"epochs": 3, "seconds": 0.01})
        cancel(client, "train", {"epochs": 2, "seconds": 60})
        server.add_tool("train_for_days", train, task=True)
        begin(server.url, "train_for_days", {"epochs": 3, "seconds": 0.1}, os.path.join(folder, "task"))
        pick_up(server.url, os.path.join(folder, "task"))


if __name__ == "__main__":
    main()
