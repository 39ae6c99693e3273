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

from selfprobe.text.user_input import nearest_name_hint

FAULTS = ("malformed", "empty", "refused", "truncated")
SETTINGS_FILE = Path(__file__).with_name("settings.json")
"""Settings of planted models; `python -m selfprobe.studies` writes it anew (a test compares)."""

OUR_PROVIDERS = {"planted", "embedded", "steered"}
PACKAGES_WITHOUT_PROVIDERS = {
    "selfprobe",
    "inspect_evals",
    "inspect_scout",
    "inspect_flow",
    "inspect_swe",
}
"""Packages that add to Inspect, and of providers OUR_PROVIDERS alone."""


def impossible(name: str) -> str:
    """Reason why no model has this name, in the words that Inspect and planted models use; "" where
    one may have it.

    >>> impossible("gpt-4o")
    "gpt-4o: Model name 'gpt-4o' should be in the format of <api_name>/<model_name>."
    """
    provider, _, model = name.partition("/")
    if provider == "planted" and "/" in name:
        settings_text = SETTINGS_FILE.read_text(encoding="utf-8")
        try:
            split_name(model, {}, json.loads(settings_text))
        except ValueError as error:
            return str(error)
        return ""
    if not model:
        return f"{name}: Model name {name!r} should be in the format of <api_name>/<model_name>."
    known_providers = _providers()
    if known_providers and provider not in known_providers:
        remedy = nearest_name_hint(provider, known_providers) or "."
        return f"{name}: Model API {provider} of model {name!r} not recognized{remedy}"
    return ""


@cache
def _providers() -> frozenset[str]:
    """Providers of the installed Inspect, by the text of its file, and ours; none where they cannot
    be known so.
    """
    inspect_package = find_spec("inspect_ai")
    extending_packages = {
        entry_point.value.partition(".")[0] for entry_point in entry_points(group="inspect_ai")
    }
    if inspect_package is None or extending_packages - PACKAGES_WITHOUT_PROVIDERS:
        return frozenset()
    for folder in inspect_package.submodule_search_locations or ():
        providers_file = Path(folder) / "model/_providers/providers.py"
        if providers_file.is_file():
            providers_text = providers_file.read_text(encoding="utf-8")
            inspect_providers = re.findall(r'@modelapi\(name="([^"]+)"\)', providers_text)
            return frozenset(OUR_PROVIDERS.union(inspect_providers))
    return frozenset()


def split_name(
    model_name: str, model_args: Mapping[str, Any], known_settings: Collection[str]
) -> tuple[str, dict[str, float]]:
    """The name and the given settings of `alpha?access=.8`, model arguments (`-M access=.8`)
    included.

    Raises:
        ValueError: No name, an unknown setting (with the nearest), or a value that is no
            probability.
    """
    name, _, query = model_name.partition("?")
    full_name = f"planted/{model_name}"
    if not name.strip():
        raise ValueError(
            f"{full_name}: a planted model needs a name, such as planted/ada?access=.8"
        )

    query_settings = parse_qsl(query, keep_blank_values=True)
    for setting, count in Counter(setting for setting, _ in query_settings).items():
        if count > 1:
            raise ValueError(f"{full_name}: {setting} is there twice; give it once")

    settings = dict[str, float]()
    for setting, value in [*query_settings, *model_args.items()]:
        if setting not in known_settings:
            nearest = ", ".join(get_close_matches(setting, known_settings, n=3, cutoff=0))
            hint = nearest_name_hint(setting, known_settings) or "."
            raise ValueError(
                f"{full_name}: unknown setting {setting}{hint} The nearest are {nearest}"
            )
        try:
            settings[setting] = float(value)
        except (TypeError, ValueError):
            raise ValueError(f"{full_name}: {setting} must be a number, got {value!r}") from None
        if not -1.0 <= settings[setting] <= 1.0:
            raise ValueError(f"{full_name}: {setting} must be a number from -1 to 1, got {value}")

    for prefix in ("", "act_"):
        fault_rate = sum(settings.get(prefix + fault, 0.0) for fault in FAULTS)
        if fault_rate > 1:
            raise ValueError(
                f"{full_name}: the rates of faults add up to {fault_rate:g}, more than 1; "
                "lower one of them"
            )
    return name, settings
