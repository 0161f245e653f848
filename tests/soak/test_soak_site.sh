# label: soak
# timeout: 600, not under sanitizers
# docs/ as a site: PyPI's mkdocs builds it without a warning; each link of its pages leads to a file
# and an anchor of it, also those that leave docs/; nothing is fetched from elsewhere; its search has
# the pages' words. Skipped where pip cannot get mkdocs.
. "$SOURCE/tests/support/expect.sh"
venv=$BUILD/site-soak
packages="mkdocs==1.6.1"
if ! "$venv/bin/mkdocs" --version >/dev/null 2>&1; then
    { python3 -m venv "$venv" && "$venv/bin/pip" install $packages; } >pip.log 2>&1 ||
        { tail -n 3 pip.log; echo "no $packages from PyPI: skipped"; exit 77; }
fi
PYTHONDONTWRITEBYTECODE=1 "$venv/bin/mkdocs" build --strict --config-file "$SOURCE/mkdocs.yml" \
    --site-dir "$PWD/site" >build.log 2>&1 || fail "$(cat build.log)"
! grep -q WARNING build.log || fail "$(grep WARNING build.log)"
python3 "$SOURCE/tests/soak/site_follows.py" site >follows || fail "$(cat follows)"

# The test itself: a link that is spoilt is found.
sed -i 's|href="quickstart.html"|href="quickstarts.html"|' site/install.html
code=0
python3 "$SOURCE/tests/soak/site_follows.py" site >spoilt || code=$?
[ "$code" = 1 ] && grep -q 'install.html: no such file: quickstarts.html' spoilt || fail "$(cat spoilt)"
echo "$(cat follows); $packages"
