# in check
# Pages are wrapped at 100 columns; what cannot be wrapped may be wider: tables, code, pictures, a
# single word or link, and what programs wrote between markers. docs/config.md has no tables: what a
# key does is text.
fail() { echo "$1" >&2; exit 1; }
cd "$SOURCE" || exit 1
wide() { # PAGE…: lines of text that are too wide, with their page
    python3 - "$@" <<'P'
import re, sys
for page in sys.argv[1:]:
    code = made = False
    whole = ("    ", "![") if page.endswith("config.md") else ("|", "    ", "![")
    for number, line in enumerate(open(page, encoding="utf-8").read().split("\n"), 1):
        if line.startswith("```"):
            code = not code
        made = made and not re.match(r"<!-- \S+: end", line)
        if not (code or made or len(line) <= 100 or line.startswith(whole)
                or " " not in line.strip().lstrip("- ")):
            print(f"{page}:{number}: {len(line)} columns")
        made = made or bool(re.match(r"<!-- \S+: begin", line))
P
}
command -v python3 >/dev/null || { echo "skipped: no python3"; exit 77; }

# The test itself: text that is too wide is found, the rest is not.
{
    printf '%0101d\n| %0101d |\n    %0101d\n' 0 0 0
    printf '<!-- x: begin (y) -->\na %0101d\n<!-- x: end -->\nb %0101d\n' 0 0
} >"$OLDPWD/page.md"
[ "$(wide "$OLDPWD/page.md" | grep -c columns)" = 1 ] || fail "the test: $(wide "$OLDPWD/page.md")"
printf '| a %0101d |\n' 0 >"$OLDPWD/config.md"
[ "$(wide "$OLDPWD/config.md" | grep -c columns)" = 1 ] || fail "the test: a table in config.md"

found=$(wide README.md CONTRIBUTING.md docs/*.md bench/NOTES.md)
[ -z "$found" ] || fail "$found"
