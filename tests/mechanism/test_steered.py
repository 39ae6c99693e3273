"""Models under a vector: dose 0 is the plain model, two handles share the weights, logs say what was
added, and wrong settings are a line.
"""

import asyncio
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from inspect_ai import eval
from inspect_ai.event import ModelEvent
from inspect_ai.model import ChatMessageUser, GenerateConfig, Model, get_model

torch = pytest.importorskip("torch", reason="the probes extra is not installed")

from selfprobe.errors.inspect_private import PrerequisiteError  # noqa: E402
from selfprobe.mechanism.steered import DEFAULT_DEPTH, Steering  # noqa: E402
from selfprobe.probes.fit import Probe  # noqa: E402
from selfprobe.probes.model import fingerprint  # noqa: E402
from selfprobe.probes.probe_file import Card, save_probe  # noqa: E402

from .organisms import BLOCK, saved  # noqa: E402

CONFIG = GenerateConfig(max_tokens=6, temperature=0, logprobs=True, top_logprobs=2)
ASKED = [ChatMessageUser(content="Tell me about the note.")]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A tiny model, as `save_pretrained` writes it."""
    folder = tmp_path_factory.mktemp("model") / "tiny"
    return saved(folder)


def handle(folder: Path, **settings: Any) -> Model:
    return get_model(f"steered/{folder}", device="cpu", memoize=False, **settings)


def logprobs_of(model: Model, config: GenerateConfig = CONFIG) -> tuple[list[float], Any]:
    output = asyncio.run(model.generate(ASKED, config=config))
    logprobs = output.choices[0].logprobs
    assert logprobs
    return [token.logprob for token in logprobs.content], (output.metadata or {}).get("steer")


def test_handles_share_weights_and_not_vectors(folder: Path) -> None:
    plain = handle(folder)
    steered = handle(folder, block=BLOCK, dose=2.0, vector="random:7")
    assert plain.api.model is steered.api.model  # type: ignore[attr-defined]
    before, note = logprobs_of(plain)
    assert note == {"vector": None, "dose": 0.0, "block": None}
    moved, note = logprobs_of(steered)
    assert note == {"vector": "random:7", "dose": 2.0, "block": BLOCK}
    assert moved != before and (logprobs_of(plain))[0] == before
    own = CONFIG.merge(
        GenerateConfig(extra_body={"steer": {"vector": "random:7", "dose": 2, "block": BLOCK}})
    )
    assert (logprobs_of(plain, own))[0] == moved


def test_dose_0_is_the_hf_provider_s_plain_model_to_the_bit(folder: Path) -> None:
    plain = get_model(
        "hf/tiny", model_path=str(folder), device="cpu", do_sample=False, memoize=False
    )
    steered = handle(folder, block=BLOCK, dose=0.0, vector="random:7")
    without_temperature = CONFIG.model_copy(update={"temperature": None})
    outputs = [
        asyncio.run(model.generate(ASKED, config=config)).choices[0]
        for model, config in ((plain, without_temperature), (steered, CONFIG))
    ]
    assert outputs[0].logprobs is not None and outputs[0].logprobs == outputs[1].logprobs
    assert outputs[0].message.text == outputs[1].message.text

    weights = steered.api.weights  # type: ignore[attr-defined]
    tokens = steered.api.tokenizer(ASKED[0].text, return_tensors="pt").input_ids  # type: ignore[attr-defined]
    with torch.inference_mode():
        plain_logits = plain.api.model(tokens).logits  # type: ignore[attr-defined]
        with steered.api._steered(Steering("random:7", 0.0, BLOCK)):  # type: ignore[attr-defined]
            assert torch.equal(weights(tokens).logits, plain_logits)
        with steered.api._steered(Steering("random:7", 1e-3, BLOCK)):  # type: ignore[attr-defined]
            assert not torch.equal(weights(tokens).logits, plain_logits)


def test_a_concept_and_a_probe_file_are_vectors(folder: Path) -> None:
    concept = handle(folder, block=BLOCK, dose=1.0, vector="concept:ocean")
    assert (logprobs_of(concept))[0] != (logprobs_of(handle(folder)))[0]


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"dose": "much"}, "dose and block are numbers"),
        ({"dose": float("nan")}, "a dose is a finite number"),
        ({"dose": "1e400", "vector": "random:1"}, "a dose is a finite number from -100 to 100"),
        ({"dose": 1e300, "vector": "random:1"}, r"-100 to 100, .*; got 1e\+300"),
        ({"dose": -101, "vector": "random:1"}, "from -100 to 100, .*; got -101"),
        ({"dose": True, "vector": "random:1"}, "dose and block are numbers: got dose=True"),
        ({"dose": 1, "vector": "random:1", "block": 1.7}, "a whole number; got block=1.7"),
        ({"dose": 1, "vector": "random:1", "block": "inf"}, "a whole number; got block=inf"),
        ({"dose": 1, "vector": "random:1", "block": True}, "numbers: got block=True"),
        ({"dose": 1, "vector": "random:²"}, "a random vector has a seed, .* got random:²"),
        ({"dose": 1, "vector": "random:" + "9" * 5000}, "a random vector has a seed"),
        ({"dose": 1, "vector": "concept:"}, "a concept is a word or phrase on one line"),
        ({"dose": 1, "vector": "concept: "}, "a concept is a word or phrase on one line"),
        ({"dose": 1, "vector": "concept:a\nb"}, r"got concept:'a\\nb'"),
        ({"dose": 1, "vector": "random:1", "other_model": "yes"}, "must be true or false, got yes"),
        ({"dose": 0, "vector": "gone.probe"}, "no probe file"),
        ({"dose": 0, "vector": "random:x"}, "a random vector has a seed"),
        ({"dose": 0, "block": 9, "vector": "random:1"}, r"blocks 0\.\.3, got block=9"),
        ({"dose": 0, "block": 9}, r"blocks 0\.\.3, got block=9"),
        ({"block": 9}, r"blocks 0\.\.3, got block=9"),
        ({"other_modle": True}, r"did you mean other_model\?"),
        ({"dose": 1, "block": 9, "vector": "random:1"}, r"blocks 0\.\.3, got block=9"),
        ({"dose": 1, "vector": "random:x"}, "a random vector has a seed"),
        ({"dose": 1, "vector": "gone.probe"}, "no probe file"),
        ({"dose": 0.5}, "dose=0.5 without a vector: give -M vector=concept:WORD"),
        ({"vector": "random:1"}, "vector=random:1 without a dose adds nothing: give -M dose=.5"),
        ({"blok": 20}, r"-M blok: steered/… has no such argument; did you mean block\?"),
        ({"vecter": "random:1"}, r"did you mean vector\?"),
        (
            {"layer": 3},
            r"argument 'layer'. Model arguments \(-M\) are vector, dose, block, other_model, and",
        ),
    ],
)
def test_a_wrong_setting_is_one_line(folder: Path, settings: dict[str, Any], message: str) -> None:
    with pytest.raises(PrerequisiteError, match=message):
        handle(folder, **settings)


@pytest.mark.parametrize(
    "steer",
    [{"vector": "random:1", "block": 1.5}, {"block": 9}, {"vector": "gone.probe"}, {"dose": 1e9}],
)
def test_a_call_s_own_setting_is_checked_at_any_dose(folder: Path, steer: dict[str, Any]) -> None:
    config = CONFIG.merge(GenerateConfig(extra_body={"steer": {"dose": 0, **steer}}))
    with pytest.raises(PrerequisiteError, match="whole number|got block=9|no probe file|-100 to"):
        logprobs_of(handle(folder), config)


def test_a_dose_of_0_with_a_vector_logs_the_block(folder: Path) -> None:
    block = int(DEFAULT_DEPTH * 4)
    _, note = logprobs_of(handle(folder, dose=0, vector="random:7"))
    assert note == {"vector": "random:7", "dose": 0.0, "block": block}


def test_a_concept_of_a_model_without_a_chat_template_is_one_line(tmp_path: Path) -> None:
    folder = saved(tmp_path / "untemplated")
    steered = handle(folder, dose=1, vector="random:1")
    steered.api.tokenizer.chat_template = None  # type: ignore[attr-defined]
    with pytest.raises(PrerequisiteError, match="untemplated has no chat template, in which conc"):
        handle(folder, dose=1, vector="concept:ocean")


def test_a_concept_that_the_template_refuses_is_one_line(tmp_path: Path) -> None:
    folder = saved(tmp_path / "refuses")
    steered = handle(folder, dose=1, vector="random:1")
    template = "{{ raise_exception('no turns here') }}"
    steered.api.tokenizer.chat_template = template  # type: ignore[attr-defined]
    with pytest.raises(PrerequisiteError, match="^concept:ocean: .*no turns here"):
        handle(folder, dose=1, vector="concept:ocean")


def test_a_folder_without_a_model_is_one_line(tmp_path: Path) -> None:
    with pytest.raises(PrerequisiteError, match="no config.json in .*: expected a folder of"):
        handle(tmp_path)
    with pytest.raises(PrerequisiteError, match=r"no model 'mine/gone'.*transformers says: .*"):
        get_model("steered/mine/gone", device="cpu", memoize=False, local_files_only=True)


def test_the_log_says_the_block_that_a_default_stands_for(folder: Path, tmp_path: Path) -> None:
    (log,) = eval(
        "selfprobe/kth_word",
        model=f"steered/{folder}",
        model_args={"device": "cpu", "vector": "random:1", "dose": 0.5},
        limit=1,
        log_dir=str(tmp_path),
        display="none",
    )
    default_block = int(DEFAULT_DEPTH * 4)
    steering = {"vector": "random:1", "dose": 0.5, "block": default_block}
    assert {name: log.eval.model_args[name] for name in steering} == steering
    (sample,) = log.samples or []
    outputs = [event.output for event in sample.events if isinstance(event, ModelEvent)]
    assert outputs and all((output.metadata or {})["steer"] == steering for output in outputs)


def test_a_model_without_a_vector_says_once_that_it_is_the_plain_one(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    folder = saved(tmp_path / "unsteered")
    warned = "has no vector, so it answers as the plain model"
    logprobs_of(handle(folder, dose=0))
    logprobs_of(handle(folder), CONFIG.merge(GenerateConfig(extra_body={"steer": {"dose": 0}})))
    assert warned not in caplog.text
    logprobs_of(handle(folder))
    assert warned in caplog.text and "-M dose=0 where the plain model is meant" in caplog.text


def probe_file(folder: Path, width: int, *, model: str = "m", revision: str = "r") -> Path:
    """A probe of the block `BLOCK`, as `probe run` and `awareness inside --save` write it."""
    direction = np.random.default_rng(0).standard_normal(width)
    zeros = np.zeros(width)
    probe = Probe("supervised", BLOCK, "both", direction, 0.0, zeros, zeros + 1, "labels", 1.0)
    training = ("mine", "h", "strict", 0, ("g",), 2, {"f1": 0.5}, "0.3.0")
    card = Card(model, revision, "t", "float32", *training)
    file = folder / "direction.safetensors"
    save_probe(file, probe, card)
    return file


@pytest.mark.parametrize(
    "task",
    [
        "selfprobe/kth_word",
        pytest.param("selfprobe/awareness_binary", marks=pytest.mark.slow(20)),
    ],
)
def test_a_task_runs_under_a_probe_s_direction_and_its_log_says_which(
    task: str, folder: Path, tmp_path: Path
) -> None:
    vector = str(probe_file(tmp_path, 64, revision=fingerprint(folder)))
    (log,) = eval(
        task,
        model=f"steered/{folder}",
        model_args={"device": "cpu", "vector": vector, "dose": -0.5},
        limit=2,
        log_dir=str(tmp_path),
        display="none",
    )
    errors = [sample.error.message for sample in log.samples or [] if sample.error]
    assert log.status == "success", errors
    assert log.eval.model_args["dose"] == -0.5 and log.eval.model_args["vector"] == vector


def test_of_several_runs_in_one_process_each_has_its_own_vector(
    folder: Path, tmp_path: Path
) -> None:
    vectors = [None, "random:7", "random:8"]
    notes = []
    for vector in vectors:
        settings = {"device": "cpu", "vector": vector, "dose": 0.5} if vector else {"device": "cpu"}
        (log,) = eval(
            "selfprobe/kth_word",
            model=f"steered/{folder}",
            model_args=settings,
            limit=1,
            max_tokens=4,
            log_dir=str(tmp_path),
            display="none",
        )
        events = [event for sample in log.samples or [] for event in sample.events]
        outputs = [event.output for event in events if isinstance(event, ModelEvent)]
        notes.append({(output.metadata or {})["steer"]["vector"] for output in outputs})
    assert notes == [{vector} for vector in vectors]


def test_injected_thought_puts_each_word_in_for_its_reply_alone(
    folder: Path, tmp_path: Path
) -> None:
    grader = handle(folder, dose=0, config=GenerateConfig(max_tokens=4))
    (log,) = eval(
        "selfprobe/injected_thought",
        model=f"steered/{folder}",
        model_args={"device": "cpu"},
        model_roles={"grader": grader},
        task_args={"dose": 1.0, "block": BLOCK, "reply_tokens": 4},
        limit=2,
        log_dir=str(tmp_path),
        display="none",
    )
    assert log.status == "success", log.error
    for sample in log.samples or []:
        events = [event for event in sample.events if isinstance(event, ModelEvent)]
        steers = [
            (event.output.metadata or {})["steer"] for event in events if event.role != "grader"
        ]
        word = sample.metadata["word"]
        assert [(steer["vector"], steer["dose"]) for steer in steers] == [
            (f"concept:{word}", 1.0),
            (f"random:{word_number(sample)}", 1.0),
            (None, 0.0),
        ]


def word_number(sample: Any) -> int:
    return int(sample.input.split(".")[0].removeprefix("Trial "))


def test_a_direction_of_another_width_is_one_line(folder: Path, tmp_path: Path) -> None:
    with pytest.raises(PrerequisiteError, match="has 8 numbers, and the states .* have 64"):
        handle(folder, dose=1, vector=str(probe_file(tmp_path, 8, model=str(folder))))


def test_a_probe_of_another_model_is_refused_and_taken_where_that_is_asked_for(
    folder: Path, tmp_path: Path
) -> None:
    vector = str(probe_file(tmp_path, 64, model="org/base", revision="abc"))
    for dose in (0, 0.5):
        with pytest.raises(
            PrerequisiteError,
            match=rf"was saved from org/base \(abc\), not from {folder} \(local-[0-9a-f]+\): .* "
            "add -M other_model=true$",
        ):
            handle(folder, dose=dose, vector=vector)
    taken = handle(folder, dose=0.5, vector=vector, other_model=True)
    assert logprobs_of(taken)[1] == {"vector": vector, "dose": 0.5, "block": BLOCK}
    unnamed = str(probe_file(tmp_path, 64, model="", revision=""))
    with pytest.raises(PrerequisiteError, match="was saved from arrays of no named model"):
        handle(folder, dose=0.5, vector=unnamed)


def test_a_probe_of_another_revision_warns_and_of_the_same_weights_does_not(
    folder: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    same_weights = probe_file(tmp_path, 64, model="a/name", revision=fingerprint(folder))
    assert handle(folder, dose=0.5, vector=str(same_weights))
    assert "was saved from" not in caplog.text
    assert handle(folder, dose=0.5, vector=str(probe_file(tmp_path, 64, model=str(folder))))
    assert f"was saved from {folder} at revision r, and this is revision local-" in caplog.text
