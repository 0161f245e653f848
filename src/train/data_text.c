#include "train/data_text.h"

sifr_status train_data_from_text(const formats_text_source *source,
                                 const train_data_options *options, char prefix[BASE_PATH_LENGTH],
                                 sifr_error *error) {
    (void)options;
    (void)prefix;
    return base_fail(error, SIFR_USAGE, "%s: text is not built yet; give a token store",
                     source->documents[0].path);
}
