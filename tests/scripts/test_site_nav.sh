# in check
# The site of docs/ (mkdocs.yml) has each page in its list once; test_soak_site builds it.
fail() { echo "$1" >&2; exit 1; }
sed '1,/^nav:/d' "$SOURCE/mkdocs.yml" | grep -oE '[A-Za-z0-9_-]+\.md$' | sort >listed
(cd "$SOURCE/docs" && ls -- *.md) | sort >pages
[ -s listed ] || fail "no list of pages in mkdocs.yml"
diff pages listed || fail "mkdocs.yml: its list has not each page of docs/ once"
