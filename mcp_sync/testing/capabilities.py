"""What a client has said that it can do, and what it would have to say.

Pages: basic/index, "_meta"; client/elicitation, "Capabilities"; "Capability Negotiation" of the tasks extension.
"""

from typing import Any, Mapping

from .protocol import MISSING_CAPABILITY, TASKS, Message, Refusal


def missing_capabilities(requests: Mapping[str, Message], declared: Any) -> Message:
    """What a client would have to declare to be asked these (basic/index, "_meta"; client/elicitation, "Capabilities").

    :param requests: by their keys.
    :param declared: the capabilities that it has declared.
    """
    missing: Message = {}
    has = declared if isinstance(declared, dict) else {}
    for asked in requests.values():
        name = {"roots/list": "roots", "sampling/createMessage": "sampling",
                "elicitation/create": "elicitation"}.get(asked["method"])
        if name == "elicitation":
            mode = asked.get("params", {}).get("mode", "form")
            modes = has.get(name) or {"form": {}}  # who names none takes forms
            if name not in has or mode not in modes:
                missing[name] = {mode: {}}
        elif name is not None and name not in has:
            missing[name] = {}
    return missing


def knows_tasks(declared: Any) -> bool:
    """Whether a client's capabilities hold the tasks extension ("Capability Negotiation")."""
    extensions = declared.get("extensions") if isinstance(declared, dict) else None
    return isinstance(extensions, dict) and isinstance(extensions.get(TASKS), dict)


def missing_tasks() -> Refusal:
    """What a client hears that has not declared that extension."""
    return Refusal(MISSING_CAPABILITY, "Missing required client capability",
                   {"requiredCapabilities": {"extensions": {TASKS: {}}}})
