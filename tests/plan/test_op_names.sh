# in check
# Planner, pricer and engine read what an op is from its row (src/model/ops.h): none is named there.
for room in plan engine; do
    [ -d "$SOURCE/src/$room" ] || { echo "src/$room is not there"; exit 1; }
    if grep -rnE 'model_op_[a-z]' "$SOURCE/src/$room"; then
        echo "src/$room names an op; give what it asks a column in src/model/ops.h"
        exit 1
    fi
done
