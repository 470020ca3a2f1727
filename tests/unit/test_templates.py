"""URI templates are expanded as RFC 6570 says, where uritemplate is installed."""

import sys
from typing import Any

import pytest

from mcp_sync import NotSupported, ResourceTemplate
from mcp_sync.templates import expand, variables

try:
    import uritemplate  # noqa: F401
except ImportError:
    installed = False
else:
    installed = True

needs_uritemplate = pytest.mark.skipif(not installed, reason="uritemplate is not installed")

VALUES = {
    "path": "src/main file.rs",
    "name": "blå",
    "half": "50%",
    "empty": "",
    "none": None,
    "number": 42,
    "yes": True,
    "list": ["red", "green/blue"],
    "keys": {"a": "1", "b": "x y"},
    "a-b": "dash",
}


def test_without_uritemplate_it_is_said_what_to_install(monkeypatch: Any) -> None:
    monkeypatch.setitem(sys.modules, "uritemplate", None)
    for call in (lambda: ResourceTemplate("file:///{path}").expand(path="x"), lambda: variables("file:///{path}")):
        with pytest.raises(NotSupported, match=r"pip install mcp-sync-client\[templates\]"):
            call()


@needs_uritemplate
@pytest.mark.parametrize(
    "template, uri",
    [
        ("docs://fixed", "docs://fixed"),
        ("file:///{path}", "file:///src%2Fmain%20file.rs"),
        ("file:///{+path}", "file:///src/main%20file.rs"),
        ("docs://{name}/config", "docs://bl%C3%A5/config"),
        ("docs://{half}", "docs://50%25"),
        ("docs://{empty}", "docs://"),
        ("docs://x{?none,number}", "docs://x?number=42"),
        ("docs://x{?number,empty}", "docs://x?number=42&empty="),
        ("docs://x?fixed=1{&number,yes}", "docs://x?fixed=1&number=42&yes=true"),
        ("docs://x{#name}", "docs://x#bl%C3%A5"),
        ("docs://x{/name,number}", "docs://x/bl%C3%A5/42"),
        ("docs://x{/list*}", "docs://x/red/green%2Fblue"),
        ("docs://x{?list}", "docs://x?list=red,green%2Fblue"),
        ("docs://x{?list*}", "docs://x?list=red&list=green%2Fblue"),
        ("docs://x{?keys*}", "docs://x?a=1&b=x%20y"),
        ("docs://x{.name}", "docs://x.bl%C3%A5"),
        ("docs://x{;number,empty}", "docs://x;number=42;empty"),
        ("docs://{path:3}", "docs://src"),
        ("docs://{name}{none}{name}", "docs://bl%C3%A5bl%C3%A5"),
        ("users/{number}", "users/42"),
    ],
)
def test_a_template_is_expanded(template: str, uri: str) -> None:
    made = ResourceTemplate(template)
    values = {name: VALUES[name] for name in made.variables}
    assert made.expand(values) == made.expand(**values) == expand(template, values) == uri


@needs_uritemplate
def test_a_name_that_is_none_in_python_comes_in_a_mapping() -> None:
    assert ResourceTemplate("docs://{a-b}/{self}/{given}").expand({"a-b": 1, "self": 2}, given=3) == "docs://1/2/3"


@needs_uritemplate
def test_what_is_not_given_is_left_out() -> None:
    assert ResourceTemplate("docs://x{/name}{?number}").expand() == "docs://x"


@needs_uritemplate
def test_a_name_that_the_template_has_not_is_an_error_that_names_those_it_has() -> None:
    with pytest.raises(ValueError, match="^the template docs://{name}/{path} has no variable nmae; it has: name, path$"):
        ResourceTemplate("docs://{name}/{path}").expand(nmae="x")
    with pytest.raises(ValueError, match="it has: none$"):
        ResourceTemplate("docs://x").expand(name="x")


@needs_uritemplate
@pytest.mark.parametrize("template", ["docs://{x:y}", "docs://{x:}"])
def test_a_template_that_makes_no_sense_is_a_plain_error(template: str) -> None:
    with pytest.raises(ValueError, match="the template docs://"):
        ResourceTemplate(template).expand(x="1")


@needs_uritemplate
@pytest.mark.parametrize(
    "template", ["", "{", "}", "{}", "a{", "{{x}}", "{x", "x}", "{ }", "{?}", "{*}", "{x" * 1000, "\x00{x}", "世界{x}"]
)
def test_whatever_a_server_calls_a_template_nothing_else_is_raised(template: str) -> None:
    for call in (lambda: expand(template, {}), lambda: expand(template, {"x": "1"}), lambda: variables(template)):
        try:
            call()
        except ValueError:
            pass
