/* A checkpoint's manifest.json on any bytes, with a sum that is right: no crash, one line of
 * message, and ranges in which each element of a weight is once. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/json.h"
#include "checkpoint/manifest.h"
#include "support/fuzz_folder.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(int truth) {
    if (!truth) abort();
}

/* Writes the manifest with the sum that belongs to it; false where the input is no object. */
static bool write_manifest(const uint8_t *data, size_t size) {
    char path[256], hex[17];
    json_t *json = NULL;
    if (base_json_parse((const char *)data, size, "fuzz", &json, NULL) != SIFR_OK) return false;
    bool object = json_is_object(json);
    if (object) {
        json_object_del(json, "xxh3");
        char *text = json_dumps(json, JSON_COMPACT | JSON_SORT_KEYS);
        must(text != NULL);
        base_hash_hex(base_hash(text, strlen(text)), hex);
        free(text);
        json_object_set_new(json, "xxh3", json_string(hex));
        snprintf(path, sizeof path, "%s/manifest.json", fuzz_folder());
        must(json_dump_file(json, path, JSON_COMPACT) == 0);
    }
    json_decref(json);
    return object;
}

static sifr_model *make_model(void) {
    static const char text[] =
        "{\"model_type\": \"gpt2\", \"architectures\": [\"GPT2LMHeadModel\"], "
        "\"vocab_size\": 8, \"n_embd\": 4, \"n_layer\": 1, \"n_head\": 1, "
        "\"n_positions\": 4}";
    model_config config;
    sifr_model *model = NULL;
    must(model_config_parse(text, sizeof text - 1, "model", &config, NULL) == SIFR_OK);
    must(model_from_config(&config, &model, NULL) == SIFR_OK);
    return model;
}

static void check_said(sifr_status status, const sifr_error *error) {
    must(status == SIFR_OK || (error->message[0] && !strpbrk(error->message, "\n\r")));
}

/* The ranges of one part of one weight, which come first. */
static void check_elements(const checkpoint_range *ranges, size_t count, const model_weight *w) {
    static uint8_t seen[256];
    int64_t elements = w->rows * w->columns;
    must(elements <= (int64_t)sizeof seen);
    memset(seen, 0, sizeof seen);
    for (size_t i = 0; i < count; i++) {
        const model_span *span = &ranges[i].span;
        const model_block *b = &span->block;
        if (ranges[i].weight != ranges->weight || ranges[i].part != ranges->part) break;
        must(b->rows[0] >= 0 && b->rows[0] < b->rows[1] && b->rows[1] <= w->rows);
        must(b->columns[0] >= 0 && b->columns[0] < b->columns[1] && b->columns[1] <= w->columns);
        must(span->first >= 0 && span->count >= 0);
        must(span->count <= model_block_elements(b) - span->first);
        for (int64_t k = span->first; k < span->first + span->count; k++) {
            int64_t wide = b->columns[1] - b->columns[0];
            seen[(b->rows[0] + k / wide) * w->columns + b->columns[0] + k % wide]++;
        }
    }
    for (int64_t k = 0; k < elements; k++) must(seen[k] == 1);
}

static void check_ranges(const checkpoint_opened *opened, const sifr_model *model, bool states) {
    checkpoint_range *ranges = NULL;
    size_t count = 0;
    sifr_error error = {0};
    sifr_status status =
        states ? checkpoint_state_ranges(opened, model, &optim_adam, "c", &ranges, &count, &error)
               : checkpoint_master_ranges(opened, model, false, "c", &ranges, &count, &error);
    check_said(status, &error);
    for (size_t i = 0; status == SIFR_OK && i < count; i++) {
        must(ranges[i].weight < model->weight_count && ranges[i].file < opened->file_count);
        if (!i || ranges[i].weight != ranges[i - 1].weight || ranges[i].part != ranges[i - 1].part)
            check_elements(ranges + i, count - i, &model->weights[ranges[i].weight]);
        check_said(checkpoint_check_file(opened, ranges[i].file, fuzz_folder(), false, &error),
                   &error);
    }
    free(ranges);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static sifr_model *model;
    checkpoint_opened opened;
    engine_stored stored = {0};
    sifr_error error = {0};
    if (!model) model = make_model();
    if (!write_manifest(data, size)) return 0;
    sifr_status status = checkpoint_open(fuzz_folder(), &opened, &error);
    check_said(status, &error);
    if (status != SIFR_OK) return 0;
    must(opened.step >= opened.updates && opened.updates >= 0);
    check_ranges(&opened, model, false);
    check_ranges(&opened, model, true);
    check_said(checkpoint_check_states(&opened, &optim_adam, "c", "is", "change", &error), &error);
    check_said(checkpoint_read_tensors(&opened, model, "c", &stored, &error), &error);
    engine_stored_free(&stored);
    checkpoint_close(&opened);
    return 0;
}
