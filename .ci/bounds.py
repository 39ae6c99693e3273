"""Is each lower bound of pyproject.toml the version that was installed? `python .ci/bounds.py
build/lowest.txt`.

A bound that another dependency's forbids is never tested, and says what nobody knows.
"""

import re
import sys
import tomllib
from pathlib import Path

BOUND = re.compile(r"^([\w.-]+)(?:\[[\w,-]+\])?(?:>=([\w.]+))?$")


def untrue(dependencies: list[str], resolved: str) -> list[str]:
    """A line a dependency that has no lower bound, or whose bound is not what `resolved`
    (`name==version`) holds.

    >>> untrue(["a>=1.2", "b>=3", "c"], "a==1.2.7\\nb==4.0\\nc==5\\n")
    ['b>=3: 4.0 was installed', 'c: no lower bound, 5 was installed']
    """
    got = {
        _name(name): version
        for name, version in re.findall(r"^([\w.-]+)(?:\[.*\])?==([\w.]+)", resolved, re.M)
    }
    found = []
    for one in dependencies:
        matched = BOUND.match(one)
        assert matched, f"expected name>=version, got {one}"
        name, low = matched.groups()
        installed = got[_name(name)]
        if low is None:
            found.append(f"{one}: no lower bound, {installed} was installed")
        elif not f"{installed}.".startswith(f"{low}."):
            found.append(f"{one}: {installed} was installed")
    return found


def _name(text: str) -> str:
    return re.sub(r"[-_.]+", "-", text).lower()


if __name__ == "__main__":
    project = tomllib.loads(Path("pyproject.toml").read_text(encoding="utf-8"))["project"]
    wrong = untrue(project["dependencies"], Path(sys.argv[1]).read_text(encoding="utf-8"))
    sys.exit("\n".join(wrong) or 0)
