"""Names that craftd gives and accepts: sessions, messages, folders.

Random numbers and the day come in as arguments. `pick(n)` is a random integer from 0 to n - 1.
"""

from __future__ import annotations

import datetime
import re
from collections.abc import Callable, Container
from itertools import count

SESSION_ID = re.compile(r"[A-Za-z0-9_-]{1,120}")
"""The app's pattern, with a limit that leaves room for suffixes in a file name of 255 bytes. Use `fullmatch`."""

_PAIRS = 100
_SUFFIXES = range(2, 100)
_BASE36 = "0123456789abcdefghijklmnopqrstuvwxyz"


def is_session_id(text: object) -> bool:
    """Whether *text* can name a session folder: one path segment, never `.`, `..` or empty."""
    return isinstance(text, str) and SESSION_ID.fullmatch(text) is not None


def new_session_id(today: datetime.date, pick: Callable[[int], int], taken: Container[str]) -> str:
    """`YYMMDD-<adjective>-<noun>[-N]`, the app's form; *today* is the local day, *taken* the existing folders."""
    for _ in range(_PAIRS):
        base = f"{today:%y%m%d}-{ADJECTIVES[pick(len(ADJECTIVES))]}-{NOUNS[pick(len(NOUNS))]}"
        for name in (base, *(f"{base}-{number}" for number in _SUFFIXES)):
            if name not in taken:
                return name
    return next(name for _ in count() if (name := f"{base}-{pick(16**8):08x}") not in taken)


def new_message_id(now_ms: int, pick: Callable[[int], int]) -> str:
    """`msg-<ms>-<6 base 36 digits>`, the app's form."""
    return random_id("msg", now_ms, pick)


def random_id(kind: str, now_ms: int, pick: Callable[[int], int]) -> str:
    """`<kind>-<ms>-<6 base 36 digits>`."""
    return f"{kind}-{now_ms}-{''.join(_BASE36[pick(36)] for _ in range(6))}"


def choose_slug(name: str, taken: Container[str], fallback: str) -> str:
    """Free folder name for a record called *name*: ASCII, 50 characters plus suffix; *fallback* if nothing is left."""
    base = re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")[:50].rstrip("-") or fallback
    if base not in taken:
        return base
    return next(slug for number in count(2) if (slug := f"{base}-{number}") not in taken)


_ADJECTIVES = """
    able agile airy alert amber ample arctic azure balmy bold brave breezy brief bright brisk bronze calm candid
    clear clever coral cosy crisp curious dapper daring deft dewy eager early earnest easy elder fair fine fleet
    fond frank fresh frosty gentle gilded glad golden grand green hardy hazel hearty honest humble ivory jolly
    keen kind lively lofty loyal lucid lunar mellow merry mild misty mossy neat nimble noble oaken olive open
    opal patient placid plain polar prime proud quaint quick quiet rapid rosy royal rustic sandy serene sharp
    silent silver simple sleek smooth snowy snug sober solar solid spry steady still sturdy subtle sunny swift
    tidy tranquil true upbeat velvet vivid warm wise witty young zesty
"""
ADJECTIVES = tuple(_ADJECTIVES.split())
_NOUNS = """
    acorn alder anchor antler apple apricot arbor arch aspen atlas aurora badger bamboo barley basin bay beacon
    beaver beech bell birch bison bloom bluff bonfire boulder bramble breeze bridge brook butter cabin cactus canoe
    canopy canyon cape cedar cherry chestnut cinder citrus clay cliff cloud clover coast cobble comet compass condor
    copper cottage cove crane creek cricket crocus crown crystal cypress dahlia daisy dale dawn deer delta desert
    dolphin dove dune dusk eagle echo elk elm ember estuary falcon fawn fennel fern ferry field finch fir fjord flame
    flint flute forest fountain fox frost galaxy garden garnet gate geyser glacier glade glen granite grove gull
    hamlet harbor hare harp haven hawk hazelnut heath hedge heron hill hollow horizon ibis inlet iris iron island
    ivy jade jasmine jay juniper kestrel kite knoll lagoon lake lantern larch lark laurel lava leaf ledge lemon lily
    linden lotus lynx magnet mango maple marble marsh meadow melon mesa meteor mill mint moon moor moss mountain
    myrtle nebula nest nettle nutmeg oak oasis ocean orbit orchard orchid otter owl oyster palm panther path peach
    pear pebble pepper petal pine planet plateau plum pond poplar poppy prairie quail quarry quartz quill rain
    rapids raven reed reef ridge river robin rose saffron sage salmon sapphire sea seal shell shore sky slate
    sparrow spring spruce star stone storm stream summit sun swan tern thicket thistle thunder tide timber topaz
    trail tulip tundra valley violet walnut waterfall wave willow wind wolf wren yarrow zephyr
"""
NOUNS = tuple(_NOUNS.split())
