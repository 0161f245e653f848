/* What each class of tokenizer of transformers 5 puts around its vocabulary. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/heap.h"
#include "base/json.h"
#include "text/tokenizer/tokenizer_files.h"
#include "text/tokenizer/tokenizer_internal.h"
#include "text/tokenizer/tokenizer_normalizer.h"

/* Parts as the library writes them, with ' for "; only words of our own go into %s. */
static sifr_status set_part(json_t *into, const char *key, sifr_error *error, const char *format,
                            ...) SIFR_PRINTF(4, 5);
static sifr_status set_part(json_t *into, const char *key, sifr_error *error, const char *format,
                            ...) {
    char text[1024];
    va_list list;
    va_start(list, format);
    vsnprintf(text, sizeof text, format, list);
    va_end(list);
    for (char *c = text; *c; c++) {
        if (*c == '\'') *c = '"';
    }
    json_t *value = json_loads(text, JSON_DECODE_ANY, NULL);
    if (!value || json_object_set_new(into, key, value)) return base_fail_alloc(error, sizeof text);
    return SIFR_OK;
}

static const char *word_of(bool value) {
    return value ? "true" : "false";
}

static sifr_status refuse_file(const text_files *files, const char *wanted, sifr_error *error) {
    return base_fail(error, SIFR_USAGE,
                     "%s: a %s is not made from this file; add tokenizer.json or %s",
                     files->vocabulary_path, files->class->name, wanted);
}

/* A special token that the class cannot do without. */
static sifr_status need(const text_files *files, const char *name, const char **out,
                        sifr_error *error) {
    *out = text_files_special(files, name);
    if (*out) return SIFR_OK;
    return base_fail(error, SIFR_USAGE, "%s: \"%s\" is null, but a %s needs one",
                     files->config_path, name, files->class->name);
}

static sifr_status set_bpe(text_files *files, const char *unknown, bool spaces, bool fuse,
                           bool bytes, bool ignore_merges, sifr_error *error) {
    json_t *model;
    BASE_TRY(set_part(files->root, "model", error,
                      "{'type': 'BPE', 'dropout': null, 'unk_token': null, "
                      "'continuing_subword_prefix': %s, 'end_of_word_suffix': %s, 'fuse_unk': %s, "
                      "'byte_fallback': %s, 'ignore_merges': %s}",
                      spaces ? "''" : "null", spaces ? "''" : "null", word_of(fuse), word_of(bytes),
                      word_of(ignore_merges)));
    model = json_object_get(files->root, "model");
    if (unknown && json_object_set_new(model, "unk_token", json_string(unknown)))
        return base_fail_alloc(error, 64);
    return SIFR_OK;
}

static sifr_status set_metaspace(json_t *root, const char *scheme, const char *before,
                                 const char *after, sifr_error *error) {
    BASE_TRY(set_part(root, "pre_tokenizer", error,
                      "{'type': 'Sequence', 'pretokenizers': [%s{'type': 'Metaspace', "
                      "'replacement': '▁', 'prepend_scheme': '%s', 'split': true}%s]}",
                      before, scheme, after));
    return set_part(root, "decoder", error,
                    "{'type': 'Metaspace', 'replacement': '▁', 'prepend_scheme': '%s', "
                    "'split': true}",
                    scheme);
}

static sifr_status set_charsmap(text_files *files, const text_proto *proto, sifr_error *error) {
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    const uint8_t *bytes = (const uint8_t *)proto->charsmap.bytes;
    size_t size = proto->charsmap.size, used = 0;
    if (!size) return SIFR_OK;
    char *text = malloc(size / 3 * 4 + 8);
    if (!text) return base_fail_alloc(error, size / 3 * 4 + 8);
    for (size_t i = 0; i < size; i += 3) {
        uint32_t bits = (uint32_t)bytes[i] << 16;
        if (i + 1 < size) bits |= (uint32_t)bytes[i + 1] << 8;
        if (i + 2 < size) bits |= bytes[i + 2];
        text[used++] = digits[bits >> 18];
        text[used++] = digits[bits >> 12 & 63];
        text[used++] = i + 1 < size ? digits[bits >> 6 & 63] : '=';
        text[used++] = i + 2 < size ? digits[bits & 63] : '=';
    }
    json_t *value =
        json_pack("{s:s, s:s%}", "type", "Precompiled", "precompiled_charsmap", text, used);
    free(text);
    if (!value || json_object_set_new(files->root, "normalizer", value))
        return base_fail_alloc(error, used);
    return SIFR_OK;
}

static sifr_status make_llama(text_files *files, const text_proto *proto, sifr_error *error) {
    bool prefix = text_files_flag(files, "add_prefix_space", true);
    const char *scheme = !prefix                                   ? "never"
                         : text_files_flag(files, "legacy", false) ? "always"
                                                                   : "first";
    BASE_TRY(set_bpe(files, NULL, false, true, true, false, error));
    BASE_TRY(set_part(files->root, "pre_tokenizer", error,
                      "{'type': 'Metaspace', 'replacement': '▁', 'prepend_scheme': '%s', "
                      "'split': false}",
                      scheme));
    BASE_TRY(set_part(files->root, "decoder", error,
                      "{'type': 'Sequence', 'decoders': [{'type': 'Replace', 'pattern': "
                      "{'String': '▁'}, 'content': ' '}, {'type': 'ByteFallback'}, "
                      "{'type': 'Fuse'}%s]}",
                      prefix ? ", {'type': 'Strip', 'content': ' ', 'start': 1, 'stop': 0}" : ""));
    return text_files_pieces(files, proto, true, 0, error);
}

static sifr_status make_gemma(text_files *files, const text_proto *proto, sifr_error *error) {
    const char *unknown;
    BASE_TRY(need(files, "unk_token", &unknown, error));
    BASE_TRY(set_bpe(files, unknown, false, true, true, false, error));
    BASE_TRY(set_part(files->root, "normalizer", error,
                      "{'type': 'Replace', 'pattern': {'String': ' '}, 'content': '▁'}"));
    BASE_TRY(set_part(files->root, "pre_tokenizer", error,
                      "{'type': 'Split', 'pattern': {'String': ' '}, 'behavior': "
                      "'MergedWithPrevious', 'invert': false}"));
    BASE_TRY(set_part(files->root, "decoder", error,
                      "{'type': 'Sequence', 'decoders': [{'type': 'Replace', 'pattern': "
                      "{'String': '▁'}, 'content': ' '}, {'type': 'ByteFallback'}, "
                      "{'type': 'Fuse'}]}"));
    return text_files_pieces(files, proto, true, 0, error);
}

/* A token that the decoder calls otherwise takes the place of the piece with its id; merges keep
 * the piece's name. */
static sifr_status rename_pieces(text_files *files, const text_proto *proto, sifr_error *error) {
    json_t *vocabulary = json_object_get(json_object_get(files->root, "model"), "vocab");
    const json_t *pair;
    size_t i;
    json_array_foreach(files->decoder, i, pair) {
        int64_t id = json_integer_value(json_array_get(pair, 0));
        const char *content = text_token_content(json_array_get(pair, 1));
        if (id >= (int64_t)proto->count || text_files_id(files, content) >= 0) continue;
        const text_span *old = &proto->pieces[id].text;
        BASE_TRY(text_files_add_word(files, old->bytes, old->size, -1, error));
        BASE_TRY(text_files_add_word(files, content, strlen(content), id, error));
        json_object_deln(vocabulary, old->bytes, old->size);
        if (json_object_set_new(vocabulary, content, json_integer(id)))
            return base_fail_alloc(error, 64);
    }
    return SIFR_OK;
}

/* What sentencepiece would do and sifr does not. */
static sifr_status check_proto(const text_files *files, const text_proto *proto,
                               sifr_error *error) {
    const char *what = proto->whitespace_as_suffix  ? "treat_whitespace_as_suffix"
                       : !proto->escape_whitespaces ? "escape_whitespaces false"
                       : proto->denormalizes        ? "a character map for decoding"
                                                    : NULL;
    if (!what) return SIFR_OK;
    return base_fail(error, SIFR_USAGE,
                     "%s: a sentencepiece model with %s is not supported; save the tokenizer as "
                     "tokenizer.json with transformers",
                     files->vocabulary_path, what);
}

/* The file's own normalizer, as sentencepiece reads it. */
static sifr_status set_sentencepiece(text_files *files, const text_proto *proto,
                                     sifr_error *error) {
    json_t *map = NULL, *normalizer;
    BASE_TRY(set_charsmap(files, proto, error));
    map = json_incref(
        json_object_get(json_object_get(files->root, "normalizer"), "precompiled_charsmap"));
    normalizer = json_pack("{s:s, s:b, s:b, s:o*}", "type", TEXT_SENTENCEPIECE, "add_dummy_prefix",
                           proto->dummy_prefix, "remove_extra_whitespaces",
                           proto->remove_extra_whitespaces, "precompiled_charsmap", map);
    if (!normalizer || json_object_set_new(files->root, "normalizer", normalizer))
        return base_fail_alloc(error, 256);
    return SIFR_OK;
}

/* PreTrainedTokenizerFast: the file alone decides. transformers 5 leaves out the blank in front
 * and the rules for blanks, earlier versions do not; sentencepiece decides. */
static sifr_status make_backend(text_files *files, text_proto *proto, sifr_error *error) {
    bool bpe = proto->model_type != TEXT_PROTO_UNIGRAM;
    bool strip = proto->dummy_prefix || proto->remove_extra_whitespaces;
    static const char replace[] = "{'type': 'Replace', 'pattern': {'String': '▁'}, 'content': ' '}";
    char unknown[TEXT_PIECE_LENGTH + 1];
    BASE_TRY(check_proto(files, proto, error));
    memcpy(unknown, proto->unk_piece.bytes, proto->unk_piece.size);
    unknown[proto->unk_piece.size] = 0;
    if (bpe) BASE_TRY(set_bpe(files, unknown, false, true, proto->byte_fallback, false, error));
    BASE_TRY(set_sentencepiece(files, proto, error));
    BASE_TRY(set_part(files->root, "decoder", error,
                      "{'type': 'Sequence', 'decoders': [%s%s, {'type': 'Fuse'}%s]}", replace,
                      proto->byte_fallback ? ", {'type': 'ByteFallback'}" : "",
                      strip ? ", {'type': 'Strip', 'content': ' ', 'start': 1, 'stop': 0}" : ""));
    BASE_TRY(text_files_pieces(files, proto, bpe, proto->unk_id, error));
    return bpe ? rename_pieces(files, proto, error) : SIFR_OK;
}

/* Pieces that a class puts behind the vocabulary, or in place of its first ones. */
static sifr_status add_piece(text_proto *proto, const char *text, sifr_error *error) {
    BASE_TRY(base_grow(&proto->pieces, &proto->capacity, proto->count + 1, sizeof *proto->pieces,
                       error));
    proto->pieces[proto->count++] = (text_proto_piece){{text, strlen(text)}, 0, TEXT_PIECE_NORMAL};
    return SIFR_OK;
}

enum { EXTRA_IDS = 100, EXTRA_LIMIT = 1 << 16, EXTRA_LENGTH = 40 };

static sifr_status count_extra_ids(const text_files *files, int64_t *out, sifr_error *error) {
    BASE_TRY(
        base_json_int(files->settings, "extra_ids", EXTRA_IDS, out, files->config_path, error));
    if (*out >= 0 && *out <= EXTRA_LIMIT) return SIFR_OK;
    return base_fail(error, SIFR_USAGE, "%s: \"extra_ids\" is %lld; it must be from 0 to %d",
                     files->config_path, (long long)*out, EXTRA_LIMIT);
}

/* The sentinels are special, unless the folder or the model lists special tokens with some of them
 * already. */
static sifr_status add_sentinels(text_files *files, int64_t count, bool listed, sifr_error *error) {
    size_t i, there = 0;
    const json_t *token;
    if (listed) return SIFR_OK;
    json_array_foreach(files->extra, i, token) there +=
        strstr(text_token_content(token), "<extra_id_") != NULL;
    if (there && count > 0 && (int64_t)there != count)
        return base_fail(error, SIFR_USAGE,
                         "%s: \"extra_ids\" is %lld, but the model has %zu such tokens",
                         files->vocabulary_path, (long long)count, there);
    for (int64_t k = 0; k < count && !there; k++) {
        char name[EXTRA_LENGTH];
        snprintf(name, sizeof name, "<extra_id_%lld>", (long long)k);
        if (json_array_append_new(files->extra, json_string(name)))
            return base_fail_alloc(error, 64);
    }
    return SIFR_OK;
}

static sifr_status make_t5(text_files *files, text_proto *proto, bool listed, sifr_error *error) {
    int64_t count;
    char(*names)[EXTRA_LENGTH];
    BASE_TRY(count_extra_ids(files, &count, error));
    BASE_TRY(base_alloc((size_t)count + 1, sizeof *names, &names, error));
    sifr_status status = add_sentinels(files, count, listed, error);
    for (int64_t k = count - 1; k >= 0 && status == SIFR_OK; k--) {
        snprintf(names[k], sizeof *names, "<extra_id_%lld>", (long long)k);
        status = add_piece(proto, names[k], error);
    }
    if (status == SIFR_OK) status = set_charsmap(files, proto, error);
    if (status == SIFR_OK)
        status = set_metaspace(files->root, "always", "{'type': 'WhitespaceSplit'}, ", "", error);
    if (status == SIFR_OK) status = text_files_pieces(files, proto, false, 2, error);
    free(names);
    return status;
}

/* fairseq's order: four special tokens instead of the first three pieces, and a mask behind. */
static sifr_status make_xlm_roberta(text_files *files, text_proto *proto, sifr_error *error) {
    static const char *const order[] = {"bos_token", "pad_token", "eos_token", "unk_token"};
    const char *names[4], *mask;
    bool prefix = text_files_flag(files, "add_prefix_space", true);
    for (int i = 0; i < 4; i++) BASE_TRY(need(files, order[i], &names[i], error));
    BASE_TRY(need(files, "mask_token", &mask, error));
    if (proto->count < 3) return refuse_file(files, "a whole sentencepiece.bpe.model", error);
    BASE_TRY(add_piece(proto, mask, error)); /* room for one more */
    memmove(proto->pieces + 4, proto->pieces + 3, (proto->count - 4) * sizeof *proto->pieces);
    for (size_t i = 0; i < 4; i++)
        proto->pieces[i] = (text_proto_piece){{names[i], strlen(names[i])}, 0, TEXT_PIECE_NORMAL};
    BASE_TRY(add_piece(proto, mask, error));
    BASE_TRY(set_charsmap(files, proto, error));
    BASE_TRY(set_metaspace(files->root, prefix ? "always" : "never",
                           "{'type': 'WhitespaceSplit'}, ", "", error));
    return text_files_pieces(files, proto, false, 3, error);
}

static sifr_status make_deberta(text_files *files, text_proto *proto, sifr_error *error) {
    const char *unknown;
    int64_t unk_id = proto->unk_id;
    BASE_TRY(need(files, "unk_token", &unknown, error));
    for (size_t i = 0; i < proto->count; i++) {
        const text_proto_piece *piece = &proto->pieces[i];
        if (piece->score == 0 && piece->text.size == strlen(unknown) &&
            memcmp(piece->text.bytes, unknown, piece->text.size) == 0)
            unk_id = (int64_t)i;
    }
    BASE_TRY(set_part(
        files->root, "normalizer", error,
        "{'type': 'Sequence', 'normalizers': [%s{'type': 'Replace', 'pattern': {'Regex': "
        "'\\\\s{2,}|[\\\\n\\\\r\\\\t]'}, 'content': ' '}, {'type': 'NFC'}, {'type': 'Strip', "
        "'strip_left': false, 'strip_right': true}]}",
        text_files_flag(files, "do_lower_case", false) ? "{'type': 'Lowercase'}, " : ""));
    BASE_TRY(set_metaspace(files->root,
                           text_files_flag(files, "add_prefix_space", true) ? "always" : "first",
                           text_files_flag(files, "split_by_punct", false)
                               ? "{'type': 'Punctuation', 'behavior': 'Isolated'}, "
                               : "",
                           "", error));
    return text_files_pieces(files, proto, false, unk_id, error);
}

static sifr_status make_bert(text_files *files, sifr_error *error) {
    const json_t *strip = json_object_get(files->settings, "strip_accents");
    const char *unknown;
    BASE_TRY(need(files, "unk_token", &unknown, error));
    BASE_TRY(set_part(files->root, "normalizer", error,
                      "{'type': 'BertNormalizer', 'clean_text': true, 'handle_chinese_chars': %s, "
                      "'strip_accents': %s, 'lowercase': %s}",
                      word_of(text_files_flag(files, "tokenize_chinese_chars", true)),
                      json_is_boolean(strip) ? word_of(json_is_true(strip)) : "null",
                      word_of(text_files_flag(files, "do_lower_case", true))));
    BASE_TRY(set_part(files->root, "pre_tokenizer", error, "{'type': 'BertPreTokenizer'}"));
    BASE_TRY(set_part(files->root, "decoder", error,
                      "{'type': 'WordPiece', 'prefix': '##', 'cleanup': true}"));
    return text_files_word_piece(files, unknown, error);
}

static sifr_status set_byte_level(json_t *root, const char *key, bool prefix, bool trim, bool regex,
                                  sifr_error *error) {
    return set_part(root, key, error,
                    "{'type': 'ByteLevel', 'add_prefix_space': %s, 'trim_offsets': %s, "
                    "'use_regex': %s}",
                    word_of(prefix), word_of(trim), word_of(regex));
}

/* ByteLevel behind the split by a pattern. */
static sifr_status set_pattern(json_t *root, text_split_kind split, bool prefix,
                               sifr_error *error) {
    json_t *byte_level = json_pack("{s:s, s:b, s:b, s:b}", "type", "ByteLevel", "add_prefix_space",
                                   prefix, "trim_offsets", 1, "use_regex", 0);
    json_t *value =
        json_pack("{s:s, s:[{s:s, s:{s:s}, s:s, s:b}, o]}", "type", "Sequence", "pretokenizers",
                  "type", "Split", "pattern", "Regex", text_split_pattern(split), "behavior",
                  "Isolated", "invert", 0, byte_level);
    return value && json_object_set_new(root, "pre_tokenizer", value) == 0
               ? SIFR_OK
               : base_fail_alloc(error, 256);
}

static sifr_status make_byte_level(text_files *files, sifr_error *error) {
    text_class_kind kind = files->class->kind;
    bool prefix = text_files_flag(files, "add_prefix_space", false);
    bool trim = kind != TEXT_CLASS_GPT_NEOX || text_files_flag(files, "trim_offsets", true);
    BASE_TRY(set_bpe(files, NULL, true, false, false, false, error));
    if (kind == TEXT_CLASS_QWEN2 || kind == TEXT_CLASS_GPT_NEOX)
        BASE_TRY(set_part(files->root, "normalizer", error, "{'type': 'NFC'}"));
    if (kind == TEXT_CLASS_QWEN2)
        BASE_TRY(set_pattern(files->root, TEXT_SPLIT_QWEN2, prefix, error));
    else
        BASE_TRY(set_byte_level(files->root, "pre_tokenizer", prefix, trim, true, error));
    BASE_TRY(set_byte_level(files->root, "decoder", true, true, true, error));
    if (kind == TEXT_CLASS_CODEGEN)
        BASE_TRY(set_byte_level(files->root, "post_processor", true, false, true, error));
    return text_files_byte_level(files, error);
}

static sifr_status make_ranks(text_files *files, const char *text, size_t size, sifr_error *error) {
    text_class_kind kind = files->class->kind;
    if (kind != TEXT_CLASS_BACKEND && kind != TEXT_CLASS_LLAMA)
        return refuse_file(files, "what its class reads", error);
    BASE_TRY(set_bpe(files, NULL, false, false, false, true, error));
    BASE_TRY(set_pattern(files->root, TEXT_SPLIT_LLAMA3, false, error));
    BASE_TRY(set_byte_level(files->root, "decoder", true, true, true, error));
    BASE_TRY(set_byte_level(files->root, "post_processor", true, false, true, error));
    return text_files_ranks(files, text, size, error);
}

/* Control and user-defined pieces are added tokens, unless the folder lists its own. */
static sifr_status take_pieces(text_files *files, const text_proto *proto, bool *listed,
                               sifr_error *error) {
    *listed = files->extra != NULL;
    if (*listed) return SIFR_OK;
    files->extra = json_array();
    for (size_t i = 0; i < proto->count; i++) {
        const text_proto_piece *piece = &proto->pieces[i];
        if (piece->type != TEXT_PIECE_CONTROL && piece->type != TEXT_PIECE_USER) continue;
        json_t *token =
            json_pack("{s:s%, s:b, s:b}", "content", piece->text.bytes, piece->text.size,
                      "normalized", 0, "special", piece->type == TEXT_PIECE_CONTROL);
        if (!token || json_array_append_new(files->extra, token)) return base_fail_alloc(error, 64);
    }
    return SIFR_OK;
}

static void set_default(text_files *files, const char *name, int64_t id, const text_span *piece) {
    if (id >= 0 && !json_object_get(files->settings, name))
        json_object_set_new(files->settings, name, json_stringn(piece->bytes, piece->size));
}

static sifr_status make_from_proto(text_files *files, const char *text, size_t size,
                                   sifr_error *error) {
    text_proto proto = {0};
    bool listed;
    sifr_status status = text_proto_read(text, size, files->vocabulary_path, &proto, error);
    if (status == SIFR_OK) status = take_pieces(files, &proto, &listed, error);
    if (status != SIFR_OK) goto done;
    switch (files->class->kind) {
    case TEXT_CLASS_BACKEND:
        set_default(files, "bos_token", proto.bos_id, &proto.bos_piece);
        set_default(files, "eos_token", proto.eos_id, &proto.eos_piece);
        set_default(files, "unk_token", proto.unk_id, &proto.unk_piece);
        status = make_backend(files, &proto, error);
        break;
    case TEXT_CLASS_LLAMA:
        status = make_llama(files, &proto, error);
        break;
    case TEXT_CLASS_GEMMA:
        status = make_gemma(files, &proto, error);
        break;
    case TEXT_CLASS_T5:
        status = make_t5(files, &proto, listed, error);
        break;
    case TEXT_CLASS_XLM_ROBERTA:
        status = make_xlm_roberta(files, &proto, error);
        break;
    case TEXT_CLASS_DEBERTA_V2:
        status = make_deberta(files, &proto, error);
        break;
    default:
        status = refuse_file(files, "what its class reads", error);
    }
done:
    text_proto_free(&proto);
    return status;
}

static sifr_status make_from_bytes(text_files *files, const char *text, size_t size,
                                   sifr_error *error) {
    return text_is_ranks(text, size) ? make_ranks(files, text, size, error)
                                     : make_from_proto(files, text, size, error);
}

static sifr_status make_from_file(text_files *files, sifr_error *error) {
    char *text;
    size_t size;
    if (files->bytes) return make_from_bytes(files, files->bytes, files->byte_count, error);
    BASE_TRY(base_read_file(files->vocabulary_path, TEXT_VOCABULARY_LIMIT, &text, &size, error));
    sifr_status status = make_from_bytes(files, text, size, error);
    free(text);
    return status;
}

sifr_status text_files_model(text_files *files, sifr_error *error) {
    const char *name = strrchr(files->vocabulary_path, '/');
    json_t *extra = json_object_get(files->settings, "extra_special_tokens");
    name = name ? name + 1 : files->vocabulary_path;
    if (json_is_array(extra)) files->extra = json_incref(extra);
    files->root = json_pack("{s:s, s:n, s:n, s:[], s:n, s:n, s:n, s:n, s:n}", "version", "1.0",
                            "truncation", "padding", "added_tokens", "normalizer", "pre_tokenizer",
                            "post_processor", "decoder", "model");
    files->added_list = json_array();
    if (!files->root || !files->added_list) return base_fail_alloc(error, 64);
    if (strcmp(name, "vocab.txt") == 0)
        BASE_TRY(make_bert(files, error));
    else if (strcmp(name, "vocab.json") == 0)
        BASE_TRY(make_byte_level(files, error));
    else
        BASE_TRY(make_from_file(files, error));
    /* The older list counts where neither the newer one nor the pieces say which are special. */
    extra = json_object_get(files->settings, "additional_special_tokens");
    if (!files->extra && json_is_array(extra)) files->extra = json_incref(extra);
    return SIFR_OK;
}
