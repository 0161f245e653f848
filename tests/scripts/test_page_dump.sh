# label: short
# docs/plan-dump.md: every line of its dumps is what the program prints.
. "$SOURCE/tests/support/page.sh"
page plan-dump
