# What a list of choices shows of an option's text: its first thought.
function short(text) {
    gsub(/ \([^)]*\)/, "", text)
    sub(/\. .*/, "", text)
    sub(/; .*/, "", text)
    if (length(text) > 72) sub(/: .*/, "", text)
    sub(/\.$/, "", text)
    return text
}
