# in check
# docs/config.md is what the table of the parser says.
"$BUILD/config_docs" >config.md
if ! diff "$SOURCE/docs/config.md" config.md; then
    echo "docs/config.md is not what src/config/keys/ says: run make docs"
    exit 1
fi
# Where its lines are broken, no text turns into a quote, a heading or a list.
if grep -nE '^ +(>|#|[-+*=] |1[.)] )' config.md; then
    echo "docs/config.md: a line begins with what is markup there"
    exit 1
fi
# docs/rows.md is what the table of forms says.
"$BUILD/row_docs" >rows.md
if ! diff "$SOURCE/docs/rows.md" rows.md; then
    echo "docs/rows.md is not what src/data/records/row_forms.c says: run make docs"
    exit 1
fi
