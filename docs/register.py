"""Entries of this suite's tasks for Inspect's register of evaluations, one folder a task.

The register asks for an address and a commit of a public repository, so entries are made when a
release is public:

    python docs/register.py https://github.com/OWNER/selfprobe "$(git rev-parse HEAD)" --out register

Copy the folders to `register/` of inspect-evals. An entry says what the task's own file says;
nothing is written twice.
"""

from pathlib import Path
from typing import Any

import click
import yaml

from selfprobe.errors.arguments import INSPECT_NAME_BY_TASK
from selfprobe.study._registry import TASK_PACKAGES, paper_of, summary_of, tasks

COMMON_TITLE = "selfprobe"

ARXIV = {
    "evaluation-awareness methods": "2605.26438",
    "IntrospectBench": "2603.20276",
    "latent-preference probes": "2503.17755",
}
"""Paper → its id. The first has none: its entry names the companion that has its authors' later
method.
"""

COMMIT = 40


def entries(repository: str, commit: str) -> dict[str, dict[str, Any]]:
    """Task → its entry, as `eval.yaml` holds it."""
    return {
        INSPECT_NAME_BY_TASK.get(name, name): entry(name, repository, commit)
        for name in sorted(tasks())
    }


def entry(name: str, repository: str, commit: str) -> dict[str, Any]:
    """The entry of one task."""
    title, _, asks = summary_of(name).partition(": ")
    paper = paper_of(name)
    folder = next(
        Path(package.__path__[0])
        for package in TASK_PACKAGES
        if Path(package.__path__[0], f"{name}.py").is_file()
    )
    return {
        "full_title": f"{title}: {asks}" if asks else title,
        "common_title": f"{COMMON_TITLE}: {title}",
        "description": asks[:1].upper() + asks[1:] if asks else title,
        **({"arxiv": f"https://arxiv.org/abs/{ARXIV[paper]}"} if paper else {}),
        "contributors": ["The selfprobe authors"],
        "tags": [folder.name.removesuffix("_tasks")],
        "source": {"repository_url": repository, "repository_commit": commit},
        "tasks": [
            {"name": INSPECT_NAME_BY_TASK.get(name, name), "task_path": f"{folder.name}/{name}.py"}
        ],
    }


@click.command()
@click.argument("repository")
@click.argument("commit")
@click.option("--out", default="register", show_default=True, help="Folder to write.")
def main(repository: str, commit: str, out: str) -> None:
    """Write REPOSITORY's entries at COMMIT, a folder a task."""
    if len(commit) != COMMIT or set(commit) - set("0123456789abcdef"):
        raise click.UsageError(
            f"COMMIT must be {COMMIT} hexadecimal digits, as `git rev-parse HEAD` prints; got {commit}"
        )
    made = entries(repository, commit)
    for name, one in made.items():
        folder = Path(out, name)
        folder.mkdir(parents=True, exist_ok=True)
        text = yaml.safe_dump(one, sort_keys=False, allow_unicode=True, width=1000)
        (folder / "eval.yaml").write_text(text, encoding="utf-8")
    click.echo(f"{len(made)} entries in {out}")


if __name__ == "__main__":
    main()
