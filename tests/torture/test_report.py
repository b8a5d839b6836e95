"""What torture has done is added up in a file."""

import json
from pathlib import Path

from torture.core import Report, Step, Steps, run
from torture.report import Total, add_to_file


def done(kills: int, problem: str | None = None) -> Report:
    report = Report(seconds=2.0)
    report.add(Step("kill 1", {"kills": kills}, problem))
    return report


def test_runs_add_up_and_what_was_wrong_stays_with_how_to_repeat_it(tmp_path: Path) -> None:
    path = tmp_path / "new" / "torture.json"
    for place, seed, report in (
        ("disk", 7, done(3)),
        ("s3", 8, done(4, "rows were lost")),
        ("s3", 9, done(5)),
    ):
        new = Total()
        new.add(place, "kills", seed, report)
        total = add_to_file(new, path)

    assert total.everywhere() == {"kills": 12}
    assert total.counts["s3"] == {"kills": 9}
    (kept,) = json.loads(path.read_text())["violations"]
    assert kept["problem"] == "rows were lost"
    assert kept["again"] == "make torture SEED=8 PLACE=s3 PARTS=kills"
    assert add_to_file(Total(), path) == total


def test_a_part_that_fails_is_reported_with_what_it_had_done() -> None:
    def failing() -> Steps:
        yield Step("kill 1", {"kills": 3})
        raise ValueError("no more")

    report = run(failing())

    assert report.counts == {"kills": 3}
    assert "no more" in str(report.violations[0].problem)
