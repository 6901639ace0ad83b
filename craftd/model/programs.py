"""What programs that only read can be told to do besides: write a file, start another program, change a setting.

Rules name programs by a pattern on the beginning of a command; these lists look at the rest of it, whatever the rules
say. They can only refuse. GNU's abbreviations of long options and clusters of short ones are seen through; a word that
begins with a wildcard may become any option, so it counts as one.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Final

from attrs import frozen

from craftd.model.shell import Simple, Word


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


RUN_OTHERS: Final = _words(
    """sudo doas su pkexec runuser run0 env xargs parallel nohup nice ionice chrt taskset setsid stdbuf timeout time
    builtin exec eval source . alias unalias trap set shopt export declare typeset local readonly unset hash enable bind
    complete ssh watch entr script expect strace ltrace gdb unshare chroot nsenter flock systemd-run at batch crontab
    busybox toybox fakeroot unbuffer rlwrap caffeinate open xdg-open pushd popd suspend logout coproc let mapfile
    readarray read getopts wait fg bg disown kill"""
)
"""Programs and builtins that run what they are given, or change what later commands mean: never only reading."""

SHELLS: Final = _words("sh bash dash zsh ksh mksh fish csh tcsh rbash ash elvish nu pwsh powershell cmd")
INTERPRETERS: Final = re.compile(
    r"(?:python|pypy|perl|ruby|node|nodejs|deno|bun|php|lua|luajit|tclsh|wish|guile|Rscript|R|osascript|julia|ipython)"
    r"[0-9.]*"
)

Look = Callable[[tuple[Word, ...]], str | None]
"""Arguments in, what is dangerous among them out."""


def objection(command: Simple) -> str | None:
    """Why *command* is more than reading, for people; None = nothing is known against it."""
    name = command.name.rpartition("/")[2]
    if name in RUN_OTHERS:
        return f"{name} runs other commands or changes what they mean"
    if name == "command" and not _is_lookup(command.arguments):
        return "command runs what it is given"
    if name in SHELLS or INTERPRETERS.fullmatch(name) is not None:
        return _runs_given_text(name, command.arguments)
    look = _PROGRAMS.get(name)
    if look is None:
        return None
    for word in command.arguments:
        if word.text == "--" and look is not _FIND:
            break
        if word.wild and word.text[0] in "*?[-":
            return f"{word.text} may become an option of {name}: write ./{word.text}"
    found = look(command.arguments)
    return None if found is None else f"{name} with {found} does more than read"


def _is_lookup(arguments: tuple[Word, ...]) -> bool:
    return bool(arguments) and arguments[0].text in ("-v", "-V")


def _runs_given_text(name: str, arguments: tuple[Word, ...]) -> str | None:
    """An interpreter may run a file that a rule names, and nothing that is given as text or comes through a pipe."""
    if [word.text for word in arguments] in (["--version"], ["-V"], ["--help"]):
        return None
    if not arguments or arguments[0].text.startswith(("-", "+")):
        return f"{name} runs text that it is given"
    return None


@frozen
class Options:
    """Looks for options. words: denied as they stand; long: `--name`, also abbreviated or with a value; short: letters
    in clusters; valued: letters with a value, in the same word (`-k1o`) or the next; positionals: how many arguments
    that are neither options nor their values there may be."""

    words: frozenset[str] = frozenset()
    long: tuple[str, ...] = ()
    short: str = ""
    valued: str = ""
    positionals: int | None = None

    def __call__(self, arguments: tuple[Word, ...]) -> str | None:
        others, options, value = 0, True, False
        for word in arguments:
            text, is_value = word.text, value
            value = options and not text.startswith("--") and text[:1] == "-" and text[-1:] in self.valued
            if text in self.words:
                return text
            if options and text == "--":
                options = False
            elif options and text.startswith("--"):
                given = text.partition("=")[0]
                if any(name.startswith(given) or given == name for name in self.long):
                    return text
            elif options and text.startswith("-") and len(text) > 1:
                if (letter := self._letter(text[1:])) is not None:
                    return f"-{letter}"
            elif not is_value:
                others += 1
        if self.positionals is not None and others > self.positionals:
            return f"more than {self.positionals} arguments"
        return None

    def _letter(self, cluster: str) -> str | None:
        for letter in cluster:
            if letter in self.short:
                return letter
            if letter in self.valued:
                return None
        return None


def _options(
    words: str = "", long: str = "", short: str = "", valued: str = "", positionals: int | None = None
) -> Look:
    return Options(_words(words), tuple(f"--{name}" for name in long.split()), short, valued, positionals)


# sed and awk: small languages of their own

_SED_ADDRESS = r"(?:[0-9]+(?:~[0-9]+)?|\$|/(?:[^/\\\n]|\\[^\n])*/I?)"
_SED_REPLACE = r"s([/|,#:@])(?:(?!\1)[^\\\n]|\\[^\n])*\1(?:(?!\1)[^\\\n]|\\[^\n])*\1[gpIi0-9]*"
_SED_ONE = re.compile(rf"\s*(?:{_SED_ADDRESS}(?:,\+?{_SED_ADDRESS})?)?\s*!?\s*(?:[pdqnN=]|{_SED_REPLACE})\s*")
_SED_OPTIONS = _options(long="in-place file", short="if", valued="el")


def _sed(arguments: tuple[Word, ...]) -> str | None:
    """Only scripts of which every command prints, deletes or replaces in the stream."""
    if (found := _SED_OPTIONS(arguments)) is not None:
        return found
    scripts: list[str] = []
    rest = [word.text for word in arguments]
    plain: list[str] = []
    while rest:
        text = rest.pop(0)
        if text.startswith("--e"):
            scripts.append(text.partition("=")[2] if "=" in text else "".join(rest[:1]))
            rest = rest if "=" in text else rest[1:]
        elif text.startswith("-") and not text.startswith("--") and "e" in text:
            scripts.append(text.partition("e")[2] or "".join(rest[:1]))
            rest = rest if text.partition("e")[2] else rest[1:]
        elif not text.startswith("-"):
            plain.append(text)
    for script in scripts or plain[:1]:
        if any(one.strip() and _SED_ONE.fullmatch(one) is None for one in re.split(r"[;\n]", script)):
            return f"the script {script!r}"
    return None


_AWK_OPTIONS = _options(
    long="file exec include load dump-variables pretty-print profile debug source", short="fEilodpDe", valued="vF"
)


def _awk(arguments: tuple[Word, ...]) -> str | None:
    if (found := _AWK_OPTIONS(arguments)) is not None:
        return found
    separator = False
    for word in arguments:
        if not separator and not word.text.startswith("-F"):
            for sign in ("system", "getline", "|", ">", "@"):
                if sign in word.text:
                    return sign
        separator = word.text == "-F"
    return None


# git: the first word must say what it does, and that must be one of the ways that only read

_GIT_NEVER = (
    "--output",
    "--ext-diff",
    "--textconv",
    "--open-files-in-pager",
    "--upload-pack",
    "--exec",
    "--receive-pack",
)
_GIT_LISTS: Final[Mapping[str, tuple[frozenset[str], frozenset[str], bool]]] = {
    # subcommand: first words that only read, options that only read, whether there may be no word at all
    "stash": (frozenset({"list", "show"}), frozenset(), False),
    "remote": (frozenset({"show", "get-url"}), frozenset({"-v", "--verbose"}), True),
    "worktree": (frozenset({"list"}), frozenset(), False),
    "submodule": (frozenset({"status", "summary"}), frozenset(), True),
    "notes": (frozenset({"list", "show"}), frozenset(), True),
    "bisect": (frozenset({"log"}), frozenset(), False),
    "bundle": (frozenset({"verify", "list-heads"}), frozenset(), False),
    "config": (
        frozenset({"list", "get"}),
        frozenset({"--get", "--get-all", "--get-regexp", "--get-urlmatch", "--list", "-l"}),
        False,
    ),
}
_GIT_BRANCH = _words(
    """-a --all -r --remotes -v -vv --verbose -l --list --show-current --contains --no-contains --merged --no-merged
    --points-at --sort --format --color --no-color --column --no-column -i --ignore-case --abbrev --no-abbrev"""
)
_GIT_TAG = _words(
    """-l --list -n --contains --no-contains --merged --no-merged --points-at --sort --format --color --column
    --no-column -i --ignore-case"""
)


def _git(arguments: tuple[Word, ...]) -> str | None:
    while arguments and arguments[0].text in ("--no-pager", "--no-optional-locks"):
        arguments = arguments[1:]
    if not arguments or arguments[0].text.startswith("-"):
        return None if [word.text for word in arguments] in ([], ["--version"], ["--help"]) else arguments[0].text
    verb, rest = arguments[0].text, [word.text for word in arguments[1:]]
    for text in rest:
        given = text.partition("=")[0]
        if given.startswith("--") and len(given) > 2 and any(name.startswith(given) for name in _GIT_NEVER):
            return text
    if verb == "ls-remote" and any(re.match(r"-[^-]*u", text) for text in rest):
        return "-u"
    if verb == "grep" and any(re.match(r"-[^-]*O", text) for text in rest):
        return "-O"
    if verb in ("format-patch", "archive") or (verb == "diff" and "-o" in rest):
        return verb
    if verb == "reflog" and rest and rest[0] in ("expire", "delete", "drop", "write"):
        return f"{verb} {rest[0]}"
    if verb == "symbolic-ref" and (len([text for text in rest if not text.startswith("-")]) > 1 or "-d" in rest):
        return verb
    if verb in ("branch", "tag"):
        return _git_names(verb, rest)
    if verb in _GIT_LISTS:
        words, options, bare = _GIT_LISTS[verb]
        first = rest[0] if rest else None
        if first is None:
            return None if bare else verb
        if first in options:
            return None if verb != "remote" or len(rest) == 1 else verb
        return None if first in words else f"{verb} {first}"
    return None


def _git_names(verb: str, rest: list[str]) -> str | None:
    """branch and tag make what is named, unless an option says that names are to be listed."""
    allowed = _GIT_BRANCH if verb == "branch" else _GIT_TAG
    lists = False
    for text in rest:
        given = text.partition("=")[0]
        if text.startswith("-"):
            if given not in allowed and not re.fullmatch(r"-n[0-9]+", text):
                return f"{verb} {text}"
            lists = lists or given in ("-l", "--list") or "contains" in given or "merged" in given or "points" in given
        elif not lists:
            return f"{verb} {text}"
    return None


def _date(arguments: tuple[Word, ...]) -> str | None:
    """A word that is no format sets the clock."""
    if (found := _options(long="set", short="s", valued="dfrI")(arguments)) is not None:
        return found
    expected = False
    for word in arguments:
        if not (expected or word.text.startswith(("-", "+"))):
            return word.text
        expected = word.text in ("-d", "--date", "-f", "--file", "-r", "--reference")
    return None


def _gh(arguments: tuple[Word, ...]) -> str | None:
    words = [word.text for word in arguments]
    if any(text in ("-w", "--web") for text in words):
        return "--web"
    if words[:1] == ["api"]:
        return _options(long="method field raw-field input", short="XfF", valued="Hqtp")(arguments)
    return None


def _tar(arguments: tuple[Word, ...]) -> str | None:
    first = arguments[0].text if arguments else ""
    for word in arguments:
        if ":" in word.text:  # an archive on another machine
            return word.text
    if "t" not in first.lstrip("-") and first != "--list":
        return first or "nothing to do"
    return _options(
        long="to-command checkpoint-action use-compress-program rsh-command info-script new-volume-script delete "
        "create extract get update append concatenate catenate",
        short="xcruAIF",
        valued="f",
    )(tuple(Word(f"-{first}") if i == 0 and not first.startswith("-") else w for i, w in enumerate(arguments)))


def _ip(arguments: tuple[Word, ...]) -> str | None:
    """Its words may be abbreviated, so what is to be done must be spelt out."""
    words = [word.text for word in arguments if not word.text.startswith("-")]
    for word in arguments:
        if (
            word.text.lstrip("-").startswith("b")
            and word.text.startswith("-")
            and "batch".startswith(word.text.strip("-"))
        ):
            return word.text
    if len(words) > 1 and words[1] not in ("show", "list", "ls", "get", "help"):
        return words[1]
    return words[0] if words[:1] and words[0] in ("netns", "vrf") and len(words) > 2 else None


def _go(arguments: tuple[Word, ...]) -> str | None:
    return next(
        (
            word.text
            for word in arguments
            if re.fullmatch(
                r"--?(?:w|u|toolexec|vettool|exec|export|compiled|o|overlay|mod|modfile|fix)(?:=.*)?", word.text
            )
        ),
        None,
    )


def _less(arguments: tuple[Word, ...]) -> str | None:
    for word in arguments:
        if word.text.startswith("+"):
            return word.text
    return _options(long="log-file LOG-FILE lesskey-file lesskey-src lesskey-content tag", short="oOktT")(arguments)


_CURL = _options(
    long="output output-dir remote-name remote-name-all request data data-ascii data-binary data-raw data-urlencode "
    "form form-string upload-file json config cookie-jar dump-header trace trace-ascii stderr libcurl hsts alt-svc "
    "etag-save url-query next netrc-file quote post301 post302 mail-from telnet-option unix-socket engine",
    short="oOXdFTKcDQ",
    valued="AbeHmuxyYzwC",
)

_GREP = _options(long="filter pager save-config")  # of ugrep, which may be called grep
_FIND = _options(words="-exec -execdir -ok -okdir -delete -fprint -fprint0 -fprintf -fls")
_FD = _options(long="exec exec-batch", short="xX", valued="deEtcSo")
_SORT = _options(long="output compress-program files0-from", short="o", valued="kStT")

_PROGRAMS: Final[Mapping[str, Look]] = {
    "find": _FIND,
    "gfind": _FIND,
    "fd": _FD,
    "fdfind": _FD,
    "rg": _options(long="pre hostname-bin search-zip", short="z", valued="efgtTABCMmjrEd"),
    "sort": _SORT,
    "gsort": _SORT,
    "uniq": _options(valued="fsw", positionals=1),
    "tree": _options(words="--output", long="output", short="oR", valued="LPI"),
    "sed": _sed,
    "gsed": _sed,
    "awk": _awk,
    "gawk": _awk,
    "mawk": _awk,
    "nawk": _awk,
    "yq": _options(long="inplace in-place split-exp split-exp-file security-enable-system-operator", short="is"),
    "xxd": _options(short="r", valued="clgosR", positionals=1),
    "shuf": _options(long="output", short="o", valued="ni"),
    "iconv": _options(long="output", short="o", valued="ft"),
    "file": _options(long="compile magic-file", short="Cm", valued="efFP"),
    "sdiff": _options(long="output diff-program", short="o"),
    "diff": _options(long="output"),
    "less": _less,
    "more": _less,
    "bat": _options(words="cache", long="pager config-file generate-config-file", valued="lrHnm"),
    "man": _options(long="pager html gxditview preprocessor update", short="PHXpu", valued="SsML"),
    "date": _date,
    "hostname": _options(long="file boot", short="Fb", positionals=0),
    "ifconfig": _options(positionals=1),
    "ss": _options(long="kill diag", short="KD"),
    "ip": _ip,
    "route": _options(words="add del delete flush change"),
    "npm": _options(words="fix --fix set delete", long="fix"),
    "pnpm": _options(words="fix --fix set delete", long="fix"),
    "yarn": _options(words="fix --fix set delete", long="fix"),
    "gh": _gh,
    "git": _git,
    "grep": _GREP,
    "egrep": _GREP,
    "fgrep": _GREP,
    "tar": _tar,
    "kubectl": _options(long="kubeconfig output-directory"),
    "systemctl": _options(long="host machine root image", short="HM"),
    "apt": _options(long="option config-file", short="oc"),
    "go": _go,
    "curl": _CURL,
}
