#include <stdio.h>
#include <string.h>

#include "api/api_context.h"
#include "base/file.h"
#include "base/inside.h"
#include "checkpoint/manifest.h"
#include "convert/export.h"
#include "convert/import_checkpoint.h"
#include "convert/merge.h"
#include "engine/handle.h"
#include "formats/gguf/gguf_export.h"
#include "formats/weights.h"
#include "sifr/convert.h"

/* ---- export ---- */

/* A folder that holds an adapter alone. */
static bool is_adapter(const char *source) {
    return base_has_file(source, ENGINE_ADAPTER_FILE) && !formats_weights_there(source);
}

/* What training and eval would not read the way that it is meant, the converter's few keys would
 * pass on in silence: the folder opens as theirs. */
static sifr_status check_model(const char *source, sifr_error *error) {
    engine_folder folder = {0};
    sifr_status status = engine_folder_open(source, &folder, error);
    engine_folder_close(&folder);
    return status;
}

static sifr_status export_gguf(const sifr_export_options *o, const sifr_log *log,
                               convert_exported *made, sifr_error *error) {
    const char *source = o->source;
    formats_gguf_type stored;
    formats_gguf_made file;
    if (!formats_gguf_type_find(o->type ? o->type : "f16", &stored))
        return base_fail(error, SIFR_USAGE,
                         "--type %.40s is not supported (supported: f32, f16, bf16, q8_0)",
                         o->type);
    if (is_adapter(source))
        return base_fail(error, SIFR_USAGE,
                         "%s: an adapter, not a model; make a model folder of it first: sifr "
                         "merge BASE %s MERGED",
                         source, source);
    if (base_has_file(source, CHECKPOINT_MANIFEST))
        return base_fail(error, SIFR_USAGE,
                         "%s: a checkpoint, not a model folder; make one of it first: sifr "
                         "export %s MODEL",
                         source, source);
    BASE_TRY(check_model(source, error));
    BASE_TRY(formats_gguf_export(source, o->destination, stored, log, &file, error));
    *made = (convert_exported){.step = -1, .parameters = file.parameters, .bytes = file.bytes};
    snprintf(made->from, sizeof made->from, "%s", source);
    return SIFR_OK;
}

static sifr_status export(const sifr_export_options *o, const sifr_log *log, convert_exported *made,
                          sifr_error *error) {
    const char *format = o->format ? o->format : "hf";
    bool universal = strcmp(format, "deepspeed-universal") == 0, hf = strcmp(format, "hf") == 0;
    if (o->average && !hf)
        return base_fail(error, SIFR_USAGE,
                         "--ema is for --format hf; make other formats from that folder");
    if (o->text_model && !hf)
        return base_fail(error, SIFR_USAGE,
                         "--text-model is for --format hf; a gguf file has the text model alone in "
                         "any case");
    if (strcmp(format, "gguf") == 0) return export_gguf(o, log, made, error);
    if (!hf && !universal)
        return base_fail(error, SIFR_USAGE,
                         "--format %.40s is not supported yet (supported: hf, gguf, "
                         "deepspeed-universal)",
                         format);
    if (o->type)
        return base_fail(error, SIFR_USAGE,
                         "--type %.40s is for --format gguf; the others have types of their "
                         "own",
                         o->type);
    return universal ? convert_export_universal(o->source, o->destination, log, made, error)
                     : convert_export(o->source, o->destination, o->average, o->text_model, log,
                                      made, error);
}

sifr_status sifr_export(sifr_context *context, const sifr_export_options *options,
                        sifr_exported *out, sifr_error *error) {
    BASE_ENTER(error, context);
    sifr_export_options known;
    convert_exported made;
    BASE_TRY(api_take_options("sifr_export_options", options, sizeof known, &known, error));
    if (out) BASE_TRY(api_check_result("sifr_exported", out, error));
    if (!known.source || !known.destination)
        return base_fail(error, SIFR_USAGE, "a source and a destination are needed");
    BASE_TRY(export(&known, &context->log, &made, error));
    sifr_exported all = {.parameters = made.parameters, .bytes = made.bytes, .step = made.step};
    snprintf(all.from, sizeof all.from, "%s", made.from);
    if (out) api_give_result(&all, sizeof all, out);
    return SIFR_OK;
}

/* ---- adapters ---- */

static bool is_swapped(const sifr_merge_options *o) {
    static const char config[] = "adapter_config.json";
    return base_has_file(o->base, config) && !base_has_file(o->adapter, config);
}

sifr_status sifr_merge(sifr_context *context, const sifr_merge_options *options, sifr_merged *out,
                       sifr_error *error) {
    BASE_ENTER(error, context);
    sifr_merge_options o;
    convert_merged made;
    BASE_TRY(api_take_options("sifr_merge_options", options, sizeof o, &o, error));
    if (out) BASE_TRY(api_check_result("sifr_merged", out, error));
    if (!o.base || !o.adapter || !o.destination)
        return base_fail(error, SIFR_USAGE, "a base, an adapter and a destination are needed");
    if (is_swapped(&o))
        return base_fail(error, SIFR_USAGE, "%s is the adapter and %s is none; the order is %s",
                         o.base, o.adapter,
                         o.unmerge ? "MERGED ADAPTER DEST" : "BASE ADAPTER DEST");
    BASE_TRY(
        convert_merge(o.base, o.adapter, o.destination, o.unmerge, &context->log, &made, error));
    sifr_merged all = {.parameters = made.parameters, .bytes = made.bytes, .modules = made.modules};
    if (out) api_give_result(&all, sizeof all, out);
    return SIFR_OK;
}

/* ---- checkpoints of DeepSpeed ---- */

sifr_status sifr_import_checkpoint(sifr_context *context,
                                   const sifr_import_checkpoint_options *options,
                                   sifr_imported_checkpoint *out, sifr_error *error) {
    BASE_ENTER(error, context);
    sifr_import_checkpoint_options o;
    convert_imported made;
    BASE_TRY(api_take_options("sifr_import_checkpoint_options", options, sizeof o, &o, error));
    if (out) BASE_TRY(api_check_result("sifr_imported_checkpoint", out, error));
    if (!o.checkpoint || !o.destination)
        return base_fail(error, SIFR_USAGE, "a checkpoint and a destination are needed");
    BASE_TRY(convert_import_checkpoint(o.checkpoint, o.model, o.destination, &context->log, &made,
                                       error));
    sifr_imported_checkpoint all = {.stage = made.stage,
                                    .ranks = (int64_t)made.ranks,
                                    .weights = (int64_t)made.weights,
                                    .parameters = made.parameters,
                                    .step = made.step};
    snprintf(all.from, sizeof all.from, "%s", made.from);
    if (out) api_give_result(&all, sizeof all, out);
    return SIFR_OK;
}
