# What git tracks has at most 36 MiB: a rented machine takes 64 MiB of tree and pack together, of which
# the pack has 27 (scripts/gpu-pack.sh), and everyone clones it.
sizes() { # FOLDER: bytes and name of each tracked file that is there
    (cd "$1" && git ls-files -z | xargs -0r stat -c '%s %n' 2>/dev/null || :)
}
fits() { # FOLDER: else says what is large there
    sizes "$1" | sort -rn | awk '
        { bytes += $1 }
        NR <= 10 { largest = largest "\n" $0 }
        END {
            if (bytes <= 36 * 1048576) exit
            printf "the tree has %.1f MiB, and 36 are its limit; the largest files, in bytes:%s\n", bytes / 1048576, largest
            exit 1
        }'
}

if ! command -v git >/dev/null; then
    echo "skipped: no git here"
    exit 77
fi
git init -q large
truncate -s 20M large/a large/c
truncate -s 1M large/b
git -C large add a b
fits large || { echo "21 MiB are refused" >&2 && exit 1; }
git -C large add c
! fits large >out || { echo "41 MiB pass" >&2 && exit 1; }
[ "$(head -n 2 out | tr '\n' ' ')" = \
    "the tree has 41.0 MiB, and 36 are its limit; the largest files, in bytes: 20971520 c " ] ||
    { cat out >&2 && exit 1; }

if [ -z "$(sizes "$SOURCE" 2>/dev/null)" ]; then
    echo "skipped: git tracks nothing here"
    exit 77
fi
fits "$SOURCE" >&2
