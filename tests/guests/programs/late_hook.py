"""The application, and a hook of uWSGI that is set after its client was made: there is only one."""
import uwsgi
from application import application, note

__all__ = ["application"]

uwsgi.post_fork_hook = lambda: note("hook", "theirs")
