"""What frameworks need: one registry of clients made from settings, a health check and a status page.

No framework is imported here; ``django`` and ``flask`` are folders of their own, each for the sites that use it. From the
bottom up; a file imports only from those before it:

* ``settings``: ``MCP_SERVERS``, and what is made of it; ``reading``: every mistake that can be made in it;
* ``clients``: the clients of one process, each made when it is first used;
* ``report``: how they are doing, as data;
* ``page``: that as a page of HTML; ``serving``: who may see it;
* ``telling``: that, and what changes, as lines for a terminal;
* ``django``, ``flask``: the frameworks.

All of it stands on the public names of the package, as a program of a user's does.
"""
