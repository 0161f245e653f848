# in check
# docs/rooms.svg shows the includes that src/ has.
command -v python3 >/dev/null || { echo "skipped: no python3"; exit 77; }
python3 "$SOURCE/scripts/rooms_picture.py" >rooms.svg || exit 1
if ! diff "$SOURCE/docs/rooms.svg" rooms.svg; then
    echo "docs/rooms.svg is not what src/ includes: run make docs"
    exit 1
fi
