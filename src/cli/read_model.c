#include "cli/read_model.h"

#include "api/api_read_model.h"

sifr_status cli_read_model_open(const cli_read_flags *read, checkpoint_model *model,
                                infer_options *out, const sifr_log *log, sifr_error *error) {
    api_read_model given = {.model = read->model,
                            .adapter = read->adapter,
                            .precision = read->precision,
                            .device = read->device,
                            .threads = read->threads};
    infer_source source;
    BASE_TRY(api_read_model_source(&given, out->device, &source, error));
    return infer_open_model(&source, model, out, log, error);
}
