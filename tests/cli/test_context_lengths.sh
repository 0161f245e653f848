# label: full; not under sanitizers (they take memory of their own)
# How long sequences may be on 1, 2 and 4 context ranks of one size, as the planner says: 1.8 and 3.2
# times as long as on one at least, always of a length that the ranks divide; and the limit is there, to
# 1 in 64, since what the program itself takes is not the same in each run. soak/test_soak_context.sh trains them.
. "$SOURCE/tests/support/ranks.sh"
tiny_model
. "$SOURCE/tests/support/long_context.sh"
one=$(longest 1) two=$(longest 2) four=$(longest 4)
at_least "one rank" "$one" 1 7000
at_least "two ranks" "$two" 1.8 "$one"
at_least "four ranks" "$four" 3.2 "$one"
[ $((two % 2)) = 0 ] && [ $((four % 4)) = 0 ] || fail "$two and $four are not divided"
fits() { # LENGTH
    "$SIFR" plan --config ds.json --model long --world-size 4 --threads 1 --device-memory $limit \
        --seq-length "$1" >out 2>err || fail "$1: $(cat err)"
    grep -q '^It fits' out
}
some=$((four / 256 * 4))
fits $((four - some)) || fail "$((four - some)) do not fit: $(cat out err)"
! fits $((four + some)) || fail "$((four + some)) fit: $(cat out)"
