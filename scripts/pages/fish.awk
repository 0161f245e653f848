# Completion of fish, from what `sifr --help=table` prints (src/cli/option_table.h).

function quoted(text) {
    gsub(/\\/, "\\\\", text)
    gsub(/'/, "\\'", text)
    return "'" text "'"
}
function value(kind, argument,   words) {
    if (kind == "flag") return ""
    if (kind == "switch") return " -a " quoted("--" name "=" argument)
    if (argument ~ /^(DIR|FOLDER)$/) return " -x -a '(__fish_complete_directories)'"
    if (argument ~ /^(FILE|PATH)$/) return " -r -F"
    if (argument !~ /\|/) return " -x"
    words = argument
    gsub(/\|/, " ", words)
    return " -x -a " quoted(words)
}
BEGIN {
    FS = "\t"
    print "# Completion of sifr for fish, made from its own table of options (scripts/make-pages.sh)."
    print "function __sifr_command # the words that are no options"
    print "    string match -v -- '-*' (commandline -opc)[2..-1]"
    print "end"
    print "function __sifr_at # COMMAND: no command below it is there yet"
    print "    test \"$(__sifr_command | string collect)\" = \"$(string join \\n -- $argv | string collect)\""
    print "end"
    print "function __sifr_in # COMMAND: this one, or words behind it"
    print "    set -l words (__sifr_command)"
    print "    test (count $words) -ge (count $argv); and test \"$words[1..\"(count $argv)\"]\" = \"$argv\""
    print "end"
    print "complete -c sifr -f"
}
$1 == "commands" || $1 == "command" {
    at = $2
    if (at != "") {
        parent = index(at, " ") ? " " substr(at, 1, index(at, " ") - 1) : ""
        last = at
        sub(/.* /, "", last)
        print "complete -c sifr -n '__sifr_at" parent "' -a " last " -d " quoted($3)
    }
    when = $1 == "command" ? "__sifr_in " at : "__sifr_at" (at == "" ? "" : " " at)
    if ($1 == "command" && $4 != "") print "complete -c sifr -n '" when "' -F"
    if ($1 == "commands" && at != "") print "complete -c sifr -n '" when "' -l help -d 'Prints this text'"
}
$1 == "option" {
    name = $2
    print "complete -c sifr -n '" when "' -l " name value($3, $4) " -d " quoted(short($6))
    if ($3 == "list" && $4 == "PATH") print "complete -c sifr -n '" when "' -F"
}
