"""Tasks: calls whose answer is not waited for on a connection, but asked for again and again. The extension of that name.

A server that is told that this client knows tasks may answer ``tools/call`` with a task instead of a result. The task goes on
whether somebody asks for it or not, and whoever knows its id can ask: this process now, or another one tomorrow. See the
extension's specification (``io.modelcontextprotocol/tasks``): Task Polling, Task Update Requests, Task Cancellation.

``base.py`` is what a server says of a task; ``handle.py`` what a program holds of it; ``waiting.py`` one wait for its end;
``owner.py`` what belongs to a client.
"""

from .handle import TaskHandle
from .owner import TASKS, Tasks

__all__ = ["TASKS", "TaskHandle", "Tasks"]
