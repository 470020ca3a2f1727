"""The README's programs run, and its claims about numbers are the code's."""

import configparser
import inspect
import re
import textwrap
from pathlib import Path
from typing import Any, Dict, List, Tuple

import pytest

from mcp_sync import Client
from mcp_sync.testing import Server

ROOT = Path(__file__).resolve().parents[2]
README = (ROOT / "README.rst").read_text("utf-8")


def programs() -> List[str]:
    """Every Python block, without its indentation."""
    blocks = re.findall(r"^\.\. code-block:: python\n\n((?:    .*\n|\n)+)", README, re.M)
    return ["".join(line[4:] if line.strip() else "\n" for line in block.splitlines(True)) for block in blocks]


def search(arguments: Dict[str, Any]) -> str:
    assert set(arguments) == {"query"}
    return "colour = blue"


def book(arguments: Dict[str, Any], call: Any) -> str:
    fields = {"name": {"type": "string"}, "seats": {"type": "integer", "default": 1}}
    form = {"message": "Who?", "requestedSchema": {"type": "object", "properties": fields, "required": ["name"]}}
    answer = call.ask({"who": {"method": "elicitation/create", "params": form}}, state="signed")["who"]
    assert answer["content"]["name"] == "Ada"
    return "%(to)s: colour = blue" % arguments


def train(arguments: Dict[str, Any], call: Any) -> str:
    for epoch in range(arguments["epochs"]):
        call.progress(epoch, arguments["epochs"], "epoch")
    return "colour = blue"


@pytest.mark.parametrize("program", programs(), ids=lambda program: program.strip().splitlines()[-1].strip()[:40])
def test_a_program_of_the_readme_runs_as_it_stands(program: str, capsys: Any) -> None:
    with Server(ttl_ms=0) as server:
        server.add("docs://service/config", "colour = blue")
        about = {"name": "refunds", "description": "How to give money back"}
        server.add_skill("skill://refunds", about, "colour = blue", {"examples/email.md": "Dear customer"})
        server.add_tool("search", search)
        server.add_tool("book", book)
        server.add_tool("train", train)
        server.add_tool("train_for_days", train, task=True)
        program = program.replace("https://docs.example.com/mcp", server.url)
        program = program.replace("timeout=60", "timeout=0.1")  # nothing changes here; it need not be waited for
        exec(compile(program, "README.rst", "exec"), {})
        if "print(" in program:
            assert "colour = blue" in capsys.readouterr().out


def excerpts() -> "List[Tuple[str, str]]":
    """Every block that is part of an example: the name of the file, and its text."""
    blocks = re.findall(r"^\.\. code-block:: python\n   :name: (\S+)\n\n((?:    .*\n|\n)+)", README, re.M)
    return [(name, textwrap.dedent(block).strip("\n") + "\n") for name, block in blocks]


@pytest.mark.parametrize("name, text", excerpts(), ids=lambda value: value if value.startswith("examples/") else "")
def test_what_the_readme_shows_of_an_example_stands_in_it(name: str, text: str) -> None:
    assert text in (ROOT / name).read_text("utf-8")


def test_all_code_of_the_readme_is_run_or_part_of_an_example() -> None:
    assert README.count(".. code-block::") == len(programs()) + len(excerpts())
    assert len(excerpts()) >= 5


def test_there_are_programs_in_the_readme() -> None:
    assert len(programs()) >= 5


def test_the_defaults_in_the_table_of_options_are_those_of_the_client() -> None:
    parameters = inspect.signature(Client).parameters
    rows = re.findall(r"^``(\w+)`` +(\S+(?: MiB)?)  ", README, re.M)
    assert len(rows) >= 21
    for name, told in rows:
        default = parameters[name].default
        if isinstance(default, tuple):
            assert told == ", ".join(default) or (told, default) == ("empty", ()), name
        elif told == "none":
            assert default is None, name
        elif told.endswith("MiB"):
            assert default == int(told.split()[0]) * 1024 * 1024, name
        elif isinstance(default, str):
            assert default == told, name
        elif told in ("True", "False"):
            assert default is (told == "True"), name
        else:
            assert default == float(told), name


def test_every_option_of_the_client_is_explained() -> None:
    doc = inspect.getdoc(Client) or ""
    for name in inspect.signature(Client).parameters:
        assert ":param %s:" % name in doc, name


def test_the_extras_in_the_table_are_those_of_the_distribution() -> None:
    config = configparser.ConfigParser()
    config.read(str(Path(__file__).resolve().parents[2] / "setup.cfg"))
    rows = re.findall(r"^``\[(\w+)\]`` +(\S+)  ", README, re.M)
    extras = {name: needs.split()[0] for name, needs in config["options.extras_require"].items()}
    assert dict(rows) == {name: needs for name, needs in extras.items() if name not in ("test", "lint")}
