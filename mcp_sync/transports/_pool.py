"""A pool of connections to one server, and the sending of one request over it."""

from __future__ import annotations

import http.client
from http.cookiejar import DefaultCookiePolicy
from typing import Any, List, Mapping, Optional
from urllib.parse import urlsplit

import requests
import requests.auth
import requests.hooks
import urllib3
import urllib3.exceptions

from .._version import __version__
from ..errors import MCPSyncError, TransportError
from ._guard import Guard
from ._options import HTTPOptions
from ._sockets import GuardedAdapter, pool_for

__all__ = ["Pool"]

# How much is read of the answers that a callable for credentials deals with itself (a Digest challenge), in bytes.
_CHALLENGE_BYTES = 256 * 1024

# What is raised while sending and receiving; anything else is the callable's own.
_OF_THE_NETWORK = (OSError, http.client.HTTPException, urllib3.exceptions.HTTPError)


class Pool:
    """Connections, and what every request over them has in common. Not changed after construction; any thread.

    :param options: how to reach the server.
    :param adapter: the connections, if they are another pool's; None for new ones.
    :raises TransportError: if they cannot be used as the options say.
    """

    def __init__(self, options: HTTPOptions, adapter: Optional[GuardedAdapter] = None) -> None:
        self.options = options
        self._owns_adapter = adapter is None
        self.adapter = GuardedAdapter(options.connections) if adapter is None else adapter
        template = requests.Request("POST", options.url, headers=dict(options.headers)).prepare()
        template.headers.setdefault("User-Agent", "mcp_sync/%s" % __version__)
        template.headers["Content-Type"] = "application/json"
        template.headers["Accept"] = "application/json, text/event-stream"
        template.headers["Accept-Encoding"] = "identity"
        template.headers.pop("Content-Length", None)
        if isinstance(options.auth, tuple):
            # As bytes: requests would make Latin-1 of them, and fails at what that does not have.
            user, password = (part.encode("utf-8") for part in options.auth)
            template = requests.auth.HTTPBasicAuth(user, password)(template)
        self._template = template
        self._headers = dict(template.headers)
        try:
            self._pool, self._target = pool_for(
                self.adapter, template, options.verify, options.cert, options.proxies
            )
        except (OSError, ValueError) as error:  # requests' own among them: a missing file, a proxy's URL
            raise TransportError("%s cannot be reached: %s" % (options.url, error), may_have_run=False) from error
        self._session: Optional[requests.Session] = None
        if callable(options.auth):
            # Callables may register hooks (Digest does), which only a session runs.
            session = requests.Session()
            session.trust_env = False
            session.cookies.set_policy(DefaultCookiePolicy(allowed_domains=[]))
            session.mount("http://", self.adapter)
            session.mount("https://", self.adapter)
            self._session = session

    def close(self) -> None:
        """Close the idle connections, unless they are another pool's."""
        if self._owns_adapter:
            self.adapter.close()

    def request(
        self, verb: str, body: Optional[bytes], headers: Mapping[str, str], guard: Guard, url: Optional[str]
    ) -> Any:
        """Send one request and return urllib3's response, headers read and body not.

        :param url: where to, if not to the server's own URL; on the same origin.
        :raises MCPSyncError: if there are no credentials or no time for it.
        :raises Exception: whatever the libraries raise.
        """
        limit = guard.deadline.remaining()
        connect = self.options.connect_timeout
        if limit is not None:
            if limit <= 0.0:
                raise guard.deadline.error(may_have_run=guard.sent)
            connect = min(connect, limit)
        if self._session is not None:
            return self._with_callable(self._session, verb, body, headers, guard, url, connect, limit)
        merged = self._headers.copy()
        merged.update(headers)
        with guard:
            return self._pool.urlopen(
                verb,
                self._target if url is None else _target(url, self._target),
                body=body,
                headers=merged,
                retries=False,
                redirect=False,
                assert_same_host=False,
                preload_content=False,
                decode_content=False,
                timeout=urllib3.Timeout(connect=connect, read=limit),
            )

    def _with_callable(
        self,
        session: requests.Session,
        verb: str,
        body: Optional[bytes],
        headers: Mapping[str, str],
        guard: Guard,
        url: Optional[str],
        connect: float,
        limit: Optional[float],
    ) -> Any:
        prepared = self._template.copy()
        prepared.method = verb
        prepared.url = url or prepared.url
        prepared.headers.update(headers)
        prepared.prepare_body(body, None)
        # The answers that the callable's own hooks deal with: challenges. (A copy shares its hooks with the template,
        # which would gather those of every request.)
        challenges: List[Any] = []
        prepared.hooks = requests.hooks.default_hooks()
        prepared.hooks["response"] = [lambda response, **_: challenges.append(response)]
        try:
            prepared.prepare_auth(self.options.auth, prepared.url or "")
        except Exception as error:
            # The boundary to a user's code, and whatever it raises.
            raise self._no_credentials(error, guard) from error
        with guard:
            guard.budget = _CHALLENGE_BYTES
            try:
                return session.send(
                    prepared,
                    stream=True,
                    timeout=(connect, limit),
                    allow_redirects=False,
                    verify=self.options.verify,
                    cert=self.options.cert,
                    proxies=self.options.proxies,
                ).raw
            except Exception as error:
                for challenge in challenges:
                    challenge.raw.close()  # its connection would stay open until it is collected as garbage
                if challenges and not isinstance(error, _OF_THE_NETWORK):
                    raise self._no_credentials(error, guard) from error
                raise
            finally:
                guard.budget = None
                challenges.clear()  # each holds the request, and the request's hooks hold this list

    def _no_credentials(self, error: Exception, guard: Guard) -> MCPSyncError:
        if isinstance(error, MCPSyncError):
            return error
        return TransportError(
            "there are no credentials for %s: the callable given as auth= failed: %s: %s"
            % (self.options.url, type(error).__name__, error),
            may_have_run=guard.sent,
        )


def _target(url: str, usual: str) -> str:
    if usual.startswith("http"):
        return url  # through a proxy, the request line names the whole URL
    parts = urlsplit(url)
    return (parts.path or "/") + ("?" + parts.query if parts.query else "")
