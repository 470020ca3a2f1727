"""The documents that the Python servers of this folder serve.

Texts live in a JSON file (URI -> text), so that they survive the death of the server, and so that a test can
change them while it is dead. Files next to it order a test and a read (``N`` counts from 1):

* ``<file>.hold-N``     a test made it: one read of the slow document shall be held;
* ``<file>.reached-N``  the read took that file and now stands still, its (old) text in hand;
* ``<file>.release-N``  a test made it: the read may answer.

In ``<file>.notes`` the server notes, a line for each, what a test cannot ask of a server that is somebody's child.
"""
import asyncio
import json
import os
import sys
import threading
from collections import Counter

SLOW = "docs://service/slow"
GUIDES = "docs://guides/"
HOLD_LIMIT = 20.0
MAX_HOLDS = 9


class Documents:
    """The JSON file, and how often each document was read in the life of this process."""

    def __init__(self, path):
        self.path = path
        self.reads = Counter()

    def texts(self):
        with open(self.path, encoding="utf-8") as file:
            return json.load(file)

    def listed(self):
        """The URIs that belong into the catalog; guides are reached by their template."""
        return [uri for uri in self.texts() if not uri.startswith(GUIDES)]

    def set_text(self, uri, text):
        texts = self.texts()
        texts[uri] = text
        unfinished = "{}.{}".format(self.path, os.getpid())
        with open(unfinished, "w", encoding="utf-8") as file:
            json.dump(texts, file)
        os.replace(unfinished, self.path)

    def note(self, text):
        """Add a line to the notes."""
        with open(self.path + ".notes", "a", encoding="utf-8") as file:
            file.write(text + "\n")

    async def read(self, uri):
        """:raises KeyError: there is no such document."""
        self.reads[uri] += 1
        self.note("read " + uri)
        text = self.texts()[uri]
        if uri == SLOW:
            await self._stand_still()
        return text

    async def _stand_still(self):
        for number in range(1, MAX_HOLDS + 1):
            try:
                os.rename("{}.hold-{}".format(self.path, number), "{}.reached-{}".format(self.path, number))
            except FileNotFoundError:
                continue
            release = "{}.release-{}".format(self.path, number)
            loop = asyncio.get_running_loop()
            give_up = loop.time() + HOLD_LIMIT
            while not os.path.exists(release) and loop.time() < give_up:
                await asyncio.sleep(0.01)
            return


def die_with_parent():
    """End this process when whoever started it is gone: its end of our standard input closes then."""

    def watch():
        while sys.stdin.buffer.read(4096):
            pass
        os._exit(3)

    threading.Thread(target=watch, name="die-with-parent", daemon=True).start()
