"""Writes on the word into one session and prints what its mirror holds in the end."""

import asyncio
import json
import sys

from craftd.client import Mirror, connect


async def main(session: str, own: int, everybody: int) -> None:
    async with connect(name="script", workspaces=["notes"]) as client, Mirror(client, "notes") as mirror:
        await mirror.follow(session)
        changes = mirror.changes()
        print("ready", flush=True)
        while mirror.items("sessions")[session]["value"]["name"] != "Go":
            await anext(changes)
        for n in range(own):
            message = {"id": f"python-{n}", "type": "user", "content": f"python {n}"}
            await client.messages.append(session=session, messages=[message])
        while len(mirror.messages(session)) < everybody:
            await anext(changes)
        print(json.dumps([message["content"] for message in mirror.messages(session)]))


asyncio.run(main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3])))
