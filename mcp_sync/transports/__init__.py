"""How messages move. ``base.py`` says what a transport is; every other file is one."""
