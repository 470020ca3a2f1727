"""MCP_SERVERS: what may stand there, and how mistakes in it are told."""

import sys
from typing import Any, List

import pytest

from mcp_sync import Command
from mcp_sync.contrib.reading import read_settings
from mcp_sync.contrib.settings import Mistake, SettingsError

URL = "https://docs.example.com/mcp"

#: What dotted paths in these tests lead to.
PAIR = ("user", "secret")
NUMBER = 5


class Credentials:
    """As ``requests`` has them."""

    def __call__(self, request: Any) -> Any:
        return request


class Demanding(Credentials):
    def __init__(self, token: str) -> None:
        self.token = token


def mistakes_in(value: Any) -> "List[Mistake]":
    servers, mistakes = read_settings(value)
    return mistakes + [mistake for server in servers.values() for mistake in server.mistakes()]


def only_mistake_in(entry: Any) -> Mistake:
    [mistake] = mistakes_in({"docs": entry})
    assert mistake.alias == "docs" and "MCP_SERVERS['docs']" in mistake.text and mistake.hint
    return mistake


def test_a_server_is_a_url_a_command_or_a_dictionary() -> None:
    servers, mistakes = read_settings(
        {
            "default": URL,
            "files": [sys.executable, "server.py"],
            "pair": ("python", "server.py"),
            "ready": Command(["python", "server.py"], cwd="/"),
            "docs": {
                "target": URL,
                "headers": {"X-Tenant": "docs"},
                "watch": ["docs://a", "docs://b"],
                "catalog": True,
                "prompts": True,
                "tools": False,
                "poll_interval": 10,
                "timeout": None,
                "throttle": 0,
            },
            "child": {"target": ["python", "server.py"], "env": {"LEVEL": "1"}, "cwd": "/tmp"},
        }
    )
    assert mistakes == []
    assert servers["default"].target == URL and servers["default"].watch == ()
    files, child, docs = servers["files"].target, servers["child"].target, servers["docs"]
    assert isinstance(files, Command) and files.argv == (sys.executable, "server.py")
    assert isinstance(child, Command) and (child.env, child.cwd) == ({"LEVEL": "1"}, "/tmp")
    assert docs.watch == ("docs://a", "docs://b") and docs.lists == ("catalog", "prompts")
    assert docs.options == {"headers": {"X-Tenant": "docs"}, "poll_interval": 10, "timeout": None, "throttle": 0}
    with docs.make_client() as client:
        assert client.where == URL
    assert [mistake for server in servers.values() for mistake in server.mistakes()] == []


@pytest.mark.parametrize("value", [None, {}])
def test_no_servers_are_no_mistake(value: Any) -> None:
    assert read_settings(value) == ({}, [])


@pytest.mark.parametrize(
    "entry, code, text, hint",
    [
        ("docs.example.com/mcp", "E003", "'docs.example.com/mcp' is no URL", "begins with https://"),
        ("python server.py", "E003", "is no URL", "['python', 'server.py']"),
        ("https://", "E003", "is no URL", "https://"),
        (7, "E003", "the target is a int", "its command as a list"),
        (None, "E003", "the target is a None", "Give its URL"),
        ([], "E003", "a list with nothing in it", "['python', 'server.py']"),
        (["python", 7], "E003", "the target is a list", "list of texts"),
        ({}, "E003", "has no 'target'", "is its URL"),
        ({"target": URL, "env": {}}, "E003", "['env'] is for a command", "Leave it out"),
        ({"target": ["python"], "env": {"A": 1}}, "E003", "is no command", "dictionary of texts"),
        ({"target": Command(["python"]), "cwd": "/"}, "E003", "cwd beside a Command", "Give them to Command"),
        ({"target": URL, "poll_intervall": 1}, "E004", "unknown key 'poll_intervall'", "Did you mean 'poll_interval'"),
        ({"target": URL, "TIMEOUT": 1}, "E004", "unknown key 'TIMEOUT'", "Did you mean 'timeout'"),
        ({"target": URL, "resources": []}, "E004", "unknown key 'resources'", "Did you mean 'watch'"),
        ({"target": URL, "xyzzy": 1}, "E004", "unknown key 'xyzzy'", "There are: target, watch, catalog"),
        ({"target": URL, 3: 1}, "E004", "unknown key 3", "There are"),
        ({"target": URL, "watch": "docs://a"}, "E005", "['watch'] is a text", "Write a list of URIs: ['docs://a']"),
        ({"target": URL, "watch": ["docs://a", 5]}, "E005", "['watch'] is a list with 5 in it", "Write a list"),
        ({"target": URL, "watch": [""]}, "E005", "['watch'] is a list with '' in it", "Write a list"),
        ({"target": URL, "catalog": "yes"}, "E005", "['catalog'] is a text", "True or False"),
        ({"target": URL, "poll_interval": "10"}, "E005", "['poll_interval'] is '10'", "seconds, more than zero"),
        ({"target": URL, "poll_interval": 0}, "E005", "['poll_interval'] is 0", "more than zero"),
        ({"target": URL, "poll_interval": None}, "E005", "['poll_interval'] is None", "more than zero"),
        ({"target": URL, "timeout": True}, "E005", "['timeout'] is True", "seconds"),
        ({"target": URL, "timeout": float("nan")}, "E005", "['timeout'] is nan", "seconds"),
        ({"target": URL, "throttle": -1}, "E005", "['throttle'] is -1", "zero or more"),
        ({"target": URL, "max_entries": 1.5}, "E005", "['max_entries'] is 1.5", "whole number"),
        ({"target": URL, "listen": 1}, "E005", "['listen'] is 1", "True or False"),
        ({"target": URL, "principal": 1}, "E005", "['principal'] is a int", "a text"),
        ({"target": URL, "headers": ["Authorization"]}, "E005", "['headers'] is a list", "dictionary of texts"),
        ({"target": URL, "era": "old"}, "E007", "era is", "options of mcp_sync.Client"),
        ({"target": URL, "headers": {"A\n": "b"}}, "E007", "is refused", "options of mcp_sync.Client"),
        ({"target": URL, "auth": "secret"}, "E006", "['auth'] is a text: it is no dotted path", "package.module"),
        ({"target": URL, "auth": "no.such.thing"}, "E006", "no.such cannot be imported (ModuleNotFoundError", "dotted path"),
        ({"target": URL, "auth": __name__ + ".Credentiols"}, "E006", "there is no 'Credentiols' in", "dotted path"),
        ({"target": URL, "auth": __name__ + ".Demanding"}, "E006", "cannot be called without arguments", "an instance"),
        ({"target": URL, "auth": __name__ + ".NUMBER"}, "E007", "is refused", "options"),
        ({"target": ["python"], "auth": ("a", "b")}, "E007", "takes its credentials from its environment", "options"),
        ({"target": "http://docs.example.com/mcp", "auth": ("a", "b")}, "W001", "without encryption", "https://"),
        ({"target": "http://a:b@docs.example.com/mcp"}, "W001", "to docs.example.com without encryption", "https://"),
    ],
)
def test_a_mistake_is_named_with_what_to_do(entry: Any, code: str, text: str, hint: str) -> None:
    mistake = only_mistake_in(entry)
    assert mistake.code == code
    assert text in mistake.text
    assert hint in mistake.hint
    assert str(mistake).endswith(".") and ".." not in str(mistake)[-3:]


def test_a_command_that_is_called_otherwise_is_recognised() -> None:
    mistakes = mistakes_in({"docs": {"url": URL}})
    assert [mistake.code for mistake in mistakes] == ["E003", "E004"]
    assert "(you call it 'url')" in mistakes[0].hint and mistakes[1].hint == "Did you mean 'target'"


@pytest.mark.parametrize("value", [[URL], URL, 7])
def test_what_is_no_dictionary_is_one_mistake(value: Any) -> None:
    [mistake] = mistakes_in(value)
    assert mistake.code == "E001" and mistake.alias is None and "MCP_SERVERS is a " in mistake.text


@pytest.mark.parametrize("alias", ["", 5, None])
def test_an_alias_is_a_text(alias: Any) -> None:
    servers, [mistake] = read_settings({alias: URL, "default": URL})
    assert list(servers) == ["default"] and mistake.code == "E002" and repr(alias) in mistake.text


def test_all_mistakes_are_told_at_once_and_servers_without_one_are_read() -> None:
    servers, mistakes = read_settings({"a": {"target": 1, "watch": 2, "catalog": 3, "tymeout": 4}, "b": URL})
    assert list(servers) == ["b"]
    assert sorted(mistake.code for mistake in mistakes) == ["E003", "E004", "E005", "E005"]


def test_no_message_shows_a_secret() -> None:
    told = "".join(
        str(mistake)
        for entry in (
            {"target": "htps://user:hunter2@docs.example.com"},
            {"target": URL, "headers": {"Authorization": b"hunter2"}},
            {"target": URL, "headers": {"Authorization": "hunter2\n"}},
            {"target": URL, "headers": "hunter2"},
            {"target": "http://user:hunter2@docs.example.com/mcp"},
            {"target": URL, "auth": "hunter2"},
            {"target": URL, "auth": "Bearer hunter2.ey-7"},
            {"target": ["python"], "headers": {"Authorization": "hunter2"}},
        )
        for mistake in mistakes_in({"docs": entry})
    )
    assert told and "hunter2" not in told


@pytest.mark.parametrize("auth", [__name__ + ".PAIR", __name__ + ".Credentials", PAIR, list(PAIR), Credentials()])
def test_credentials_are_given_as_they_are_or_by_the_path_to_them(auth: Any) -> None:
    servers, mistakes = read_settings({"docs": {"target": URL, "auth": auth}})
    assert mistakes == []
    servers["docs"].make_client().close()


def test_a_client_that_cannot_be_made_is_an_error_that_says_why() -> None:
    servers, _ = read_settings({"docs": {"target": URL, "auth": "no.such.thing"}})
    with pytest.raises(SettingsError, match=r"MCP_SERVERS\['docs'\]\['auth'\] is a text: no.such cannot be imp"):
        servers["docs"].make_client()


def test_the_settings_of_another_program_may_have_another_name() -> None:
    _, [mistake] = read_settings({"docs": 7}, "SERVERS")
    assert mistake.text.startswith("SERVERS['docs']")
