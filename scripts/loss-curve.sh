#!/bin/sh
# Draws the loss of a run as text: loss-curve.sh METRICS.jsonl
# Reads the lines with "step" and "loss", as `sifr train` writes them; a column is the mean of the
# steps that fall into it.
set -eu
[ -r "$1" ] || { echo "loss-curve.sh: $1: cannot be read" >&2; exit 1; }
awk -v width=64 -v height=14 '
function field(name,    text) {
    if (!match($0, "\"" name "\": *[-+0-9.eE]+")) return ""
    text = substr($0, RSTART, RLENGTH)
    sub(/^[^:]*: */, "", text)
    return text
}
{
    step = field("step")
    loss = field("loss")
    if (step == "" || loss == "") next
    steps[++count] = step + 0
    losses[count] = loss + 0
    if (steps[count] > last) last = steps[count]
}
END {
    if (count == 0) {
        print "loss-curve.sh: no losses in the file" > "/dev/stderr"
        exit 1
    }
    first = steps[1]
    span = last > first ? last - first : 1
    for (i = 1; i <= count; i++) {
        column = int((steps[i] - first) / span * (width - 1) + 0.5)
        sum[column] += losses[i]
        number[column]++
    }
    low = 1e300
    high = -1e300
    for (column in sum) {
        mean[column] = sum[column] / number[column]
        if (mean[column] < low) low = mean[column]
        if (mean[column] > high) high = mean[column]
    }
    range = high > low ? high - low : 1
    for (column in mean)
        mark[column, int((mean[column] - low) / range * (height - 1) + 0.5)] = 1
    print "  loss"
    for (row = height - 1; row >= 0; row--) {
        line = ""
        for (column = 0; column < width; column++) line = line ((column, row) in mark ? "*" : " ")
        sub(/ +$/, "", line)
        printf "%6.2f |%s\n", low + range * row / (height - 1), line
    }
    rule = ""
    for (column = 0; column < width; column++) rule = rule "-"
    printf "       +%s\n        %-*d%*d step\n", rule, int(width / 2), first, width - int(width / 2), last
}' "$1"
