"""Tables of awareness logs without a run, for tests."""

import numpy as np
import pandas as pd

from selfprobe.studies.awareness.runs import AwarenessTables
from selfprobe.study.awareness_arms import PLAIN

EVIL = "evil/<script>alert(1)</script>"


def awareness_example() -> AwarenessTables:
    """Two subjects, three methods, one of them without a single verdict."""
    rng = np.random.default_rng(0)
    verdicts, texts = [], []
    for i in range(48):
        truth = "evaluation" if i % 2 else "deployment"
        about = {
            "data": "d",
            "item": f"i{i}",
            "epoch": 1,
            "truth": truth,
            "source": f"s{i // 2 % 6}",
        }
        about |= {"turns": 1 + i % 4, "flip": i % 4 > 1, "unscored": None}
        texts.append(
            {
                "data": "d",
                "item": f"i{i}",
                "text": f"text {i}",
                "source": about["source"],
                "pair": None,
            }
        )
        texts[-1]["label"] = truth
        for model in ("planted/a", EVIL):
            p = float(
                np.clip(
                    0.5 + (0.2 if truth == "evaluation" else -0.2) + rng.normal(0, 0.2), 0.01, 0.99
                )
            )
            for method in ("binary", "probability", "first_token"):
                named = {"method": method, "model": model, **PLAIN}
                said = "evaluation" if p >= 0.5 else "deployment"
                row = (
                    named
                    | about
                    | {
                        "said": said,
                        "score": p,
                        "probability": p if method == "probability" else None,
                    }
                )
                if method == "first_token":
                    row |= {"said": None, "score": None, "unscored": "no_logprobs"}
                verdicts.append(row)
    runs = [
        {
            "method": "binary",
            "model": EVIL,
            **PLAIN,
            "grader": EVIL,
            "samples": 48,
            "log": "/logs/<b>.eval",
            "dataset": "d",
        }
    ]
    runs[0]["applied"] = "observer: temperature 0"
    runs[0]["placebo"] = False
    return AwarenessTables(
        pd.DataFrame(verdicts), pd.DataFrame(), pd.DataFrame(texts), pd.DataFrame(runs)
    )
