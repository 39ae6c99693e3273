"""What several tests share: a local model server with planted truth, and runs of a task."""

import asyncio
import importlib
import importlib.util
import inspect
import json
import math
import sys
import threading
import zlib
from collections.abc import Callable, Iterator
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import product
from pathlib import Path
from typing import Any

import hypothesis
import numpy as np
import pandas as pd
import pytest
from inspect_ai import Task, eval, eval_set
from inspect_ai.dataset import Sample
from inspect_ai.log import EvalLog
from inspect_ai.model import ChatMessageUser, GenerateConfig, Model, ModelName, get_model
from inspect_ai.model._generate_config import set_active_generate_config
from inspect_ai.scorer import SampleScore, Scorer, Target
from inspect_ai.solver import TaskState

from selfprobe.solvers.observe import AskedAbout
from selfprobe.solvers.record import Record, Reply, reply_from

hypothesis.settings.register_profile("suite", deadline=None, derandomize=True, max_examples=100)
hypothesis.settings.load_profile("suite")

ROOT = Path(__file__).parent.parent


def _module(name: str) -> Any:
    """A file of this folder as a module (pytest's importlib mode adds no folder to the path)."""
    spec = importlib.util.spec_from_file_location(name, Path(__file__).parent / f"{name}.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


_SERVER = _module("fakeserver")
_GATEWAYS = _module("gateways")
_TIERS = _module("tiers")
pytest_addoption = _TIERS.pytest_addoption
pytest_runtest_call = _TIERS.pytest_runtest_call
pytest_collection_modifyitems = _TIERS.pytest_collection_modifyitems
pytest_terminal_summary = _TIERS.pytest_terminal_summary


@pytest.hookimpl(tryfirst=True)  # before pytest sets up the filters that hold at the session's end
def pytest_configure(config: pytest.Config) -> None:
    """Warnings are errors; these are Inspect's own."""
    for message in (
        "The 'initial' parameter is deprecated:DeprecationWarning",
        "Unclosed <MemoryObject:ResourceWarning",
        "unclosed <socket:ResourceWarning",  # connections of a model's client, which outlive the event loop
        "unclosed transport:ResourceWarning",
    ):
        config.addinivalue_line("filterwarnings", f"ignore:{message}")


@pytest.fixture(autouse=True)
def no_settings_of_an_earlier_run() -> Iterator[None]:
    """Inspect's `eval_set` leaves the settings of its run in the process: after `--batch` every
    call went in a batch.
    """
    yield
    set_active_generate_config(GenerateConfig())


@pytest.fixture(autouse=True)
def nothing_is_left_in_the_checkout() -> Iterator[None]:
    """Logs, pages and tables go to a test's own folder: `logs/` here is the user's."""

    def there() -> set[Path]:
        return {
            path
            for path in (*ROOT.iterdir(), *ROOT.glob("logs/*"))
            if not path.name.startswith(".")
        }

    before = there()
    yield
    left = there() - before
    assert not left, (
        f"made in the checkout while this test ran: {', '.join(map(str, left))}; give --log-dir and --out"
    )


@pytest.fixture(scope="session", autouse=True)
def nothing_is_drawn() -> Iterator[None]:
    """Inspect draws a coloured traceback per failed sample and, with display none too, a table, and
    keeps each event of a study's run in a data base for a viewer: nobody reads them here. Processes
    of their own draw and keep all.
    """
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("selfprobe.study.waves.eval_set", partial(eval_set, log_realtime=False))
        patch.setattr("rich.live.Live.refresh", lambda live: None)
        patch.setattr("inspect_ai._util.rich.rich_traceback", lambda *error, **_: repr(error[1]))
        yield


@pytest.fixture(scope="session")
def root() -> Path:
    """The checkout."""
    return ROOT


@pytest.fixture(scope="session")
def strict_vendors() -> Any:
    """tests/strict_vendors.py: a stand-in for vendors that refuses what they are reported to
    refuse.
    """
    return _module("strict_vendors")


@pytest.fixture(scope="session")
def gateways() -> Any:
    """tests/gateways.py: a gateway that spoils replies."""
    return _GATEWAYS


@pytest.fixture(scope="session")
def one_gateway() -> Iterator[Any]:
    """One for all tests: Inspect gives commands one handle of a model, and its address stays."""
    with _GATEWAYS.running() as handle:
        yield handle


@pytest.fixture
def asked_gateway(one_gateway: Any, monkeypatch: pytest.MonkeyPatch) -> Any:
    """The gateway, with the environment in which Inspect's providers ask it."""
    for name, value in _GATEWAYS.environment(one_gateway).items():
        monkeypatch.setenv(name, value)
    one_gateway.fault = ""
    return one_gateway


@pytest.fixture(scope="session")
def one_server() -> Iterator[Any]:
    with _SERVER.running(_SERVER.Config.of("alpha", "beta", retry_after=0.05)) as handle:
        yield handle


@pytest.fixture
def server(one_server: Any, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """An OpenAI-compatible server as `openai-api/fake/alpha`, through the real client; see
    fakeserver.py.
    """
    monkeypatch.setenv("FAKE_API_KEY", "none")
    monkeypatch.setenv("FAKE_BASE_URL", one_server.base_url)
    clean = {"faults": {}, "sticky": (), "latency_ms": 0, "sigma": 0, "retry_after": 0.05}
    one_server.configure({"*": clean})
    one_server.reset()
    yield one_server
    one_server.configure({"*": clean})


@pytest.fixture(scope="session")
def one_batch_server(one_server: Any) -> Iterator[Any]:
    with _module("batchserver").batching(one_server.base_url, 3) as served:
        yield served


@pytest.fixture
def batches(one_batch_server: Any, server: Any, monkeypatch: pytest.MonkeyPatch) -> Any:
    """OpenAI's batch API for `openai/alpha` with `responses_api=False`; a batch takes 3 s, and is
    looked at often.

    Models that Inspect remembers are forgotten: their sender of batches ended with an earlier run,
    and they start no other.
    """
    monkeypatch.setattr("inspect_ai.model._model._models", {})
    batch = importlib.import_module("inspect_ai.model._providers.util.batch")
    for name, seconds in (("DEFAULT_BATCH_TICK", 0.1), ("DEFAULT_SEND_DELAY", 0.5)):
        monkeypatch.setattr(batch, name, seconds)
    url, held = one_batch_server
    monkeypatch.setenv("OPENAI_BASE_URL", url)
    monkeypatch.setenv("OPENAI_API_KEY", "none")
    held.batches.clear()
    held.direct = 0
    return held


Run = Callable[..., EvalLog]


@pytest.fixture(scope="session")
def run_task() -> Run:
    """Run one task on one model, quietly: `run_task("selfprobe/kth_word", "planted/alpha",
    folder)`; the log.

    A task that replays has to be given by name: it looks at the model while it is built.
    """

    def run(what: Task | str, model: Any, log_dir: Path, **options: Any) -> EvalLog:
        quiet: dict[str, Any] = {"display": "none", "log_realtime": False, "score_display": False}
        [log] = eval(what, model=model, log_dir=str(log_dir), **quiet, **options)
        assert log.samples, "a run without samples shows nothing"
        return log

    return run


@pytest.fixture(scope="session")
def play() -> Callable[..., list[SampleScore]]:
    """A task of acts, answers and one scorer, without a run: planted minds, its prompts, its
    scorer, one score a sample.

    `play(heads_up, guessed_word(), samples, "planted/o", "planted/t")`; a thousand items take as
    long as ten of a run.
    """

    async def replies(
        prompts: Any, model: Model, config: GenerateConfig, *, may_be_cut: bool
    ) -> dict[str, Reply]:
        outputs = {
            name: await model.api.generate([ChatMessageUser(content=prompt)], [], "none", config)
            for name, prompt in prompts.items()
        }
        return {
            name: reply_from(output, model, may_be_cut=may_be_cut)
            for name, output in outputs.items()
        }

    async def scored(
        task: Any, scorer: Scorer, sample: Sample, observer: Model, target: Model
    ) -> SampleScore:
        state = TaskState(
            ModelName(observer),
            str(sample.id),
            1,
            str(sample.input),
            messages=[],
            metadata=sample.metadata,
        )
        record = state.store_as(Record)
        record.acts = await replies(task.act_prompts(state), target, task.ACT, may_be_cut=True)
        about = [AskedAbout()] if len(inspect.signature(task.answer_prompts).parameters) > 1 else []
        record.answers = await replies(
            task.answer_prompts(state, *about), observer, task.ANSWER, may_be_cut=False
        )
        score = await scorer(state, Target(""))
        assert score is not None
        return SampleScore(score=score, sample_id=sample.id)

    async def all_of(
        task: Any, scorer: Scorer, samples: Any, observer: str, target: str
    ) -> list[SampleScore]:
        models = get_model(observer), get_model(target)
        return [await scored(task, scorer, sample, *models) for sample in samples]

    def play(
        task: Any, scorer: Scorer, samples: Any, observer: str, target: str | None = None
    ) -> list[SampleScore]:
        found = asyncio.run(all_of(task, scorer, samples, observer, target or observer))
        assert found, "no sample was played"
        return found

    return play


@pytest.fixture
def questions(tmp_path: Path) -> Path:
    """A data set of twelve questions."""
    path = tmp_path / "questions.jsonl"
    path.write_text(
        "".join(f'{{"id": "q{i}", "question": "What of number {i}?"}}\n' for i in range(12))
    )
    return path


class _Embeddings(BaseHTTPRequestHandler):
    """POST /embeddings as OpenAI has it: counts of words, hashed into 64 places; shared words make
    texts alike.
    """

    def do_POST(self) -> None:
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        data = [
            {"object": "embedding", "index": i, "embedding": self.vector(text, asked["model"], i)}
            for i, text in enumerate(asked["input"])
        ]
        body = json.dumps({"object": "list", "model": asked["model"], "data": data[::-1]}).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def vector(self, text: str, model: str, place: int) -> list[float]:
        counts = [0.0] * (63 if model == "ragged" and place else 64)
        for word in text.lower().split():
            counts[zlib.crc32(word.encode()) % len(counts)] += 1
        return [float("nan")] * 64 if model == "nan" else counts

    def log_message(self, *args: object) -> None:
        """Quiet."""


@pytest.fixture(scope="session")
def one_embedding_server() -> Iterator[str]:
    with ThreadingHTTPServer(("127.0.0.1", 0), _Embeddings) as httpd:
        threading.Thread(target=httpd.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{httpd.server_address[1]}"
        httpd.shutdown()


@pytest.fixture
def embedder(one_embedding_server: str, monkeypatch: pytest.MonkeyPatch) -> str:
    """An embedder through the real OpenAI client that needs no weights; its server also knows `nan`
    and `ragged`.
    """
    monkeypatch.setenv("OPENAI_BASE_URL", one_embedding_server)
    monkeypatch.setenv("OPENAI_API_KEY", "none")
    return "openai/words"


@pytest.fixture(scope="session")
def matrix_results() -> Callable[..., Any]:
    """Tables of a planted kth_word matrix without a run: right with `access` on oneself, `general`
    on the others.
    """
    from selfprobe.studies.matrix.table import Results

    def make(
        access: dict[str, float],
        *,
        general: float = 0.4,
        items: int = 100,
        task: str = "kth_word",
        seed: int = 0,
    ) -> Results:
        rng, texts = (
            np.random.default_rng(seed),
            [f"What of {w} {i}?" for i, w in enumerate("abcde" * (items // 5))],
        )
        cells, decisions = [], []
        for target, observer in product(access, access):
            names = {"task": task, "target": target, "observer": observer}
            cells.append(
                {
                    **names,
                    "status": "complete",
                    "reason": "",
                    "log": f"logs/{len(cells)}.eval",
                    "samples": items,
                }
                | {
                    "errors": 0,
                    "epochs": 1,
                    "version": "1",
                    "dataset": "d",
                    "dataset_sha256": "aa",
                    "selfprobe": "0",
                }
                | {
                    "inspect": "0",
                    "created": "",
                    "args": {},
                    "tokens": 10,
                    "settings": {},
                    "joined": False,
                }
                | {"applied": {}}
                | {"items": [f"q{i}" for i in range(items)]}
            )
            right = rng.random(items) < (access[target] if target == observer else general)
            truths = np.random.default_rng(sum(map(ord, target))).choice(
                ["the", "a", "we", "it"], items
            )
            decisions += [
                {
                    **names,
                    "item": f"q{i}",
                    "epoch": 1,
                    "key": "k1",
                    "value": float(right[i]),
                    "unscored": None,
                }
                | {
                    "truth": truths[i],
                    "said": "?",
                    "chance": math.nan,
                    "ceiling": 1.0,
                    "floor": math.nan,
                }
                | {"reasoned": False, "unread": None, "plain": None}
                for i in range(items)
            ]
        asked = pd.DataFrame(
            {"task": task, "item": [f"q{i}" for i in range(items)], "input": texts, "kind": ""}
        )
        asked["cluster"] = asked["item"]
        return Results(pd.DataFrame(cells), pd.DataFrame(decisions), asked, {}, [])

    return make
