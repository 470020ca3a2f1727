"""How to reach a server over HTTP: checked once, at construction, and not changed after it."""

from __future__ import annotations

import os
import re
from typing import Any, Callable, Dict, Mapping, Optional, Tuple, Union
from urllib.parse import urlsplit, urlunsplit

import requests
import requests.utils

__all__ = ["Auth", "HTTPOptions", "origin"]

#: What ``requests`` takes as credentials.
Auth = Union[None, Tuple[str, str], Callable[[Any], Any]]

# What no host has in it; not every version of requests says so. Patterns are compiled when they are needed.
_NO_HOST = frozenset("*<>\"`{|}\\^").union(map(chr, range(0x21)))
_NAME = r"[!#$%&'*+.^_`|~0-9A-Za-z-]+"
_VALUE = r"(?:[\x21-\x7e](?:[\x20-\x7e\t]*[\x21-\x7e])?)?"
# Said anew with every request, by this package.
_RESERVED = frozenset(["mcp-protocol-version", "mcp-method", "mcp-name", "content-length", "transfer-encoding"])


class HTTPOptions:
    """How to reach a server over HTTP. Not changed after construction; any thread.

    :param url: the MCP endpoint. A user and password in it are used as ``auth`` if nothing else is, and never shown.
    :param auth: what ``requests`` takes: ``(user, password)`` or a callable that is asked again for every request.
    :param headers: headers sent with every request.
    :param verify: True, False, or the path of a bundle of certificates.
    :param cert: a client certificate: a path, or ``(certificate, key)``.
    :param proxies: as in ``requests``; None to take them from the environment, once.
    :param connect_timeout: seconds for one attempt to connect.
    :param max_message_bytes: the longest message that is held in memory.
    :param connections: how many idle connections are kept.
    :raises ValueError: for a URL or a header that cannot be sent.
    :raises TypeError: for credentials of another form.
    """

    def __init__(
        self,
        url: str,
        *,
        auth: Auth = None,
        headers: Optional[Mapping[str, str]] = None,
        verify: Union[bool, str] = True,
        cert: Any = None,
        proxies: Optional[Mapping[str, str]] = None,
        connect_timeout: float = 10.0,
        max_message_bytes: int = 64 * 1024 * 1024,
        connections: int = 32
    ) -> None:
        self.headers = _checked_headers(headers or {})
        self.url, from_url = _checked_url(url)
        if auth is None and not any(name.lower() == "authorization" for name in self.headers):
            auth = from_url
        self.auth = _checked_auth(auth)
        # The environment is looked at once, here: requests does so for each request, which is half of what one costs.
        if verify is True:
            verify = os.environ.get("REQUESTS_CA_BUNDLE") or os.environ.get("CURL_CA_BUNDLE") or True
        self.verify = verify
        self.cert = cert
        self.proxies: Dict[str, str] = dict(
            requests.utils.get_environ_proxies(self.url, no_proxy=None) if proxies is None else proxies
        )
        self.connect_timeout = connect_timeout
        self.max_message_bytes = max_message_bytes
        self.connections = connections

    def for_principal(self, auth: Auth, headers: Optional[Mapping[str, str]]) -> "HTTPOptions":
        """Return options for the same server with other credentials, and with headers beside and above these."""
        more = _checked_headers(headers or {})
        names = {name.lower() for name in more}
        merged = {name: value for name, value in self.headers.items() if name.lower() not in names}
        merged.update(more)
        return HTTPOptions(
            self.url,
            auth=auth,
            headers=merged,
            verify=self.verify,
            cert=self.cert,
            proxies=self.proxies,
            connect_timeout=self.connect_timeout,
            max_message_bytes=self.max_message_bytes,
            connections=self.connections,
        )


def origin(url: str) -> Tuple[str, str, Optional[int]]:
    """Return scheme, host and port of a URL.

    :raises ValueError: if it is none.
    """
    parts = urlsplit(url)
    return parts.scheme, parts.hostname or "", parts.port or {"http": 80, "https": 443}.get(parts.scheme)


def _checked_url(url: str) -> Tuple[str, Auth]:
    """Return the URL without user and password, and these."""
    try:
        parts = urlsplit(url)
        origin(url)
        possible = parts.scheme in ("http", "https") and bool(parts.hostname)
        if possible:
            host = parts.hostname or ""
            if host.startswith(".") or not _NO_HOST.isdisjoint(host):
                raise ValueError("there is no host %r" % host)
            requests.Request("POST", url).prepare()
    except ValueError as error:
        raise ValueError("%r is not the URL of an MCP server: %s" % (url, error)) from error
    if not possible:
        raise ValueError("%r is not the URL of an MCP server: it has to begin with http:// or https://" % url)
    if "@" not in parts.netloc:
        return url, None
    user, password = requests.utils.get_auth_from_url(url)
    bare = urlunsplit(parts._replace(netloc=parts.netloc.rpartition("@")[2]))
    return bare, (user, password) if user or password else None


def _checked_headers(headers: Mapping[str, str]) -> Dict[str, str]:
    for name, value in headers.items():
        if not isinstance(name, str) or not re.fullmatch(_NAME, name):
            raise ValueError("the header %r cannot be sent: that is no name for a header" % (name,))
        if not isinstance(value, str) or not re.fullmatch(_VALUE, value):
            raise ValueError(
                "the header %r cannot be sent: values are printable ASCII, without spaces at their ends" % name
            )
        if name.lower() in _RESERVED:
            raise ValueError("the header %r cannot be given: it follows from each request" % name)
    return dict(headers)


def _checked_auth(auth: Auth) -> Auth:
    if auth is None or callable(auth):
        return auth
    if isinstance(auth, tuple) and len(auth) == 2 and all(isinstance(part, str) for part in auth):
        return auth
    # Not shown: it may be a secret.
    raise TypeError(
        "auth= takes (user, password) or a callable, not %s; for a token give "
        'headers={"Authorization": "Bearer ..."}' % type(auth).__name__
    )
