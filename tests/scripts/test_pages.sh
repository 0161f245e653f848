# not under sanitizers
# Manual pages and the completion of shells, made from the program's table of options: they have the
# commands and options of every --help, and no others; man warns of nothing; bash, and zsh and fish
# where they are installed, complete from what was made.
fail() { echo "$1" >&2; exit 1; }
pages=$BUILD/pages
[ -s "$pages/man1/sifr.1" ] || fail "no pages in $pages"

# Commands and, by --help, their options: "COMMAND OPTION" a line.
names() { sed '/^Options:/,$d' "$1" | sed -n 's/^  \([a-z]\+\) .*/\1/p'; }
"$SIFR" --help >help
for command in $(names help); do
    "$SIFR" "$command" --help >help-"$command"
    echo "$command"
    ! grep -q '^Usage: sifr [a-z]* COMMAND' help-"$command" || names help-"$command" | sed "s/^/$command /"
done >commands
while read -r command inner; do
    [ -z "$inner" ] || "$SIFR" "$command" "$inner" --help >help-"$command-$inner"
    sed -n "s/^  --\([a-z0-9-]*\).*/$command${inner:+-$inner} \1/p" "help-$command${inner:+-$inner}"
done <commands | LC_ALL=C sort >want
[ "$(wc -l <want)" -ge 250 ] || fail "only $(wc -l <want) options"
same() { # WHAT: ./got has what ./want has
    # That of a command which only has others below it lists no --help.
    LC_ALL=C sort -u got | grep -vE '^(bench|data|log|tokenizer) help$' >have
    cmp -s want have || fail "$1 differs from --help: $(diff want have | grep '^[<>]' | head -n 5)"
}

for man in "$pages"/man1/sifr-*.1; do
    name=${man##*/sifr-}
    sed -n "s/\\\\-/-/g; s/^\\\\fB--\([a-z0-9-]*\)\\\\fR.*/${name%.1} \1/p" "$man"
done >got
same "the manual pages"
(cd "$pages/man1" && ls) | sed 's/^sifr-//; s/\.1$//' | grep -vx sifr | sort >got
sed 's/ /-/' commands | sort | cmp - got || fail "other manual pages: $(cat got)"
. "$pages/bash/sifr" 2>/dev/null || fail "bash does not read its completion"
while read -r command; do
    options=
    _sifr_table "$command"
    for option in $options; do
        option=${option%%=*}
        echo "${command// /-} ${option#--}"
    done
done <commands >got
same "the completion of bash"
awk '/^_sifr_[a-z_]*\(\)/ { at = $1; sub(/^_sifr_/, "", at); sub(/\(\)$/, "", at); gsub(/_/, "-", at) }
    /^}/ { at = "" }
    at && match($0, /'\''\*?--[a-z0-9-]+(=-?)?\[/) {
        option = substr($0, RSTART, RLENGTH)
        gsub(/^.*--|=?-?\[$/, "", option)
        print at, option
    }' "$pages/zsh/_sifr" >got
same "the completion of zsh"
sed -n "s/^complete -c sifr -n '__sifr_[ai][tn] \([a-z ]*\)' -l \([a-z0-9-]*\) .*/\1 \2/p" "$pages/fish/sifr.fish" |
    sed 's/^\([a-z]*\) \([a-z]* [a-z0-9-]*\)$/\1-\2/' >got
same "the completion of fish"

# The program's own page names all commands, and its options.
for word in $(sed -n 's/^  \(--[a-z]*\) .*/\1/p' help); do
    grep -qF "\\fB${word//-/\\-}\\fR" "$pages/man1/sifr.1" || fail "sifr.1 lacks $word"
done
for command in $(names help); do
    grep -qF "sifr\\-$command (1)" "$pages/man1/sifr.1" || fail "sifr.1 lacks $command"
done
export LC_ALL=C.UTF-8 MANWIDTH=80
if command -v man >/dev/null; then
    for man in "$pages"/man1/*; do
        man --warnings -E UTF-8 -l -Tutf8 -Z "$man" >/dev/null 2>warnings
        [ ! -s warnings ] || fail "$man: $(cat warnings)"
    done
    man -l "$pages/man1/sifr-tokenizer-train.1" | tr -s ' ' >text
    grep -q -- '--vocab-size N --data PATH... --output DIR' text || fail "the synopsis: $(head -n 20 text)"
    grep -q "sifr tokenizer train --vocab-size 4096" text || fail "no example: $(cat text)"
else
    echo "skipped: no man here"
fi
if command -v mandoc >/dev/null; then
    mandoc -T lint -W warning "$pages"/man1/* >warnings || fail "mandoc: $(head warnings)"
else
    echo "skipped: no mandoc here"
fi

# bash, with the words as it cuts them.
mkdir -p here/folder bin
touch here/file.json
bash_gives() { # WANT WORD…: the last one is being written
    local want=$1
    shift
    got=$(cd here && bash --norc -c '. "$1"; shift; COMP_WORDS=("$@") COMP_CWORD=$(($# - 1)); _sifr
        echo ${COMPREPLY[@]}' complete "$pages/bash/sifr" "$@")
    [ "$got" = "$want" ] || fail "bash completes '$*' as '$got', not as '$want'"
}
bash_gives 'tokenizer tokenize' sifr tok
bash_gives 'train encode decode' sifr tokenizer ''
bash_gives '--vocab-size' sifr tokenizer train --voc
bash_gives 'file.json' sifr train --config fi
bash_gives 'folder' sifr train --model ''
bash_gives '' sifr train --max-steps ''
bash_gives 'bf16' sifr generate --precision = b
bash_gives 'fp32 bf16 fp16' sifr generate --precision =
bash_gives 'all' sifr train --dry-run =
bash_gives 'file.json' sifr train --data a b fi
bash_gives '--json --help' sifr doctor ''
bash_gives 'file.json' sifr inspect fi
# As a user has it: what is typed, with tabs.
ln -s "$SIFR" bin/sifr
until_it_says() { # WORD FILE, within ten seconds
    for _ in $(seq 200); do
        ! grep -q "$1" "$2" || return 0
        sleep 0.05
    done
}
if command -v script >/dev/null; then
    : >out
    {
        until_it_says '[#$%]' out
        echo "PATH=$PWD/bin:\$PATH; . '$pages/bash/sifr'"
        printf 'sifr unme\t--he\t\n'
        until_it_says 'Usage: sifr' out
        echo exit
    } | script -qec 'bash --norc --noprofile -i' /dev/null >out 2>&1 || fail "$(cat out)"
    grep -q 'Usage: sifr unmerge' out || fail "typed with tabs: $(cat out)"
fi
if command -v zsh >/dev/null && command -v script >/dev/null; then
    : >out
    {
        until_it_says '[#$%]' out
        echo "PATH=$PWD/bin:\$PATH; fpath=($pages/zsh \$fpath); autoload -Uz compinit; compinit -u -D; echo made''it"
        until_it_says 'madeit' out
        printf 'sifr unme\t--he\t\n'
        until_it_says 'Usage: sifr' out
        echo exit
    } | script -qec 'zsh -f -i' /dev/null >out 2>&1 || fail "$(cat out)"
    grep -q 'Usage: sifr unmerge' out || fail "zsh, typed with tabs: $(cat out)"
else
    echo "skipped: no zsh here"
fi
if command -v fish >/dev/null; then
    fish_gives() { # WANT LINE
        got=$(HOME=$PWD fish --no-config -c 'source $argv[1]; cd here; complete -C $argv[2]' "$pages/fish/sifr.fish" "$2" |
            cut -f 1 | sort | paste -sd ' ')
        [ "$got" = "$1" ] || fail "fish completes '$2' as '$got', not as '$1'"
    }
    fish_gives 'tokenize tokenizer' 'sifr tok'
    fish_gives 'decode encode train' 'sifr tokenizer '
    fish_gives '--vocab-size' 'sifr tokenizer train --voc'
    fish_gives 'bf16 fp16 fp32' 'sifr generate --precision '
    fish_gives 'file.json' 'sifr train --config fi'
    fish_gives 'folder/' 'sifr train --model '
else
    echo "skipped: no fish here"
fi
echo "$(wc -l <want) options of $(wc -l <commands) commands"
