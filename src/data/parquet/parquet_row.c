/* A row from the values of all its leaves, by their repetition and definition levels: a value of
 * repetition level r goes on with the list of that level; its definition level tells how many of
 * the fields on its way are there. */
#include <string.h>

#include "data/parquet/parquet_internal.h"

enum { VALUE_BYTES = 16 }; /* what a value counts besides its bytes */

static sifr_status out_of_memory(sifr_error *error) {
    return base_fail_alloc(error, 64);
}

/* The levels of the value at which the first leaf below the node stands. */
static sifr_status look(data_parquet *p, const parquet_node *node, int16_t *definition,
                        int16_t *repetition, sifr_error *error) {
    bool there;
    BASE_TRY(
        data_parquet_peek(p, &p->cursors[node->first_leaf], definition, repetition, &there, error));
    return there ? SIFR_OK : data_parquet_damaged(p, "a column ends before its last row", error);
}

/* Passes over one value of each leaf below, none of which reaches level `below`. */
static sifr_status pass_null(data_parquet *p, const parquet_node *node, int16_t below,
                             sifr_error *error) {
    for (int32_t i = node->first_leaf; i < node->leaf_end; i++) {
        int16_t definition = 0, repetition;
        bool there;
        BASE_TRY(data_parquet_peek(p, &p->cursors[i], &definition, &repetition, &there, error));
        if (!there || definition >= below)
            return data_parquet_damaged(p, "its columns contradict each other", error);
        BASE_TRY(data_parquet_take(p, &p->cursors[i], NULL, error));
    }
    return SIFR_OK;
}

static sifr_status count_value(data_parquet *p, sifr_error *error) {
    p->bytes += VALUE_BYTES;
    if (p->bytes <= p->row_bytes) return SIFR_OK;
    p->skippable = true;
    return base_fail(error, SIFR_FAILED, "%s: row %lld has more than %zu bytes", p->name,
                     (long long)p->row, p->row_bytes);
}

static sifr_status build(data_parquet *p, const parquet_node *node, json_t **out,
                         sifr_error *error);

static sifr_status build_leaf(data_parquet *p, const parquet_node *node, json_t **out,
                              sifr_error *error) {
    BASE_TRY(data_parquet_take(p, &p->cursors[node->first_leaf], out, error));
    return *out ? SIFR_OK : data_parquet_damaged(p, "a value is missing", error);
}

static sifr_status build_group(data_parquet *p, const parquet_node *node, json_t *object,
                               sifr_error *error) {
    for (int32_t i = node->child; i != PARQUET_NONE; i = p->nodes[i].next) {
        json_t *value;
        BASE_TRY(build(p, &p->nodes[i], &value, error));
        if (json_object_set_new(object, p->nodes[i].name, value) != 0)
            return data_parquet_damaged(p, "a field's name is not UTF-8", error);
    }
    return SIFR_OK;
}

/* An element of a list, or of a map. */
static sifr_status build_element(data_parquet *p, const parquet_node *node, json_t *all,
                                 sifr_error *error) {
    json_t *value, *key;
    const parquet_node *child = &p->nodes[node->child];
    if (node->kind == PARQUET_LIST) {
        BASE_TRY(build(p, child, &value, error));
        return json_array_append_new(all, value) == 0 ? SIFR_OK : out_of_memory(error);
    }
    BASE_TRY(build(p, child, &key, error));
    sifr_status status = build(p, &p->nodes[child->next], &value, error);
    if (status == SIFR_OK && json_object_set_new(all, json_string_value(key), value) != 0)
        status = out_of_memory(error);
    json_decref(key);
    return status;
}

/* Whether a further element follows; all leaves must say the same. */
static sifr_status more(data_parquet *p, const parquet_node *node, bool *out, sifr_error *error) {
    for (int32_t i = node->first_leaf; i < node->leaf_end; i++) {
        int16_t definition, repetition;
        bool there;
        BASE_TRY(data_parquet_peek(p, &p->cursors[i], &definition, &repetition, &there, error));
        bool follows = there && repetition >= node->repeats;
        if (follows && (repetition > node->repeats || definition < node->element))
            return data_parquet_damaged(p, "the levels of a list are wrong", error);
        if (i > node->first_leaf && follows != *out)
            return data_parquet_damaged(p, "its columns contradict each other", error);
        *out = follows;
    }
    return SIFR_OK;
}

static sifr_status build_list(data_parquet *p, const parquet_node *node, json_t *all,
                              sifr_error *error) {
    int16_t definition, repetition;
    bool follows = true;
    BASE_TRY(look(p, node, &definition, &repetition, error));
    if (definition < node->element) return pass_null(p, node, node->element, error);
    while (follows) {
        BASE_TRY(build_element(p, node, all, error));
        BASE_TRY(more(p, node, &follows, error));
    }
    return SIFR_OK;
}

static sifr_status build(data_parquet *p, const parquet_node *node, json_t **out,
                         sifr_error *error) {
    int16_t definition, repetition;
    *out = NULL;
    BASE_TRY(count_value(p, error));
    BASE_TRY(look(p, node, &definition, &repetition, error));
    if (node->optional && definition < node->there) {
        *out = json_null();
        return pass_null(p, node, node->there, error);
    }
    if (node->kind == PARQUET_LEAF) return build_leaf(p, node, out, error);
    *out = node->kind == PARQUET_LIST ? json_array() : json_object();
    if (!*out) return out_of_memory(error);
    sifr_status status = node->kind == PARQUET_GROUP ? build_group(p, node, *out, error)
                                                     : build_list(p, node, *out, error);
    if (status == SIFR_OK) return SIFR_OK;
    json_decref(*out);
    *out = NULL;
    return status;
}

sifr_status data_parquet_assemble(data_parquet *p, json_t **row, sifr_error *error) {
    *row = json_object();
    if (!*row) return out_of_memory(error);
    for (int32_t i = 0; i < p->cursor_count; i++) {
        int16_t definition, repetition = 0;
        bool there;
        sifr_status status =
            data_parquet_peek(p, &p->cursors[i], &definition, &repetition, &there, error);
        if (status == SIFR_OK && (!there || repetition != 0))
            status =
                data_parquet_damaged(p, "a column does not begin a row where others do", error);
        if (status != SIFR_OK) {
            json_decref(*row);
            *row = NULL;
            return status;
        }
    }
    sifr_status status = build_group(p, &p->nodes[0], *row, error);
    if (status == SIFR_OK) return SIFR_OK;
    json_decref(*row);
    *row = NULL;
    return status;
}

sifr_status data_parquet_pass(data_parquet *p, int64_t row, sifr_error *error) {
    for (int32_t i = 0; i < p->cursor_count; i++) {
        parquet_cursor *cursor = &p->cursors[i];
        for (;;) {
            int16_t definition, repetition;
            bool there;
            BASE_TRY(data_parquet_peek(p, cursor, &definition, &repetition, &there, error));
            if (!there || (repetition == 0 && cursor->rows >= row)) break;
            BASE_TRY(data_parquet_take(p, cursor, NULL, error));
        }
    }
    return SIFR_OK;
}
