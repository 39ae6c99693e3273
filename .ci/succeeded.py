"""Fail unless a folder holds one log, of a run that succeeded and scored something: `succeeded.py
logs`.
"""

import sys

from inspect_ai.log import list_eval_logs, read_eval_log

(found,) = list_eval_logs(sys.argv[1])
log = read_eval_log(found)
assert log.status == "success", f"{found.name}: {log.status} {log.error}"
assert log.results is not None, f"{found.name} has no results"
metrics = {
    name: metric.value for score in log.results.scores for name, metric in score.metrics.items()
}
assert metrics.get("n", 0) > 0, f"{found.name} scored nothing: {metrics}"
print(f"{log.eval.task}: {log.status}, {metrics['n']} decisions scored")
