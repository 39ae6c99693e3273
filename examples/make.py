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


def program(name: str) -> str:
    """Path of a program of this environment."""
    return str(Path(sys.executable).with_name(name))


HERE = Path(__file__).parent
MODELS = (
    "planted/ada?access=.85",
    "planted/bo?access=0&general=.5",
    "planted/cy?access=.8",
    "planted/di?access=0&general=.5",
    "planted/ed?access=0&general=.4",
)
ITEMS = 80
PAIRS = 40


def commands(logs: Path) -> list[list[str]]:
    """What is run, as a user would type it."""
    matrix_options = ["--models", ",".join(MODELS), "--tasks", "kth_word"]
    matrix_options += ["--limit", str(ITEMS), "--yes", "--log-dir", str(logs / "matrix")]
    preference_options = ["--model", "embedded/smollm2", "-T", f"pairs={PAIRS}"]
    preference_options += ["--display", "plain", "--log-dir", str(logs)]
    return [
        [program("selfprobe"), "matrix", *matrix_options],
        [program("inspect"), "eval", "selfprobe/pairwise_preference", *preference_options],
    ]


def main() -> None:
    """Replace both; the runs happen outside of any checkout, so that logs name no commit and no
    path.
    """
    environment = os.environ | {"INSPECT_LOG_FORMAT": "eval"}
    with tempfile.TemporaryDirectory() as folder:
        logs = Path(folder) / "logs"
        for command in commands(logs):
            subprocess.run(command, cwd=folder, env=environment, check=True)

        shutil.rmtree(HERE / "logs", ignore_errors=True)
        (HERE / "logs").mkdir()
        for log in sorted(logs.rglob("*.eval")):
            keep(log)
        report_command = [program("selfprobe"), "report", "logs", "--out", "report"]
        subprocess.run(report_command, cwd=HERE, check=True)
        shutil.rmtree(HERE / "report" / "tables")  # the page does not lead there
    take_picture(HERE / "report" / "index.html", HERE.parent / "docs" / "report.png")


def take_picture(page: Path, picture: Path) -> None:
    """The page's first screen, as Chromium shows it; without Chromium the picture stays, as a line
    says.
    """
    browser = shutil.which("chromium") or shutil.which("google-chrome")
    if browser is None:
        print(f"{picture.name} stays as it is: it is taken with chromium, and there is none")
        return
    browser_options = [
        "--headless",
        "--no-sandbox",
        "--disable-gpu",
        "--hide-scrollbars",
        "--window-size=1280,660",
        f"--screenshot={picture}",
    ]
    subprocess.run([browser, *browser_options, page.as_uri()], check=True, capture_output=True)


def keep(log: Path) -> None:
    """Write the log under a name without its date, kth_word-ada.eval, and without this machine's
    path of the model.
    """
    from inspect_ai.log import EvalLog, read_eval_log, write_eval_log

    from selfprobe.embed.weights import fetch

    weights_folder = f"{fetch().parent.resolve()}{os.sep}"
    log_json = read_eval_log(str(log)).model_dump_json()
    portable_log = EvalLog.model_validate_json(log_json.replace(weights_folder, ""))
    task = portable_log.eval.task.split("/")[-1]
    model = portable_log.eval.model.split("/")[-1].split("?")[0]
    write_eval_log(portable_log, str(HERE / "logs" / f"{task}-{model}.eval"))


if __name__ == "__main__":
    main()
