"""The command line ``mcp-sync``, also ``python -m mcp_sync``: a person, or a shell script, at a terminal.

Where things are, from the bottom up; a file imports only from those before it:

* ``exits``: the exit codes, and which error gives which;
* ``output``: standard output and the log; text made fit for a terminal; tables;
* ``waiting``: how to wait so that Ctrl-C is heard; signals;
* ``examples``, ``arguments``: the options and the help;
* ``once``, ``listing``: the commands ``info`` and ``read``; the command ``list``;
* ``values``: arguments from what was typed; ``shown``: what tools and prompts answer, as text;
* ``bar``, ``fields``, ``asking``, ``conversation``: how far a call is; what a server asks, put to the user; both during a call;
* ``leaving``: what a server asks, where there is nobody;
* ``calling``: the commands ``call`` and ``prompt``;
* ``watched``, ``lines``, ``screen``, ``board``, ``watching``: the command ``watch``;
* ``telling``: the command ``demo``;
* ``program``: :func:`main`, from the arguments to the exit code.
"""

from .program import main

__all__ = ["main"]
