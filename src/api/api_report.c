#include <string.h>

#include "api/api_context.h"
#include "base/file.h"
#include "base/inside.h"
#include "sifr/report.h"
#include "train/view/page.h"

/* A mistyped --output must not replace a log, or weights. */
static sifr_status check_output(const char *path, sifr_error *error) {
    static const char begin[] = "<!DOCTYPE html";
    base_map map;
    if (!base_is_file(path)) return SIFR_OK;
    BASE_TRY(base_map_file(path, &map, error));
    bool page = map.size == 0 ||
                (map.size >= sizeof begin - 1 && memcmp(map.data, begin, sizeof begin - 1) == 0);
    base_unmap(&map);
    if (page) return SIFR_OK;
    return base_fail(error, SIFR_USAGE,
                     "--output %s: the file exists and is no page of HTML; name another", path);
}

static sifr_status check(const sifr_report_options *o, sifr_error *error) {
    if (!o->run_count || !o->runs)
        return base_fail(error, SIFR_USAGE, "no run is given; name the output folder of one");
    BASE_TRY(api_check_list("sifr_report_options.runs", o->runs, o->run_count, error));
    if (!o->output || !o->output[0])
        return base_fail(error, SIFR_USAGE, "--output: name the file of the page");
    if (o->trace && o->run_count > 1)
        return base_fail(error, SIFR_USAGE,
                         "--trace %s: for one run; for several, put each one's into its folder as "
                         "trace.json",
                         o->trace);
    if (o->trace && !base_is_file(o->trace))
        return base_fail(error, SIFR_USAGE, "--trace %s: no such file", o->trace);
    return check_output(o->output, error);
}

sifr_status sifr_report(sifr_context *context, const sifr_report_options *options,
                        sifr_reported *out, sifr_error *error) {
    BASE_ENTER(error, context, out);
    sifr_report_options o = {0};
    train_page_result result;
    BASE_TRY(api_take_options("sifr_report_options", options, sizeof o, &o, error));
    BASE_TRY(api_check_result("sifr_reported", out, error));
    BASE_TRY(check(&o, error));
    train_page_request request = {o.runs, o.run_count, o.trace, o.output, &context->log};
    BASE_TRY(train_page_write(&request, &result, error));
    sifr_reported made = {.runs = result.runs,
                          .unread = result.unread,
                          .records = result.records,
                          .bytes = (int64_t)result.bytes};
    api_give_result(&made, sizeof made, out);
    return SIFR_OK;
}
