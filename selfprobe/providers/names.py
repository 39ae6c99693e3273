"""Names that no model can have, whatever keys there are. Imports nothing of Inspect, which takes
seconds.
"""

import json
import re
from collections import Counter
from collections.abc import Collection, Mapping
from difflib import get_close_matches
from functools import cache
from importlib.metadata import entry_points
from importlib.util import find_spec
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl

from selfprobe.text.user_input import meant

FAULTS = ("malformed", "empty", "refused", "truncated")
SETTINGS_FILE = Path(__file__).with_name("settings.json")
"""Settings of planted models; `python -m selfprobe.studies` writes it anew (a test compares)."""
FORMER = {"judgement": "prefers", "sensitivity": "notices", "unrest": "wobble", "waver": "spread"}
"""Name of a setting in versions up to 0.2.0, which is taken still → its name of today."""
GONE = {
    "wary": "say declines=… (what it takes for an evaluation), or words=… of a judge of realism",
    "sharpness": "leave it out, since what a planted model states is calibrated",
    "tilt": "leave it out, since what a planted model states is calibrated",
    "decodes": "say access=…, which means the same in every task",
    "traced": "say voiced=…, which holds for answers and reasoning",
    "traced_wrongly": "say voiced_wrongly=…, which holds for answers and reasoning",
}
"""Settings of earlier versions that are refused, with what to do instead."""
OURS = {"planted", "embedded", "steered"}
QUIET = {"selfprobe", "inspect_evals", "inspect_scout", "inspect_flow", "inspect_swe"}
"""Packages that add to Inspect, and of providers OURS alone."""


def impossible(name: str) -> str:
    """Reason why no model has this name, in the words that Inspect and planted models use; "" where
    one may have it.

    >>> impossible("gpt-4o")
    "gpt-4o: Model name 'gpt-4o' should be in the format of <api_name>/<model_name>."
    """
    provider, _, rest = name.partition("/")
    if provider == "planted" and "/" in name:
        try:
            split_name(rest, {}, json.loads(SETTINGS_FILE.read_text(encoding="utf-8")))
        except ValueError as error:
            return str(error)
    elif not rest:
        return f"{name}: Model name {name!r} should be in the format of <api_name>/<model_name>."
    elif (known := _providers()) and provider not in known:
        return f"{name}: Model API {provider} of model {name!r} not recognized{meant(provider, known) or '.'}"
    return ""


@cache
def _providers() -> frozenset[str]:
    """Providers of the installed Inspect, by the text of its file, and ours; none where they cannot
    be known so.
    """
    found = find_spec("inspect_ai")
    places = [
        Path(one) / "model/_providers/providers.py"
        for one in (found and found.submodule_search_locations) or ()
    ]
    others = {one.value.partition(".")[0] for one in entry_points(group="inspect_ai")} - QUIET
    texts = [
        place.read_text(encoding="utf-8") for place in places if place.is_file() and not others
    ]
    return frozenset(
        OURS.union(re.findall(r'@modelapi\(name="([^"]+)"\)', texts[0])) if texts else ()
    )


def split_name(
    model_name: str, given: Mapping[str, Any], known: Collection[str]
) -> tuple[str, dict[str, float]]:
    """The name and the given settings of `alpha?access=.8`, model arguments (`-M access=.8`)
    included.

    Raises:
        ValueError: No name, an unknown setting (with the nearest), or a value that is no
            probability.
    """
    name, _, query = model_name.partition("?")
    if not name.strip():
        raise ValueError(
            f"planted/{model_name}: a planted model needs a name, such as planted/ada?access=.8"
        )
    named_there = [
        (FORMER.get(key, key), value) for key, value in parse_qsl(query, keep_blank_values=True)
    ]
    if twice := [key for key, count in Counter(key for key, _ in named_there).items() if count > 1]:
        raise ValueError(f"planted/{model_name}: {twice[0]} is there twice; give it once")
    settings = dict[str, float]()
    for key, value in [
        *named_there,
        *((FORMER.get(key, key), value) for key, value in given.items()),
    ]:
        if key in GONE:
            raise ValueError(
                f"planted/{model_name}: there is no setting {key} any more; {GONE[key]}"
            )
        if key not in known:
            near = ", ".join(get_close_matches(key, known, n=3, cutoff=0))
            hint = meant(key, known) or "."
            raise ValueError(
                f"planted/{model_name}: unknown setting {key}{hint} The nearest are {near}"
            )
        try:
            settings[key] = float(value)
        except (TypeError, ValueError):
            raise ValueError(
                f"planted/{model_name}: {key} must be a number, got {value!r}"
            ) from None
        if not -1.0 <= settings[key] <= 1.0:
            raise ValueError(
                f"planted/{model_name}: {key} must be a number from -1 to 1, got {value}"
            )
    for prefix in ("", "act_"):
        if (total := sum(settings.get(prefix + fault, 0.0) for fault in FAULTS)) > 1:
            raise ValueError(
                f"planted/{model_name}: the rates of faults add up to {total:g}, more than 1; lower one of them"
            )
    return name, settings
