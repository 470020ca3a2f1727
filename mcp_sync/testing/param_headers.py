"""The parameters of a tool that a client repeats in HTTP headers.

Page: basic/transports/streamable-http, "Custom Headers from Tool Parameters", "Server Validation".
"""

import re
from typing import Any, Iterator, Mapping, Tuple

from .protocol import HEADER_MISMATCH, Refusal, decode_header

_PREFIX = "Mcp-Param-"
_CLEAN = re.compile(r"[\t\x20-\x7e]*\Z")
_INTEGER = re.compile(r"-?[0-9]+(\.0*)?\Z")


def check_param_headers(input_schema: Any, arguments: Mapping[str, Any], headers: Mapping[str, str]) -> None:
    """Refuse a call whose headers and arguments differ.

    :param input_schema: the tool's; what is no schema asks for no headers.
    :param arguments: of the call.
    :param headers: of its HTTP request, looked up without regard to case.
    :raises Refusal: -32020 with HTTP status 400.
    """
    for path, name in _annotated(input_schema, ()):
        header = _PREFIX + name
        value = _at(arguments, path)
        sent = headers.get(header)
        if sent is not None and not _CLEAN.match(sent):
            raise _mismatch("{} has characters that no header may have: {!r}".format(header, sent))
        if value is None:
            if sent is not None:
                raise _mismatch("{} is {!r}, and {} has no value".format(header, sent, "/".join(path)))
        elif sent is None:
            raise _mismatch("{} is missing".format(header))
        elif not _same(decode_header(sent), value):
            raise _mismatch("{} header value {!r} does not match body value {!r}".format(header, sent, value))


def _annotated(schema: Any, path: Tuple[str, ...]) -> Iterator[Tuple[Tuple[str, ...], str]]:
    properties = schema.get("properties") if isinstance(schema, dict) else None
    for key, inner in properties.items() if isinstance(properties, dict) else ():
        if isinstance(inner, dict):
            if isinstance(inner.get("x-mcp-header"), str):
                yield path + (key,), inner["x-mcp-header"]
            yield from _annotated(inner, path + (key,))


def _at(arguments: Any, path: Tuple[str, ...]) -> Any:
    for key in path:
        arguments = arguments.get(key) if isinstance(arguments, dict) else None
    return arguments


def _same(text: str, value: Any) -> bool:
    if isinstance(value, bool):
        return text == ("true" if value else "false")
    if isinstance(value, (int, float)):
        # As numbers: 42.0 is 42. What is no decimal number, such as 4.2e1 or +42, is none that a client may write.
        return _INTEGER.match(text) is not None and int(text.partition(".")[0]) == value
    return isinstance(value, str) and text == value


def _mismatch(what: str) -> Refusal:
    return Refusal(HEADER_MISMATCH, "Header mismatch: " + what)
