# in check
# docs/errors.md has each message of src/: it is what scripts/errors_page.py makes of the sources.
fail() { echo "$1" >&2; exit 1; }
cd "$SOURCE" || exit 1
work=${TMPDIR:-/tmp}
made=$(mktemp -d "$work/errors.XXXXXX") || exit 1
trap 'rm -rf "$made"' EXIT
python3 scripts/errors_page.py >"$made/errors.md" || fail "errors_page.py"
diff docs/errors.md "$made/errors.md" || fail "docs/errors.md is not that of src/: make docs"

# The test itself: messages in each form that the sources have, which no page holds.
mkdir -p "$made/src/data"
cat >"$made/src/data/planted.c" <<'C'
static sifr_status planted_fail(row *r, const char *format, ...) SIFR_PRINTF(2, 3);
static const row table[] = {{.name = "x", .refused = "a reason that is "
                                                     "planted here"}};
/* base_fail(error, SIFR_USAGE, "a comment is no message") */
sifr_status f(void) {
    base_log(log, SIFR_LOG_INFO, "planted: %" PRId64 " of %s files, 100%%", n, "not this one here");
    return ok ? base_fail(error, SIFR_USAGE, many ? "planted as \"%.40s\" of many" : "planted as one of few",
                          "neither this one here")
              : planted_fail(r, "planted for a "
                                "row's %*d values; leave it out", 3, 4);
}
REFUSE("key", "a planted word of why not")
C
python3 scripts/errors_page.py "$made/src" | sed -n '/^## /,$p' | grep '^- ' | sort >"$made/found"
sort >"$made/wanted" <<'W'
- `a planted word of why not`
- `a reason that is planted here`
- `planted as "…" of many`
- `planted as one of few`
- `planted for a row's … values; leave it out`
- `planted: … of … files, 100%`
W
diff "$made/wanted" "$made/found" || fail "the test: not these messages are found"
