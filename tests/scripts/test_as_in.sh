# "As in X" says which X, and what compared them: where a page says that something is as in, or as
# done by, another program, a paragraph of the page names that program's version and a test. What
# --help says of a command names the version.
fail() { echo "$1" >&2; exit 1; }
unnamed() { # FOLDER PAGE…: what is said of programs without version and test
    python3 - "$@" <<'P'
import os, re, sys

NAMES = {"TRL": "TRL", "transformers": "transformers", "the Trainer": "transformers",
         "the Hugging Face Trainer": "transformers", "PEFT": "PEFT", "DeepSpeed": "DeepSpeed",
         "axolotl": "axolotl", "LLaMA-Factory": "LLaMA-Factory", "PyTorch": "PyTorch",
         "torch": "PyTorch", "bitsandbytes": "bitsandbytes", "llama.cpp": "llama-cpp-python"}
SAID = re.compile(r"(?<!close )\b[Aa]s (?:in |by |under )?(%s)(?:'s?)?(?=[\s,.;:)|\"])" % "|".join(map(re.escape, NAMES)))


def named(paragraph, name):
    there = re.search(re.escape(name) + r"(?:'s?)? \d+(?:\.\d+)*", paragraph)
    tests = re.findall(r"\btests/[\w/.]+\w", paragraph)
    return there and any(os.path.exists(os.path.join(sys.argv[1], t)) for t in tests)


for page in sys.argv[2:]:
    with open(page, encoding="utf-8") as file:
        text = file.read()
    if page.endswith(".c"):
        for m in SAID.finditer(re.sub(r'"\s*"', "", text)):
            if not re.match(r"\s\d", m.string[m.end():]):
                print(f"{page}: \"{m.group(0)}\" names no version")
        continue
    paragraphs = [re.sub(r"\s+", " ", p) for p in re.split(r"\n\s*\n", text)]
    for p in paragraphs:
        for m in SAID.finditer(p):
            name = NAMES[m.group(1)]
            if not any(named(q, name) for q in paragraphs):
                print(f"{page}: \"…{p[max(0, m.start() - 40):m.end() + 20]}…\": no paragraph names "
                      f"the version of {name} and a test (tests/…)")
P
}
command -v python3 >/dev/null || { echo "skipped: no python3"; exit 77; }

# The test itself.
printf 'It is as in TRL.\n' >bare.md
printf 'It is as\nin TRL 1.16 (`tests/scripts/test_as_in.sh`). As in TRL, too.\n' >good.md
printf 'It is as in TRL 1.16 (`tests/none.c`).\n' >gone.md
printf '"made as "\n"in TRL.", "as in TRL 1.16"\n' >help.c
[ "$(unnamed "$SOURCE" bare.md good.md gone.md help.c | wc -l)" = 3 ] ||
    fail "the test: $(unnamed "$SOURCE" bare.md good.md gone.md help.c)"

cd "$SOURCE" || exit 1
# docs/errors.md quotes messages: what they say is told by the pages of their features.
found=$(unnamed . README.md $(ls docs/*.md | grep -vx docs/errors.md) src/cli/cmd_*.c)
[ -z "$found" ] || fail "$found"
