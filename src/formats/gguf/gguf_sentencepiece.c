/* tokenizer.model: the pieces of sentencepiece_model.proto, and the files beside it that add tokens
 * (_create_vocab_sentencepiece of llama.cpp's converter). */
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/folder_file.h"
#include "base/json.h"
#include "formats/folder.h"
#include "formats/gguf/gguf_tokens.h"

enum { FILE_LIMIT = 1 << 27, PIECES = 1, PIECE_TEXT = 1, PIECE_SCORE = 2, PIECE_TYPE = 3 };

/* --- protocol buffers --- */

typedef struct proto_reader {
    const uint8_t *at, *end;
} proto_reader;

typedef struct proto_field {
    uint64_t number, value; /* value: of a varint, or the bytes of a fixed one */
    proto_reader inside;    /* of a field with a length */
    int wire;
} proto_field;

enum { VARINT = 0, FIXED64 = 1, LENGTH = 2, FIXED32 = 5 };

static bool read_varint(proto_reader *r, uint64_t *out) {
    *out = 0;
    for (int shift = 0; shift < 64 && r->at < r->end; shift += 7) {
        uint8_t byte = *r->at++;
        *out |= (uint64_t)(byte & 0x7f) << shift;
        if (byte < 0x80) return true;
    }
    return false;
}

static bool read_fixed(proto_reader *r, int bytes, uint64_t *out) {
    if (r->end - r->at < bytes) return false;
    *out = 0;
    for (int i = bytes - 1; i >= 0; i--) *out = *out << 8 | r->at[i];
    r->at += bytes;
    return true;
}

static bool read_field(proto_reader *r, proto_field *out) {
    uint64_t tag;
    *out = (proto_field){0};
    if (!read_varint(r, &tag)) return false;
    out->number = tag >> 3;
    out->wire = (int)(tag & 7);
    switch (out->wire) {
    case VARINT:
        return read_varint(r, &out->value);
    case FIXED64:
        return read_fixed(r, 8, &out->value);
    case FIXED32:
        return read_fixed(r, 4, &out->value);
    case LENGTH:
        if (!read_varint(r, &out->value) || out->value > (uint64_t)(r->end - r->at)) return false;
        out->inside = (proto_reader){r->at, r->at + out->value};
        r->at += out->value;
        return true;
    default:
        return false;
    }
}

/* --- pieces --- */

static bool read_piece(proto_reader r, formats_gguf_token *out) {
    proto_field field;
    *out = (formats_gguf_token){.text = "", .type = FORMATS_GGUF_TOKEN_NORMAL};
    while (r.at < r.end) {
        if (!read_field(&r, &field)) return false;
        if (field.number == PIECE_TEXT && field.wire == LENGTH) {
            out->text = (const char *)field.inside.at;
            out->size = (size_t)field.value;
        } else if (field.number == PIECE_SCORE && field.wire == FIXED32) {
            uint32_t bits = (uint32_t)field.value;
            memcpy(&out->score, &bits, sizeof bits);
        } else if (field.number == PIECE_TYPE && field.wire == VARINT) {
            bool known = field.value == FORMATS_GGUF_TOKEN_UNKNOWN ||
                         field.value == FORMATS_GGUF_TOKEN_CONTROL ||
                         field.value == FORMATS_GGUF_TOKEN_UNUSED ||
                         field.value == FORMATS_GGUF_TOKEN_BYTE;
            out->type = known ? (formats_gguf_token_type)field.value : FORMATS_GGUF_TOKEN_NORMAL;
        }
    }
    return true;
}

sifr_status formats_gguf_sentencepiece_parse(const char *bytes, size_t size, const char *name,
                                             formats_gguf_tokens *tokens, sifr_error *error) {
    proto_reader r = {(const uint8_t *)bytes, (const uint8_t *)bytes + size};
    proto_field field;
    formats_gguf_token token;
    int64_t count = 0;
    while (r.at < r.end) {
        bool good = read_field(&r, &field);
        if (good && (field.number != PIECES || field.wire != LENGTH)) continue;
        if (!good || !read_piece(field.inside, &token))
            return base_fail(error, SIFR_FAILED,
                             "%s: piece %lld is broken: no model of SentencePiece, or damaged",
                             name, (long long)count);
        /* Those past the model's vocabulary are left out. */
        if (count < tokens->count) tokens->list[count] = token;
        count++;
    }
    tokens->pieces = count;
    if (count > 0) return SIFR_OK;
    return base_fail(error, SIFR_FAILED, "%s: has no pieces: no model of SentencePiece", name);
}

/* --- tokens that other files add --- */

static formats_gguf_token *added_at(formats_gguf_tokens *tokens, json_int_t id, const char *text,
                                    size_t size, formats_gguf_token_type type) {
    if (id < 0 || id >= tokens->count) return NULL;
    formats_gguf_token *t = &tokens->list[id];
    *t = (formats_gguf_token){
        .text = text, .size = size, .type = type, .score = -1000, .added = true};
    return t;
}

static void add_from_file(json_t *added, formats_gguf_tokens *tokens) {
    const char *key;
    json_t *id;
    size_t size;
    json_object_keylen_foreach(added, key, size, id) {
        if (json_is_integer(id))
            added_at(tokens, json_integer_value(id), key, size, FORMATS_GGUF_TOKEN_USER);
    }
}

/* Phi-3's: texts stay, and only tokens that are marked so are special. */
static void add_marked(formats_gguf_tokens *tokens, json_int_t id, const json_t *entry) {
    const json_t *content = json_object_get(entry, "content");
    bool special = json_is_true(json_object_get(entry, "special"));
    if (json_is_string(content))
        added_at(tokens, id, json_string_value(content), json_string_length(content),
                 special ? FORMATS_GGUF_TOKEN_CONTROL : FORMATS_GGUF_TOKEN_USER);
}

/* "added_tokens_decoder": {"32000": {"content": …, "special": …}} */
static void add_from_config(json_t *config, bool phi3, formats_gguf_tokens *tokens) {
    const char *key;
    json_t *entry;
    json_object_foreach(json_object_get(config, "added_tokens_decoder"), key, entry) {
        const json_t *content = json_object_get(entry, "content");
        const char *text = json_string_value(content);
        size_t size = json_string_length(content);
        char *end;
        long id = strtol(key, &end, 10);
        if (!text || *end || end == key) continue;
        if (phi3) {
            add_marked(tokens, id, entry);
            continue;
        }
        bool special = json_is_true(json_object_get(entry, "special")) ||
                       formats_gguf_looks_special(text, size);
        formats_gguf_token *t = added_at(
            tokens, id, text, size, special ? FORMATS_GGUF_TOKEN_CONTROL : FORMATS_GGUF_TOKEN_USER);
        if (t) t->blanks = !special;
    }
}

static sifr_status read_file(const char *folder, const char *name, char **out, size_t *size,
                             char path[BASE_PATH_LENGTH], sifr_error *error) {
    *out = NULL;
    *size = 0;
    BASE_TRY(base_path_join(path, folder, name, error));
    if (!base_is_file(path)) return SIFR_OK;
    BASE_TRY(base_folder_file(folder, name, path, error));
    return base_read_file(path, FILE_LIMIT, out, size, error);
}

sifr_status formats_gguf_sentencepiece_read(const formats_gguf_files *files, bool phi3,
                                            formats_gguf_sentencepiece *out,
                                            formats_gguf_tokens *tokens, bool *found,
                                            sifr_error *error) {
    char path[BASE_PATH_LENGTH], *text;
    size_t size;
    *out = (formats_gguf_sentencepiece){0};
    *found = false;
    BASE_TRY(read_file(files->folder, "tokenizer.model", &out->model, &size, path, error));
    if (!out->model) return SIFR_OK;
    *found = true;
    for (int64_t i = 0; i < tokens->count; i++)
        tokens->list[i] = (formats_gguf_token){.type = FORMATS_GGUF_TOKEN_UNUSED, .score = -10000};
    BASE_TRY(formats_gguf_sentencepiece_parse(out->model, size, path, tokens, error));
    BASE_TRY(formats_gguf_check_pieces(files, tokens, tokens->pieces, error));
    BASE_TRY(read_file(files->folder, "added_tokens.json", &text, &size, path, error));
    if (text) {
        sifr_status status = base_json_parse(text, size, path, &out->added, error);
        free(text);
        if (status != SIFR_OK) return status;
    }
    add_from_file(out->added, tokens);
    add_from_config(files->tokenizer_config, phi3, tokens);
    return formats_gguf_add_beside(files, tokens, tokens->pieces, error);
}

void formats_gguf_sentencepiece_free(formats_gguf_sentencepiece *out) {
    free(out->model);
    json_decref(out->added);
    *out = (formats_gguf_sentencepiece){0};
}
