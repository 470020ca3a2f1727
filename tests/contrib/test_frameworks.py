"""What the frameworks' integrations do, under each framework, with a Python of its time."""

from typing import Any

import pytest

from .frameworks import DJANGO, FLASK, Framework


@pytest.mark.parametrize("framework", DJANGO, ids=lambda framework: framework.name)
def test_django(framework: Framework, ready: Any) -> None:
    ready(framework).run_suite("suite_django.py")


@pytest.mark.parametrize("framework", FLASK, ids=lambda framework: framework.name)
def test_flask(framework: Framework, ready: Any) -> None:
    ready(framework).run_suite("suite_flask.py")
