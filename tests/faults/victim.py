"""A program to be killed: it changes one transcript without end and says so after every change.

Each line it says acknowledges one change: `+ id` appended, `= id content` changed, `- id` taken out, `name text`
line 1. Before a change the same with `? `.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from functools import partial
from pathlib import Path

from craftd.model.portable import dump_line
from craftd.model.records import Record
from craftd.store.transcript import Transcript
from tests.faults.transcripts import message


def main(say: Callable[..., None], path: Path, seed: int) -> None:
    def change(claims: list[str], do: Callable[[], None]) -> None:
        say(*(f"? {claim}" for claim in claims))
        do()
        say(*claims)

    chance = random.Random(seed)
    transcript = Transcript.load(path, str(path.parent))
    number = transcript.count
    say("ready")
    while True:
        what = chance.random()
        if what < 0.75 or transcript.count < 5:
            records = [
                message(f"{seed}-{number + at}", "x" * (100_000 if chance.random() < 0.1 else chance.randint(1, 2000)))
                for at in range(chance.choice((1, 1, 1, 5)))
            ]
            number += len(records)
            claims = [f"+ {record['id']}" for record in records]
            lines = [dump_line(record, transcript.directory) for record in records]
            change(claims, partial(transcript.append, lines, records))
        elif what < 0.85:
            name = f"name {chance.random()}"
            header = {**transcript.header, **transcript.counters.header_fields(), "name": name.split()[1]}
            if chance.random() < 0.5:
                change([name], partial(transcript.rewrite, header))
            else:
                change([name], partial(prepare_and_finish, transcript, header))
        else:
            position = max(0, len(transcript) - chance.randint(1, 8))
            segment = transcript.read(position, position + 1)[0]
            if segment.record is None:
                continue
            identity = segment.record["id"]
            if what < 0.95:
                changed = message(identity, f"{chance.random()}")
                line: bytes | None = dump_line(changed, transcript.directory)
                claim = f"= {identity} {changed['content']}"
            else:
                line, claim = None, f"- {identity}"
            counted = {**transcript.header, "messageCount": transcript.count - (line is None)}
            for follows in ("lastMessageRole", "lastFinalMessageId"):  # from messages: what is not said is not wrong
                counted.pop(follows, None)
            change([claim], partial(transcript.rewrite, counted, replaced={position: line}))


def prepare_and_finish(transcript: Transcript, header: Record) -> None:
    transcript.finish(transcript.prepare(header))
