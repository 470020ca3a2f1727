"""What messages mean, by the age of the protocol. ``base.py`` says what an era is; every other file is one."""
