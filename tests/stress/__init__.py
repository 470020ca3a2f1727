"""What nobody thought of: bytes that chance makes, connections that break anyhow, and many threads at it for a long time.

Bytes, in ``test_bytes_*.py``: ``grammar.py`` says what they are made of, ``reading.py`` what is done with them and must hold,
``corpus/`` keeps some of them, and ``fuzz.py`` gives them to a fuzzer that is guided by what it covers.
Faults: ``proxy.py`` stands between a client and a server, and breaks connections. ``soak.py`` lets threads read and write
through it, ``judge.py`` holds every single read against what the server had, ``served.py`` says what servers there are.

All of it comes from seeds, and is bounded. What runs with the other tests is the short form; the long ones, in ``tests``::

    python -m stress.fuzz events -max_total_time=600    # or messages, results; needs the package atheris
    MCP_SYNC_EXAMPLES=20000 python -m pytest stress     # more of what hypothesis makes
    python -m stress.soak --minutes 30 --seed 7         # --server official, --era legacy
"""
