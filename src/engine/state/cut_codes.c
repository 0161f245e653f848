/* Codes of a tensor rank's part of a weight. The model cuts codes between blocks of values that
 * share a scale (model/shard_layout.c), so the part's blocks are blocks of the logical weight, and
 * their codes are copied. Scales of two levels go with whole records alone: a part that is cut
 * inside of them has their values in FP32. */
#include <string.h>

#include "base/assert.h"
#include "engine/state/coder.h"

/* The record of the logical weight that was made last. */
typedef struct source_record {
    int64_t number; /* -1: none */
    uint8_t codes[MODEL_RECORD_MOST];
    float scales[BASE_NF4_SCALES]; /* of NF4 */
} source_record;

static void open_record(const engine_coder *c, int64_t number, source_record *from) {
    if (from->number == number) return;
    from->number = number;
    engine_coder_encode(c, number, from->codes);
    if (c->coding != MODEL_INT8)
        base_nf4_open_scales(from->codes, c->coding == MODEL_NF4_DOUBLED, from->scales);
}

/* Block `source` of a record, as block `b` of one with scales in FP32. */
static void copy_block(const engine_coder *c, const source_record *from, int64_t source, int64_t b,
                       uint8_t *codes) {
    enum { PAIRS = BASE_NF4_BLOCK / 2 };
    if (c->coding == MODEL_INT8) {
        memcpy(codes + b * BASE_BLOCK8_BYTES, from->codes + source * BASE_BLOCK8_BYTES,
               BASE_BLOCK8_BYTES);
        return;
    }
    memcpy(codes + b * PAIRS, from->codes + source * PAIRS, PAIRS);
    memcpy(codes + BASE_NF4_CODES + b * (int64_t)sizeof(float), &from->scales[source],
           sizeof(float));
}

void engine_coder_encode_held(const engine_coder *c, const model_weight *w, int64_t record,
                              uint8_t *codes) {
    int64_t first = record * BASE_NF4_RECORD, elements = w->rows * w->columns;
    int64_t block = model_code_block(w->coding);
    source_record from = {.number = -1};
    if (!w->cut.count) {
        engine_coder_encode(c, record, codes);
        return;
    }
    memset(codes, 0, (size_t)model_record_bytes(w->coding)); /* scales of 0: values of 0 */
    for (int64_t at = first; at < elements && at < first + BASE_NF4_RECORD; at += block) {
        model_stretch s = model_logical_at(w, at, elements);
        base_assert(s.count >= block && (s.at < 0 || s.at % block == 0));
        if (s.at < 0) continue;
        if (w->coding == MODEL_NF4_DOUBLED) { /* all of it is a record of the logical weight */
            base_assert(s.at % BASE_NF4_RECORD == 0 && s.count >= BASE_NF4_RECORD);
            engine_coder_encode(c, s.at / BASE_NF4_RECORD, codes);
            return;
        }
        open_record(c, s.at / BASE_NF4_RECORD, &from);
        copy_block(c, &from, s.at % BASE_NF4_RECORD / block, (at - first) / block, codes);
    }
}
