"""What may run in `safe` mode while there is no `permissions/default.json`: our own list, in the app's format.

Every pattern names its program and ends with a whole word. What a program must not be told is in `programs.py`, so a
line here need not know its options.
"""

from __future__ import annotations

from collections.abc import Iterator

from craftd.model.records import Record

VERSION = "2026-03-07"
"""Of the file the app ships (0.11.1): it adds its own entries only to an older one."""

_GROUPS: tuple[tuple[str, str], ...] = (
    ("looks at folders", "ls tree eza exa du df stat file readlink realpath basename dirname pwd cd"),
    ("reads files", "cat bat head tail less more nl tac strings od xxd hexdump wc zcat bzcat xzcat"),
    ("finds files", "find fd fdfind locate"),
    ("finds text", "grep egrep fgrep rg zgrep look"),
    ("compares", "diff cmp comm sdiff"),
    ("sums", "md5sum sha1sum sha224sum sha256sum sha384sum sha512sum cksum b2sum shasum sum"),
    ("reshapes text", "sort uniq cut tr column fold fmt paste join rev expand unexpand shuf iconv jq yq sed awk gawk"),
    ("prints", "echo printf seq true false expr numfmt date cal"),
    ("says where a program is", "which whereis type"),
    ("asks the system", "uname hostname uptime whoami id groups who w users nproc lscpu lsblk lsusb lspci free arch"),
    ("lists processes", "ps pgrep pstree lsof"),
    ("asks the network", "ifconfig ip ss netstat dig nslookup host"),
)

_GIT = (
    "status log diff show blame annotate branch tag remote stash reflog describe shortlog rev-parse rev-list ls-files "
    "ls-tree ls-remote cat-file name-rev merge-base for-each-ref show-ref count-objects check-ignore check-attr grep "
    "config worktree submodule whatchanged cherry range-diff diff-tree var version"
)

_VERBS: tuple[tuple[str, str, str], ...] = (
    ("npm", "ls list view info show outdated audit explain why search root prefix", "asks about packages"),
    ("pnpm", "ls list outdated audit why root", "asks about packages"),
    ("pip3?", "list show freeze check index", "asks about packages"),
    ("cargo", "search version", "asks about packages"),
    ("go", "list version env doc", "asks about packages"),
    ("gem", "list info search", "asks about packages"),
    ("brew", "list info search outdated deps leaves config doctor", "asks about packages"),
    ("apt", "list show search policy", "asks about packages"),
    ("dpkg", "-l -L -s --list --listfiles --status", "asks about packages"),
    ("docker", "ps images version info inspect logs top stats port history", "looks at containers"),
    ("kubectl", "get describe logs version explain top api-resources cluster-info", "looks at a cluster"),
    ("gh (?:pr|issue|run|release|repo|workflow)", "view list status diff checks", "looks at GitHub"),
    ("gh", "status search", "looks at GitHub"),
    ("systemctl", "status list-units list-timers is-active is-enabled show cat", "looks at services"),
    ("tar", "-tf -tvf -tzf -tjf -tJf tf tvf tzf --list", "lists an archive"),
    ("unzip", "-l -v -Z", "lists an archive"),
    ("command", "-v -V", "says where a program is"),
    ("(?:node|npm|pnpm|python3?|ruby|perl|php|java|rustc|cargo|gcc|clang|make|cmake)", "--version", "says which"),
)


_MCP = "search list get read info describe show view find query count exists status inspect fetch"


def _bash() -> Iterator[Record]:
    for comment, programs in _GROUPS:
        for program in programs.split():
            yield {"pattern": rf"^{program}(?:\s|$)", "comment": comment}
    yield {
        "pattern": rf"^git(?:\s+--no-pager)?\s+(?:{'|'.join(_GIT.split())})(?:\s|$)",
        "comment": "reads a repository",
    }
    for program, verbs, comment in _VERBS:
        words = "|".join(verbs.split())
        yield {"pattern": rf"^{program.replace(' ', chr(92) + 's+')}\s+(?:{words})(?:\s|$)", "comment": comment}


DEFAULTS: Record = {
    "version": VERSION,
    "allowedBashPatterns": list(_bash()),
    "allowedMcpPatterns": [{"pattern": word, "comment": "a name with this word only reads"} for word in _MCP.split()],
    "allowedApiEndpoints": [],
    "allowedWritePaths": [],
    "blockedCommandHints": [
        {
            "command": "sed",
            "reason": "only scripts that print, delete or replace in the stream are known to be harmless",
            "tryInstead": ["sed -n '1,20p' FILE", "the Read tool"],
        },
        {
            "command": "awk",
            "reason": "a program that writes or starts others is more than reading; > and | count, also in comparisons",
            "tryInstead": ["cut -d, -f2 FILE", "rg PATTERN FILE"],
        },
        {
            "command": "find",
            "reason": "what is done with the files found is not reading",
            "tryInstead": ["find . -name '*.py'", "rg PATTERN"],
        },
        {
            "command": "git",
            "reason": "the first word must be a way of reading; options before it can start programs",
            "tryInstead": ["git status", "git log --oneline"],
        },
        {
            "command": "xargs",
            "reason": "it starts other programs",
            "tryInstead": ["rg PATTERN", "find . -name '*.py'"],
        },
        {
            "command": "curl",
            "reason": "requests may change things elsewhere",
            "tryInstead": ["the WebFetch tool"],
        },
        {
            "command": "tee",
            "reason": "it writes files",
            "tryInstead": ["write into the session's data folder with the Write tool"],
        },
    ],
}
