"""Tasks of Celery, that hold a client which is made when the module is imported: before the pool is forked.

The broker and the results are files.
"""
import os
import threading

from application import CONFIG, client, connections, watch
from celery import Celery
from celery.exceptions import SoftTimeLimitExceeded

FILES = os.environ["MCP_FILES"]
app = Celery("tasks", broker="filesystem://", backend="file://" + os.path.join(FILES, "results"))
app.conf.broker_transport_options = {
    "data_folder_in": os.path.join(FILES, "queue"),
    "data_folder_out": os.path.join(FILES, "queue"),
    "control_folder": os.path.join(FILES, "control"),
}


@app.task
def read():
    """What is current, as the process of the pool has it."""
    result = client.read_resource(CONFIG, timeout=2)
    names = sorted(thread.name for thread in threading.enumerate() if thread.name.startswith("mcp_sync"))
    return dict(
        pid=os.getpid(), parent=os.getppid(), text=result.text, stale=result.stale, threads=names, connections=connections(),
        state=watch.status.state.value,
    )


@app.task
def read_patiently():
    """Reads anew, and says what its soft time limit made of that."""
    try:
        return client.read_resource(CONFIG, cache_mode="refresh", timeout=60).text
    except SoftTimeLimitExceeded:
        return "too long in %d" % os.getpid()
