# shellcheck shell=bash
# Topic of compare-bits.sh: what is refused: exit codes as bits, the lines as messages; and what runs
# that succeed say. A difference of lines alone is listed as "message differs".
# Each folder of a run has a file `bad` with what the row of the table gives.
refused() { # CONTENT COMMAND
    # shellcheck disable=SC2059 # newlines are written as \n
    printf "$1" >bad
    says bash -c "sifr() { \"$sifr\" \"\$@\"; }; t() { sifr train --model untied --output o --threads 1 \"\$@\"; }; $2"
    find . -maxdepth 1 -type d -name 'o*' # what a refused run leaves
}
while IFS='|' read -r content command; do
    compare "$command${content:+, of $content}" refused "$content" "$command"
done <"$parts/refused.txt"
