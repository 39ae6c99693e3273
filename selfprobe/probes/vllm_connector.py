"""What vLLM's workers load to write states: of each request, those of its last token; see `vllm_reader`."""

import os
from pathlib import Path
from typing import Any

from safetensors.torch import save_file
from vllm.distributed.kv_transfer.kv_connector.v1 import example_hidden_states_connector as example


class LastToken(example.ExampleHiddenStatesConnector):  # type: ignore[misc]
    """vLLM's example of a connector writes the states of all tokens: 500 times as much, and needs pinned memory."""

    def _submit_async_write(self, pending: Any) -> None:
        """Write [layer, d_model] of the last prompt token; the file's lock, which the reader waits for, is let go."""
        if not self._is_tp_rank_zero:
            return
        last = len(pending.token_ids) - 1
        block = pending.block_ids[last // self._block_size]
        hidden = self._kv_cache[block, :, last % self._block_size].contiguous().cpu()
        Path(pending.filename).parent.mkdir(parents=True, exist_ok=True)
        lock = self._lock_fds.pop(pending.req_id, None)
        try:
            save_file({"hidden_states": hidden}, pending.filename)
        finally:
            if lock is not None:
                os.close(lock)
        self._req_copy_events[pending.req_id] = _Done()


class _Done:
    """Stands where the example keeps the event of a copy that goes on beside the work."""

    def query(self) -> bool:
        return True
