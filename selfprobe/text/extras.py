"""How an extra is installed here: selfprobe is on no package index, so a checkout names itself, and
a wheel the packages of the extra.
"""

import re
import shlex
from importlib.metadata import PackageNotFoundError, requires
from pathlib import Path

CHECKOUT = Path(__file__).parents[2]
EXTRA_MARKER = re.compile(r"""^(?P<package>[^;]+);.*extra\s*==\s*["'](?P<extra>[\w-]+)["']""")


def install_command(extra: str) -> str:
    """The command that installs an extra into the environment of this program.

    Args:
        extra: Name of the extra in `pyproject.toml`.
    """
    if (CHECKOUT / "pyproject.toml").is_file() and (CHECKOUT / "constraints.txt").is_file():
        folder = "." if Path.cwd() == CHECKOUT else str(CHECKOUT)
        constraints = shlex.quote(str(Path(folder) / "constraints.txt"))
        return f"pip install -c {constraints} -e '{folder}[{extra}]'"
    packages = [shlex.quote(package) for package in extra_packages(extra)]
    return f"pip install {' '.join(packages)}"


def extra_packages(extra: str) -> list[str]:
    """The packages of an extra with those of the extras that it names, as the installed selfprobe
    lists them.
    """
    try:
        requirements = requires("selfprobe") or []
    except PackageNotFoundError:  # run from a folder that nobody installed
        requirements = []
    packages: list[str] = []
    for requirement in requirements:
        marked = EXTRA_MARKER.match(requirement)
        if marked is None or marked["extra"] != extra.replace("_", "-"):
            continue
        package = marked["package"].strip()
        inner_extra = re.fullmatch(r"selfprobe\[([\w-]+)\]", package)
        packages += extra_packages(inner_extra[1]) if inner_extra else [package]
    return packages
