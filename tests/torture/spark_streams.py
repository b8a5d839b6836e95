"""Spark's streams between our tables: their processes are killed, and the queries start again.

Most kills are of the Python process that writes or commits a batch, after which the query is
started again in the same Spark session. Some are of the driver with all of Spark.
"""

import os
import tempfile
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from random import Random

from places import here
from torture.core import Step, Steps, chance_of

BATCHES = 60  # more than there is time for
AT_LEAST_S = 40  # of time, for Spark to start and get somewhere
LAST_S = 20  # for it to stop or be killed, and for the rows to be compared


def spark_streams(seed: int, seconds: float = 60) -> Steps:
    """Streams for so many seconds."""
    end = time.monotonic() + seconds
    for number in range(1_000_000):
        left = end - time.monotonic()
        if number and left < AT_LEAST_S:
            return
        yield _flow(seed, number, left - LAST_S)


def _flow(seed: int, number: int, seconds: float) -> Step:
    from spark.killed_flows import prepare  # noqa: PLC0415 - PySpark is large, and not needed else

    end = time.monotonic() + seconds
    with tempfile.TemporaryDirectory() as home, _reaching_store():
        folder = Path(home)
        plan = [*_plan(chance_of(seed, "flow", number))]
        is_on_s3 = here().name == "s3"
        warehouses = f"{here().root}/{uuid.uuid4()}" if is_on_s3 else home
        flows = prepare(folder, BATCHES, plan, warehouses)
        problem, drivers, rows = None, 0, 0
        try:
            drivers = flows.run(end - time.monotonic())
            rows = flows.check()
        except Exception as error:  # noqa: BLE001 - every error is reported
            problem = f"{type(error).__name__}: {str(error)[-3000:]}"
        counts = {
            "kills": len(plan) - flows.planned,
            "restarts of Spark's streams": max(0, flows.starts - len(flows.sinks)),
            "of them with all of Spark": drivers * len(flows.sinks),
            "rows compared": rows,
        }
    return Step(f"flow {number}", counts, problem)


def _plan(chance: Random) -> Iterator[object]:
    from spark.drivers.faulty_sink import Kill  # noqa: PLC0415
    from spark.killed_flows import MOMENTS, SINKS  # noqa: PLC0415

    for batch in range(BATCHES):
        for sink in SINKS:
            # The first batches are all there is if a machine is slow.
            if chance.random() < 0.8:
                victim = "driver" if chance.random() < 0.02 else "worker"
                yield Kill(sink, batch, chance.choice(MOMENTS), victim)


@contextmanager
def _reaching_store() -> Iterator[None]:
    """Inside the context the environment says how to reach the store, here and in processes."""
    names = {
        "s3.endpoint": "AWS_ENDPOINT_URL",
        "s3.access-key": "AWS_ACCESS_KEY_ID",
        "s3.secret-key": "AWS_SECRET_ACCESS_KEY",
        "s3.region": "AWS_REGION",
    }
    before = dict(os.environ)
    os.environ.update({names[key]: value for key, value in here().options.items() if key in names})
    try:
        yield
    finally:
        os.environ.clear()
        os.environ.update(before)
