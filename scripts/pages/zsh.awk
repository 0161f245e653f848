# Completion of zsh, from what `sifr --help=table` prints (src/cli/option_table.h).

function quoted(text) { # inside of '[...]'
    gsub(/\\/, "\\\\", text)
    gsub(/\[/, "\\[", text)
    gsub(/\]/, "\\]", text)
    gsub(/:/, "\\:", text)
    gsub(/'/, "'\\''", text)
    return text
}
function action(argument,   words) {
    if (argument ~ /^(DIR|FOLDER)$/) return "_files -/"
    if (argument ~ /^(FILE|PATH)$/) return "_files"
    if (argument !~ /\|/) return " "
    words = argument
    gsub(/\|/, " ", words)
    return "(" words ")"
}
function name_of(command) {
    command = "_sifr " command
    sub(/ $/, "", command)
    gsub(/ /, "_", command)
    return command
}
function option(name, kind, argument, text,   spec) {
    spec = (kind == "list" ? "*" : "") "--" name
    if (kind == "switch") return spec "=-[" quoted(short(text)) "]::" quoted(argument) ":(" argument ")"
    if (kind == "flag") return spec "[" quoted(short(text)) "]"
    return spec "=[" quoted(short(text)) "]:" quoted(argument) ":" action(argument)
}
BEGIN {
    FS = "\t"
    print "#compdef sifr"
    print "# Completion of sifr for zsh, made from its own table of options (scripts/make-pages.sh)."
}
$1 == "commands" || $1 == "command" {
    at = table[++count] = $2
    is_group[at] = $1 == "commands"
    if (at != "") {
        parent = index(at, " ") ? substr(at, 1, index(at, " ") - 1) : ""
        last = at
        sub(/.* /, "", last)
        below[parent] = below[parent] "            '" last ":" quoted($3) "'\n"
    }
    files[at] = $1 == "command" && $4 != ""
}
$1 == "option" {
    own[at] = own[at] " \\\n        '" option($2, $3, $4, $6) "'"
    # The words of a list behind its first.
    if ($3 == "list" && $4 == "PATH") files[at] = 1
}
END {
    for (i = 1; i <= count; i++) {
        at = table[i]
        print "\n" name_of(at) "() {"
        if (is_group[at]) {
            if (own[at] == "") own[at] = " \\\n        '--help[Prints this text]'"
            print "    local curcontext=$curcontext state line\n    local -a commands"
            print "    _arguments -C" own[at] " \\\n        '1:command:->command' '*::word:->words'"
            print "    case $state in\n    command)\n        commands=(\n" below[at] "        )"
            print "        _describe command commands\n        ;;"
            print "    words)\n        (( $+functions[" name_of(at) "_$line[1]] )) && " name_of(at) "_$line[1]"
            print "        ;;\n    esac"
        } else {
            print "    _arguments" own[at] (files[at] ? " \\\n        '*:file:_files'" : "")
        }
        print "}"
    }
    print "\n_sifr \"$@\""
}
