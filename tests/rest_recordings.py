"""What Paimon's own clients sent to a server, and its answers."""

import json
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

Exchange = dict[str, Any]


@cache
def exchanges() -> tuple[Exchange, ...]:
    text = (Path(__file__).parent / "unit" / "rest" / "recorded" / "exchanges.jsonl").read_text(
        encoding="utf-8"
    )
    return tuple(map(json.loads, text.splitlines()))


def labelled(*labels: str) -> Iterator[Exchange]:
    return (each for each in exchanges() if each["label"] in labels)


def name_of(exchange: Exchange) -> str:
    return f"{exchange['client']}: {exchange['label']}"
