#include "data/parquet/parquet.h"

sifr_status data_parquet_refuse(const char *path, sifr_error *error) {
    return base_fail(error, SIFR_USAGE,
                     "%s: Parquet is not read; convert it, with pandas: python3 -c 'import "
                     "pandas, sys; pandas.read_parquet(sys.argv[1]).to_json(sys.argv[2], "
                     "orient=\"records\", lines=True)' %s rows.jsonl; or build sifr with `make "
                     "PARQUET=1`",
                     path, path);
}
