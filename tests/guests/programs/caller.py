"""Has tasks carried out: for each line of standard input one with that name and soft time limit. Prints their results."""
import json
import os
import sys

from celery import Celery

FILES = os.environ["MCP_FILES"]
app = Celery("tasks", broker="filesystem://", backend="file://" + os.path.join(FILES, "results"))
app.conf.broker_transport_options = {
    "data_folder_in": os.path.join(FILES, "queue"),
    "data_folder_out": os.path.join(FILES, "queue"),
    "control_folder": os.path.join(FILES, "control"),
}

for line in sys.stdin:
    name, _, limit = line.strip().partition(" ")
    result = app.send_task("tasks." + name, soft_time_limit=float(limit) if limit else None)
    print(json.dumps(result.get(timeout=30, interval=0.05)), flush=True)
