# label: full
# docs/python.md, with a model of two small layers, and README's first steps.
# timeout: 120
. "$SOURCE/tests/support/python.sh"
. "$SOURCE/tests/support/page.sh"
. "$SOURCE/tests/support/small_llama.sh"
llama_model model 32 2 false
mv text book.txt
page python
[ -s by_loop/model.safetensors ] || fail "nothing saved"

# The README's lines, at small size.
sed -n '/^## From Python/,/^## /s/^    //p' "$SOURCE/README.md" >readme.py
grep -q 'sifr.train(' readme.py || fail "README has no first steps from Python"
mkdir texts readme
cp book.txt texts
ln -s model MODEL_DIR
ln -s "$SOURCE/examples" examples
sed 's/output="run"/output="readme"/; s/"run", "Once/"readme", "Once/; s/1000/3/' readme.py >small.py
python3 small.py || fail "README's lines: $(cat small.py)"
