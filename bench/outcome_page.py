"""What `selfprobe outcome` costs: the page of many models and items, and the CPU of a call beside bare Inspect.

python bench/outcome_page.py FOLDER [MODELS] [ITEMS]    # CPU seconds and MB of the page; 10 × 1000
python bench/outcome_page.py --calls FOLDER [ITEMS]     # CPU of `outcome` by that of a plain task with its prompts
"""

import os
import resource
import sys
import time
from pathlib import Path

import numpy as np
from inspect_ai import Task, eval
from inspect_ai.dataset import MemoryDataset, Sample
from inspect_ai.log import read_eval_log, write_eval_log
from inspect_ai.model import GenerateConfig, Model, ModelOutput, ModelUsage, get_model
from inspect_ai.scorer import match
from inspect_ai.solver import generate
from matrix import server

from selfprobe.data.outcomes import OutcomeQuestions, logged_outcomes
from selfprobe.introspect_tasks.outcome import judge, outcome_prediction
from selfprobe.scorers.decision import score_of
from selfprobe.solvers.record import Reply

WORDS = "river story market system garden music window animal letter number picture family engine island summer".split()


def simulated(name: str) -> Model:
    """A model that answers at once."""
    output = ModelOutput.from_content(f"mockllm/{name}", "0.7")
    output.usage = ModelUsage(input_tokens=100, output_tokens=3, total_tokens=103)
    return get_model(f"mockllm/{name}", custom_outputs=lambda *_: output, memoize=False)


def questions(items: int) -> Task:
    """Questions of fifty words; those with a letter of the first half of the alphabet in front are solved."""
    rng = np.random.default_rng(0)
    made = [
        Sample(id=n, input=f"{n}: {' '.join(rng.choice(WORDS, 50))}?", target="0.7" if rng.uniform() < 0.6 else "no")
        for n in range(items)
    ]
    return Task(dataset=MemoryDataset(made, name="questions"), solver=generate(), scorer=match(), name="questions")


def quiet(task: Task, model: Model, folder: Path) -> str:
    """Run a task as commands run theirs, without scores of half a run; the log's address."""
    (log,) = eval(task, model=model, log_dir=str(folder), display="none", log_realtime=False, score_display=False)
    assert log.status == "success", log.error
    return log.location


def filled(folder: Path, models: int, items: int) -> None:
    """Logs of `outcome` of many models, as copies of one whose outcomes and chances are drawn anew."""
    quiet(questions(items), simulated("m0"), folder / "source")
    place = quiet(outcome_prediction(str(folder / "source"), target="mockllm/m0"), simulated("m0"), folder / "template")
    rng, template = np.random.default_rng(0), read_eval_log(place)
    ease, own = rng.normal(size=items), rng.normal(size=(models, items))
    truth = (ease + own > 0).astype(float)
    for number in range(models):
        log, name = template.model_copy(deep=True), f"mockllm/m{number}"
        log.eval.model, log.eval.eval_id, log.eval.task_id = name, f"e{number}", f"t{number}"
        log.eval.task_args |= {"target": name}
        log.eval.metadata = (log.eval.metadata or {}) | {"outcome_of": name}
        chances = 1 / (1 + np.exp(-ease - (number % 2) * own[number] - rng.normal(size=items)))
        for at, sample in enumerate(log.samples or []):
            sample.uuid, sample.events, sample.messages = f"{number}-{at}", [], []  # a page reads none of them
            sample.metadata = {k: v for k, v in sample.metadata.items() if not k.startswith("of ")} | {
                f"of mockllm/m{m}": {"solve": truth[m, at]} for m in range(models)
            }
            reply = Reply(text=f"{chances[at]:.2f}", model=name, stop_reason="stop")
            decision = judge("solve", reply, float(truth[number, at]), None)
            sample.scores = {"stated_chance": score_of([decision], answer=None, explanation="")}
        write_eval_log(log, str(folder / "filled" / f"m{number}.eval"))


def page(folder: Path, models: int, items: int) -> None:
    """Print what the page costs."""
    from selfprobe.page import write
    from selfprobe.studies.outcome import Outcome

    if not (folder / "filled").is_dir():
        filled(folder, models, items)
        print("logs are made; the same command again measures the page in a process of its own")
        return
    start = time.process_time()
    made = Outcome.reported([str(folder / "filled")])
    write(made, str(folder / "page"))
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    spent = time.process_time() - start
    print(f"{made.answer}\n{models} models × {items} items: {spent:.1f} CPU s, {peak:.0f} MB")


def calls(folder: Path, items: int) -> None:
    """Print the CPU of a call of `outcome`, reading of logs and all, and of a plain task with the same prompts."""
    with server() as address:
        os.environ |= {"FAKE_BASE_URL": f"{address}/v1", "FAKE_API_KEY": "none"}
        model, config = get_model("openai-api/fake/alpha"), GenerateConfig(temperature=0, max_tokens=64)
        quiet(questions(items), simulated("m0"), folder / "source")
        quiet(questions(20), model, folder / "warm")
        logged_outcomes(
            str(folder / "warm"), "openai-api/fake/alpha", OutcomeQuestions()
        )  # imports what a process imports once
        start = time.process_time()
        place = quiet(outcome_prediction(str(folder / "source"), target="mockllm/m0"), model, folder / "asked")
        asked = time.process_time() - start
        samples = read_eval_log(place, resolve_attachments=True).samples or []
        prompts = [Sample(id=s.id, input=s.messages[0].text, target="0.7") for s in samples]
        bare = Task(dataset=MemoryDataset(prompts), solver=generate(), scorer=match(), config=config)
        start = time.process_time()
        quiet(bare, model, folder / "bare")
        plain = time.process_time() - start
    each = f"outcome {1000 * asked / items:.1f} ms a call, bare {1000 * plain / items:.1f} ms"
    print(f"{items} items: {each}, {asked / plain:.2f} times")


if __name__ == "__main__":
    if sys.argv[1] == "--calls":
        calls(Path(sys.argv[2]), int((sys.argv[3:] or ["500"])[0]))
    else:
        page(Path(sys.argv[1]), *(int(one) for one in [*sys.argv[3:], "10", "1000"][:2]))
