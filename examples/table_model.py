"""A matrix of replies that are there already: models that answer from a table, and no model is
asked.

    python examples/table_model.py replies.csv --limit 100 --out matrix   # further options are selfprobe matrix's

The table (.csv or .jsonl) has a row a model and question: `model`, `question`, `reply`, and
`guess`, the reply that it predicts of itself: the words of another model test what likeness alone
reaches. A guess may be empty. The matrix is of `kth_word`, over the questions to which all models
replied: the k-th word of the guess is the prediction.
"""

import json
import sys
import tempfile
from pathlib import Path
from typing import Any

import pandas as pd
from inspect_ai.model import ChatMessage, GenerateConfig, ModelAPI, ModelOutput, modelapi
from inspect_ai.tool import ToolChoice, ToolInfo

from selfprobe.cli import main
from selfprobe.data import load
from selfprobe.errors import InputError
from selfprobe.introspect_tasks.kth_word import PREDICT
from selfprobe.providers.planted import BEHAVIOURS
from selfprobe.text.parse import words

COLUMNS = ["model", "question", "reply", "guess"]
PREDICTION_PATTERN = next(
    behaviour.pattern for behaviour in BEHAVIOURS if behaviour.template == PREDICT["self"]
)


class TableModel(ModelAPI):
    """`table/NAME`, with the model argument `file`."""

    def __init__(self, model_name: str, *, file: str, **others: Any) -> None:
        super().__init__(model_name=model_name, **others)
        rows = read(Path(file))
        self.rows = rows[rows.model == model_name].set_index("question")

    async def generate(
        self,
        input: list[ChatMessage],
        tools: list[ToolInfo],
        tool_choice: ToolChoice,
        config: GenerateConfig,
    ) -> ModelOutput:
        """The reply to a question, or to a question about it the word of the guess."""
        prompt = input[-1].text
        prediction = PREDICTION_PATTERN.fullmatch(prompt)
        if prediction is None:
            reply = str(self.rows.at[prompt, "reply"])
            return ModelOutput.from_content(self.model_name, reply)

        guess = str(self.rows.at[prediction["question"], "guess"])
        guessed_words = words(guess)
        k = int(prediction["k"])
        answer = ""
        if len(guessed_words) >= k:
            answer = json.dumps({"word": guessed_words[k - 1]})
        return ModelOutput.from_content(self.model_name, answer)


@modelapi(name="table")
def table() -> type[ModelAPI]:
    """Register it."""
    return TableModel


def read(file: Path) -> pd.DataFrame:
    """The table's rows, text as it stands.

    Raises:
        SystemExit: The file cannot be read, a column is missing, or a model has two replies to a
            question.
    """
    try:
        rows = pd.DataFrame(load(str(file), ()).rows)
    except InputError as error:
        sys.exit(f"{error}; give a .csv or .jsonl of {', '.join(COLUMNS)}")
    missing_columns = [column for column in COLUMNS if column not in rows]
    if missing_columns:
        sys.exit(
            f"{file}: expected the columns {', '.join(COLUMNS)}; "
            f"{', '.join(missing_columns)} is not there"
        )

    rows = rows[COLUMNS].fillna("").astype(str)
    repeated_rows = rows[rows.duplicated(["model", "question"])]
    if len(repeated_rows):
        first = repeated_rows.iloc[0]
        sys.exit(f"{file}: {first.model} has two replies to {first.question!r}; keep one")
    return rows


def run(file: str, *options: str) -> None:
    """Call `selfprobe matrix` with the table's models and questions."""
    if any(option.startswith("--observers") for option in options):
        sys.exit(
            "a table has no predictions by an observer that is told of its target; "
            "leave --observers out"
        )
    rows = read(Path(file))
    models = list(dict.fromkeys(rows.model))
    model_counts = rows.groupby("question", sort=False).model.nunique()
    questions = list(model_counts.index[model_counts == len(models)])
    if not questions:
        sys.exit(f"{file}: there is no question to which all of its {len(models)} models replied")

    lines: list[str] = []
    for i, question in enumerate(questions):
        lines.append(json.dumps({"id": f"q{i:04}", "question": question}) + "\n")
    with tempfile.TemporaryDirectory() as folder:
        questions_file = Path(folder) / "questions.jsonl"
        questions_file.write_text("".join(lines))
        model_names = ",".join(f"table/{model}" for model in models)
        arguments = ["matrix", "--models", model_names, "--tasks", "kth_word"]
        arguments += ["-T", f"dataset={questions_file}", "-T", "resamples=0"]
        arguments += ["-M", f"file={file}"]
        main([*arguments, *options])


if __name__ == "__main__":
    if len(sys.argv) < 2 or sys.argv[1].startswith("-"):
        sys.exit(__doc__)
    run(*sys.argv[1:])
