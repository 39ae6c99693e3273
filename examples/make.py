"""Makes examples/logs, examples/report and docs/report.png anew: `python examples/make.py`, minutes
on two cores.

Five simulated models predict their own and each other's words (`ada` and `cy` know themselves, the
others do not), and SmolLM2-135M, a real model, says which of two responses is better.
tests/test_examples.py holds the committed files to what this script makes.
"""

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).parent
MODELS = (
    "planted/ada?access=.85&general=.3",
    "planted/bo?access=0&general=.5",
    "planted/cy?access=.8&general=.3",
    "planted/di?access=0&general=.5",
    "planted/ed?access=0&general=.4",
)
ITEMS = 48
PAIRS = 40


def commands(logs: Path) -> list[list[str]]:
    """What is run, as a user would type it."""
    selfprobe, inspect = (
        [str(Path(sys.executable).with_name(name))] for name in ("selfprobe", "inspect")
    )
    matrix = ["--models", ",".join(MODELS), "--tasks", "kth_word", "--limit", str(ITEMS), "--yes"]
    preference = ["--model", "embedded/smollm2", "-T", f"pairs={PAIRS}", "--display", "plain"]
    return [
        [*selfprobe, "matrix", *matrix, "--log-dir", str(logs / "matrix")],
        [*inspect, "eval", "selfprobe/pairwise_preference", *preference, "--log-dir", str(logs)],
    ]


def main() -> None:
    """Replace both; the runs happen outside of any checkout, so that logs name no commit and no
    path.
    """
    with tempfile.TemporaryDirectory() as folder:
        logs = Path(folder) / "logs"
        for command in commands(logs):
            subprocess.run(
                command, cwd=folder, env=os.environ | {"INSPECT_LOG_FORMAT": "eval"}, check=True
            )
        shutil.rmtree(HERE / "logs", ignore_errors=True)
        (HERE / "logs").mkdir()
        for log in sorted(logs.rglob("*.eval")):
            keep(log)
        report = ["report", "logs", "--out", "report"]
        subprocess.run(
            [str(Path(sys.executable).with_name("selfprobe")), *report], cwd=HERE, check=True
        )
        shutil.rmtree(HERE / "report" / "tables")  # the page does not lead there
    photographed(HERE / "report" / "index.html", HERE.parent / "docs" / "report.png")


def photographed(page: Path, picture: Path) -> None:
    """The page's first screen, as Chromium shows it; without Chromium the picture stays, as a line
    says.
    """
    browser = shutil.which("chromium") or shutil.which("google-chrome")
    if browser is None:
        print(f"{picture.name} stays as it is: it is taken with chromium, and there is none")
        return
    look = [
        "--headless",
        "--no-sandbox",
        "--disable-gpu",
        "--hide-scrollbars",
        "--window-size=1280,660",
    ]
    subprocess.run(
        [browser, *look, f"--screenshot={picture}", page.as_uri()], check=True, capture_output=True
    )


def keep(log: Path) -> None:
    """Write the log under a name without its date, kth_word-ada.eval, and without this machine's
    path of the model.
    """
    from inspect_ai.log import EvalLog, read_eval_log, write_eval_log

    from selfprobe.embed.weights import fetch

    said = (
        read_eval_log(str(log)).model_dump_json().replace(f"{fetch().parent.resolve()}{os.sep}", "")
    )
    whole = EvalLog.model_validate_json(said)
    model = whole.eval.model.split("/")[-1].split("?")[0]
    write_eval_log(whole, str(HERE / "logs" / f"{whole.eval.task.split('/')[-1]}-{model}.eval"))


if __name__ == "__main__":
    main()
