"""The loop of a worker: JSON requests come in, one a line, and each gets its answer."""

import gc
import json
import os
import sys
import traceback
from typing import Any


def answer_requests(worker: Any) -> None:
    """Do what the requests say, until there are no more."""
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)  # what libraries print must not look like answers
    for line in sys.stdin:
        request = json.loads(line)
        gc.collect()
        try:
            answer = getattr(worker, request["operation"])(request)
        except BaseException:  # noqa: BLE001  Rust panics are no Exception; the driver gets them all
            answer = {"error": traceback.format_exc()}
        answers.write(json.dumps(answer) + "\n")
        answers.flush()
