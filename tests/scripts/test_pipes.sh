# in check
# Under `set -o pipefail` a pipe fails when its reader ends first (SIGPIPE) and its writer was not
# done: now and then, on a busy machine. There no pipe ends in a command that may read a part only.
# timeout: 60
cd "$SOURCE" || exit 1
early() { grep -nHE '\|[^|]*\b(grep +(-[a-z]+ +)*-[a-zA-Z]*q|head)\b' "$@" | grep -v '^[^:]*:[0-9]*: *\(#\|printf\)'; }
ls scripts/*.sh bench/*.sh examples/*.sh .ci/run 2>/dev/null | xargs grep -lE '^set .*pipefail' >"$OLDPWD/scripts"
cd "$OLDPWD" || exit 1
[ "$(wc -l <scripts)" -ge 5 ] || { echo "only $(wc -l <scripts) scripts with pipefail found" >&2; exit 1; }
printf 'if ldd a | grep -q b; then\nb=$(c | head -n 1)\nd | grep -c e\n' >planted
[ "$(early planted | wc -l)" = 2 ] || { echo "the planted pipes are not found" >&2; exit 1; }
found=0
while read -r script; do
    ! early "$SOURCE/$script" || found=1
done <scripts
[ $found = 0 ] || { echo "a pipe whose reader may end first, under pipefail" >&2; exit 1; }
