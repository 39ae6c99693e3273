import json
from collections.abc import Iterable, Iterator
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from filelock import FileLock
from safetensors.torch import load_file, save_file

from selfprobe.data.pairs import Pair
from selfprobe.probes import forward
from selfprobe.probes.harvesting import Meter, harvest, open_harvest
from selfprobe.probes.model import LocalModel
from selfprobe.probes.tokens import encode

from .conftest import some_pairs, tiny_judge


def silent(_: str) -> None:
    pass


def test_rows_are_in_the_order_of_the_pairs_whatever_the_batches(
    llama: LocalModel, tmp_path: Path
) -> None:
    pairs = some_pairs(5)
    found = harvest(llama, pairs, tmp_path, batch_tokens=600, progress=silent)
    assert found.layer(0).shape == (5, 2, 2, 32)
    for i, pair in enumerate(pairs):
        for order, shown in enumerate((pair, pair.swapped)):
            states = forward.read_states(llama, encode(llama.tokenizer, [shown]), "two_forwards")
            for layer in range(3):
                np.testing.assert_allclose(
                    found.layer(layer)[i, order], states.hidden[0, :, layer], rtol=1e-3, atol=1e-4
                )
            np.testing.assert_allclose(
                found.log_probs[i, order], states.log_probs[0], rtol=1e-3, atol=1e-3
            )


def test_a_killed_harvest_goes_on_where_it_stopped(
    llama: LocalModel, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pairs, asked = some_pairs(6), list[int]()

    def counts(
        judge: LocalModel, cut_batches: Iterable[forward.Batch]
    ) -> Iterator[tuple[forward.Batch, forward.States]]:
        for batch in cut_batches:
            asked.append(len(batch.prompts))
            yield from forward.read_in_process(judge, [batch])

    def dies(
        judge: LocalModel, cut_batches: Iterable[forward.Batch]
    ) -> Iterator[tuple[forward.Batch, forward.States]]:
        yield from islice(counts(judge, cut_batches), 4)
        raise KeyboardInterrupt

    monkeypatch.setattr("selfprobe.probes.harvesting.SHARD_BYTES", 1)
    given: dict[str, Any] = {"batch_tokens": 1, "path": "two_forwards", "progress": silent}
    with pytest.raises(KeyboardInterrupt):
        harvest(llama, pairs, tmp_path, reader=dies, **given)
    (folder,) = (file.parent for file in tmp_path.glob("*/*/pairs.jsonl"))
    with pytest.raises(ValueError, match="not finished: .* pairs are missing. Run it again"):
        open_harvest(folder)
    (folder.parent / "part-999").write_bytes(b"half a shard")
    asked.clear()
    resumed = harvest(llama, pairs, tmp_path, reader=counts, **given)
    assert len(asked) == 12 - 4
    whole = harvest(llama, pairs, tmp_path / "other", progress=silent)
    np.testing.assert_allclose(resumed.layer(2), whole.layer(2), rtol=1e-3, atol=1e-4)
    asked.clear()
    again = harvest(llama, pairs, tmp_path, reader=counts, progress=silent)
    assert not asked, "what is there is not computed again"
    np.testing.assert_array_equal(again.layer(1), resumed.layer(1))


def test_the_activations_of_another_model_are_refused(llama: LocalModel, tmp_path: Path) -> None:
    folder = harvest(llama, some_pairs(2), tmp_path, progress=silent).folder
    with pytest.raises(
        ValueError, match=r"activations of tiny-llama \(r0\), not of tiny-llama \(r1\)"
    ):
        open_harvest(folder, judge=tiny_judge(seed=1))
    other = harvest(tiny_judge(seed=1), some_pairs(2), tmp_path, progress=silent)
    assert other.folder != folder
    (other.folder.parent / "identity.json").write_text(
        (folder.parent / "identity.json").read_text()
    )
    with pytest.raises(ValueError, match="cache of something else: revision 'r0' instead of 'r1'"):
        harvest(tiny_judge(seed=1), some_pairs(2), tmp_path, progress=silent)
    with pytest.raises(FileNotFoundError, match="is no activation cache"):
        open_harvest(tmp_path)


def test_other_data_get_another_folder(llama: LocalModel, tmp_path: Path) -> None:
    pairs = some_pairs(2)
    one = harvest(llama, pairs, tmp_path, progress=silent)
    two = harvest(llama, [pairs[0], replace(pairs[1], text_2="other")], tmp_path, progress=silent)
    three = harvest(llama, pairs, tmp_path, both_orders=False, progress=silent)
    assert len({one.folder, two.folder, three.folder}) == 3
    np.testing.assert_allclose(three.layer(2)[:, 0], one.layer(2)[:, 0], rtol=1e-3, atol=1e-4)


def test_what_cannot_be_read_is_unscored_with_its_reason(tmp_path: Path) -> None:
    judge = tiny_judge(context=400)
    pairs = [*some_pairs(2), Pair("long", "x" * 300, "y", 1), Pair("same", "Yes ", "yes", 1)]
    found = harvest(judge, pairs, tmp_path, progress=silent)
    assert [p.id for p in found.pairs] == ["p0", "p1"]
    assert found.unscored["same"] == "equal texts"
    assert found.unscored["long"].startswith("too long: 5") and found.unscored["long"].endswith(
        "the context is 400"
    )
    assert open_harvest(found.folder).unscored == found.unscored
    assert found.layer(0).shape[0] == 2


def test_states_that_are_not_finite_are_unscored(tmp_path: Path) -> None:
    judge = tiny_judge(seed=3)
    embedding = judge.model.get_input_embeddings().weight
    unknown = judge.tokenizer("~", add_special_tokens=False)["input_ids"][0]
    embedding[unknown] = torch.nan
    found = harvest(judge, [*some_pairs(2), Pair("odd", "~", "fine", 1)], tmp_path, progress=silent)
    assert list(found.unscored) == ["odd"]
    assert "not finite (NaN or infinite): try dtype" in found.unscored["odd"]
    assert np.isfinite(found.layer(2)).all()


def test_half_precision_is_kept_and_read_as_float32(tmp_path: Path) -> None:
    judge = tiny_judge()
    judge.model.to(torch.bfloat16)
    said: list[str] = []
    found = harvest(judge, some_pairs(2), tmp_path, progress=said.append)
    assert found.identity.dtype == "bfloat16"
    assert found.layer(1).dtype == np.float32
    assert len(found.rounding) == 3 and max(found.rounding) > 1e-3
    assert open_harvest(found.folder).rounding == found.rounding


def test_other_labels_groups_and_ids_cost_no_harvest(
    llama: LocalModel, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pairs = some_pairs(3)
    first = harvest(llama, pairs, tmp_path, progress=silent)
    monkeypatch.setattr(forward, "read_states", None)
    others = [replace(p, label=None, group=f"g{i // 2}", id=f"q{i}") for i, p in enumerate(pairs)]
    second = harvest(llama, others, tmp_path, progress=silent)
    np.testing.assert_array_equal(second.layer(1), first.layer(1))
    assert second.labels.tolist() == [0, 0, 0] and first.labels.tolist() == [2, 1, 1]
    assert [p.id for p in open_harvest(second.folder).pairs] == ["q0", "q1", "q2"]
    assert open_harvest(first.folder).labels.tolist() == [2, 1, 1], (
        "each set of labels has its own folder"
    )
    assert first.data_hash != second.data_hash


def test_a_shard_that_lacks_an_array_is_a_damaged_one(
    llama: LocalModel, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    first = harvest(llama, some_pairs(2), tmp_path, progress=silent)
    (shard,) = first.folder.parent.glob("states-*.safetensors")
    arrays = load_file(shard)
    del arrays["log_probs"]
    save_file(arrays, shard)
    again = harvest(llama, some_pairs(2), tmp_path, progress=silent)
    np.testing.assert_array_equal(again.log_probs, first.log_probs)
    assert "states-00000.safetensors is damaged (" in caplog.text


def test_a_text_with_a_special_token_is_unscored_and_never_ends_a_turn(tmp_path: Path) -> None:
    found = harvest(
        tiny_judge(), [*some_pairs(2), Pair("odd", "a <s> b", "c", 1)], tmp_path, progress=silent
    )
    assert found.unscored == {
        "odd": "special token in its texts: <s>, which this model would not read as text"
    }


def shards(folder: Path) -> list[Path]:
    return sorted(folder.parent.glob("states-*.safetensors"))


@pytest.mark.parametrize("left", [0, 5, 0.5, -1])
def test_a_truncated_shard_is_named_set_aside_and_harvested_again(
    left: float, llama: LocalModel, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    found = harvest(llama, some_pairs(2), tmp_path, progress=silent)
    whole, (shard,) = found.layer(2), shards(found.folder)
    content = shard.read_bytes()
    shard.write_bytes(content[: int(len(content) * left) if left == 0.5 else int(left)])
    with pytest.raises(
        ValueError, match=r"2 pairs are missing; states-00000.safetensors is damaged. Run it again"
    ):
        open_harvest(found.folder)
    again = harvest(llama, some_pairs(2), tmp_path, progress=silent)
    np.testing.assert_allclose(again.layer(2), whole, rtol=1e-5, atol=1e-6)
    assert (
        "states-00000.safetensors is damaged (" in caplog.text
        and "set aside, and its pairs are harv" in caplog.text
    )
    assert (shard.parent / "damaged-states-00000.safetensors").is_file()


def test_pairs_that_a_crash_cut_are_written_again_and_an_identity_is_named(
    llama: LocalModel, tmp_path: Path
) -> None:
    found = harvest(llama, some_pairs(3), tmp_path, progress=silent)
    file, identity = found.folder / "pairs.jsonl", found.folder.parent / "identity.json"
    lines = file.read_text().splitlines(keepends=True)
    for left in ("", lines[0], lines[0] + lines[1][:20]):
        file.write_text(left)
        assert len(harvest(llama, some_pairs(3), tmp_path, progress=silent)) == 3
    for content in ("{", json.dumps(json.loads(identity.read_text()) | {"more": 1})):
        identity.write_text(content)
        with pytest.raises(
            ValueError,
            match=r"identity\.json is not what this version writes \(.*pairs are read again",
        ):
            harvest(llama, some_pairs(3), tmp_path, progress=silent)


def test_a_second_process_on_one_store_is_refused(llama: LocalModel, tmp_path: Path) -> None:
    folder = harvest(llama, some_pairs(2), tmp_path, progress=silent).folder
    for shard in shards(folder):
        shard.unlink()
    with (
        FileLock(folder.parent / "lock"),
        pytest.raises(ValueError, match="another process is harvesting into .*--out"),
    ):
        harvest(llama, some_pairs(2), tmp_path, progress=silent)
    assert harvest(llama, some_pairs(2), tmp_path, progress=silent).layer(0).shape[0] == 2


def test_a_full_disk_is_said_and_what_was_written_is_kept(
    llama: LocalModel, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real, calls = save_file, iter([True, False])

    def full(tensors: object, path: Path) -> None:
        path.write_bytes(b"half")
        if not next(calls):
            raise OSError(28, "No space left on device")
        real(tensors, path)  # type: ignore[arg-type]

    monkeypatch.setattr("selfprobe.probes.harvesting.save_file", full)
    monkeypatch.setattr("selfprobe.probes.harvesting.SHARD_BYTES", 1)
    with pytest.raises(
        OSError,
        match=r"cannot be written to .* MB are free: .*No space left.*make room, and run again",
    ):
        harvest(llama, some_pairs(2), tmp_path, batch_tokens=1, progress=silent)
    (folder,) = tmp_path.iterdir()
    assert len(list(folder.glob("states-*"))) == 1 and not list(folder.glob("part-*"))


def test_a_layer_that_is_not_there_is_an_error(llama: LocalModel, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"layer must be in 0\.\.2, got 3"):
        harvest(llama, some_pairs(1), tmp_path, progress=silent).layer(3)


def test_progress_gives_rate_and_time_left(monkeypatch: pytest.MonkeyPatch) -> None:
    clock, said = iter([0.0, 5.0, 12.0, 12.0, 12.0]), []
    monkeypatch.setattr("selfprobe.probes.harvesting.time.monotonic", lambda: next(clock))
    meter = Meter(1000, 10, said.append)
    meter.add(100, 1)
    meter.add(140, 1)
    assert said == ["2 of 10 prompts, 0.2 prompts/s, 20 tokens/s, 38 s left"]


@pytest.mark.parametrize("seconds_of_last", [1, 60])
def test_the_end_of_a_harvest_is_reported_once(
    seconds_of_last: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = 0.0
    monkeypatch.setattr("time.monotonic", lambda: clock)
    lines: list[str] = []
    meter = Meter(200, 2, lines.append)
    for seconds in (60, seconds_of_last):
        clock += seconds
        meter.add(100, 1)
    meter.finish()
    assert [line.partition(",")[0] for line in lines] == ["1 of 2 prompts", "2 of 2 prompts"]
