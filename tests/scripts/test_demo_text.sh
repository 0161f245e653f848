# The demo's text: whole, without the labels of its verses, and nothing in both halves.
fail() { echo "$1" >&2; exit 1; }
command -v bible >/dev/null || { echo "the package bible-kjv is not installed"; exit 77; }
"$SOURCE/scripts/demo-text.sh" text

[ "$(ls text/train | wc -l)" = 66 ] || fail "$(ls text/train | wc -l) books, not 66"
# 31,102 verses in 1,189 chapters; an empty line stands between two chapters of a book
verses=$(cat text/train/* text/held-out/* | grep -c .)
[ "$verses" = 31102 ] || fail "$verses verses, not 31102"
if grep -qE '^[0-9]?[A-Za-z]+[0-9]+:[0-9]+ ' text/*/*; then fail "a verse keeps its label"; fi
[ "$(head -n 1 text/train/Ge.txt)" = "In the beginning God created the heaven and the earth." ] ||
    fail "the first line is: $(head -n 1 text/train/Ge.txt)"
held=$(cat text/held-out/* | wc -c)
train=$(cat text/train/* | wc -c)
[ "$held" -gt 100000 ] && [ "$train" -gt 3500000 ] || fail "$train bytes to train on, $held held out"
# A long verse that is held out is nowhere in the other half.
grep -h '.\{200\}' text/held-out/* | head -n 40 >long
if grep -qxFf long text/train/*; then fail "a held-out verse is trained on"; fi
