"""Fail where an installed package's licence would bind users of ours, or where one names none:
`licences.py`.

Permissive ones are counted, and so are NVIDIA's, whose libraries come with torch on Linux and are
not passed on here.
"""

import re
import sys
from collections import Counter
from importlib.metadata import Distribution, distributions

BINDING = re.compile(r"\b(?<!L)A?GPL|SSPL|BUSL|non-?commercial", re.IGNORECASE)
NAMED_ELSEWHERE = {"agent-client-protocol": "Apache-2.0", "mistralai": "Apache-2.0"}
"""Packages whose metadata name no licence, and what their repository says."""


def licence_of(package: Distribution) -> str:
    about = package.metadata
    kinds = [
        kind.rpartition(" :: ")[2]
        for kind in about.get_all("Classifier", [])
        if kind.startswith("License ::")
    ]
    said = (
        about.get("License-Expression")
        or "; ".join(kinds)
        or (about.get("License") or "").partition("\n")[0]
    )
    return said or NAMED_ELSEWHERE.get(about["Name"].lower().replace("_", "-"), "")


licences = {package.metadata["Name"]: licence_of(package) for package in distributions()}
for licence, count in Counter(licences.values()).most_common():
    print(f"{count:4}  {licence or 'none named'}")
bad = {
    name: licence for name, licence in licences.items() if not licence or BINDING.search(licence)
}
sys.exit(
    "\n".join(f"{name}: {licence or 'names no licence'}" for name, licence in bad.items()) or 0
)
