# A function of a sourced script keeps its variables to itself: one that is not local, and that a script
# which calls it sets too, is named as a result, as $name, in the sourced script's comments. A
# variable of debian_root took the place of one of its caller, and the caller unpacked a file that
# was not there, once for each new Debian.
check() { # FOLDER: the clashes
    python3 - "$1" <<'END'
import pathlib, re, sys

root = pathlib.Path(sys.argv[1])
text = {f: f.read_text() for f in root.glob("**/*.sh") if f.parts[len(root.parts)] in ("scripts", "tests")}
SET = re.compile(r"(?:^|[;({]|\b(?:do|then|else)\b|&&|\|\|)\s*([a-z_][a-z_0-9]*)=|\bfor ([a-z_]\w*) in", re.M)


def names(code):
    return {a or b for a, b in SET.findall(code)}


def own(body):
    declared = " ".join(re.findall(r"\blocal ([^\n;]*)", body))
    return names(body) - set(re.findall(r"(?:^|\s)(\w+)", declared))


for sourced, code in text.items():
    if not code.startswith("# Sourced"):
        continue
    said = set(re.findall(r"\$(\w+)", "\n".join(re.findall(r"#.*", code))))
    for name, body in re.findall(r"^(\w+)\(\) \{(.*?)^\}", code, re.S | re.M):
        for caller, calls in text.items():
            if not re.search(r"^\s*\. .*" + re.escape(sourced.name), calls, re.M):
                continue
            if re.search(r"\b" + name + r"\b", calls):
                for both in sorted(own(body) & names(calls) - said):
                    print(f"{sourced.name}: {name}() sets ${both}, as does {caller.name}: make it local")
END
}
mkdir -p tree/scripts tree/tests
cat >tree/scripts/sourced.sh <<'END'
# Sourced: result in $answer.
ask() { # WHAT
    kept=$1
    answer=$kept
    local other=3
}
END
printf '. "$SOURCE/scripts/sourced.sh"\nkept=1 answer=2\nother=4\nask\n' >tree/tests/calls.sh
[ "$(check "$PWD/tree")" = 'sourced.sh: ask() sets $kept, as does calls.sh: make it local' ] ||
    { check "$PWD/tree"; echo "a clash is not found" >&2; exit 1; }
found=$(check "$SOURCE")
[ -z "$found" ] || { echo "$found" >&2; exit 1; }
