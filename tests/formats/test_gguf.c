/* GGUF files that sifr writes, against what llama.cpp's converter wrote for the same folders, and
 * what is refused. */
#include <math.h>
#include <sys/stat.h>

#include "support/scratch.h"

#include "base/half.h"
#include "base/json.h"
#include "base/sha256.h"
#include "formats/gguf/gguf_export.h"
#include "formats/gguf/gguf_rope.h"
#include "formats/gguf/gguf_tokens.h"

static sifr_error error;

static const char *golden(const char *name) {
    static char paths[8][1024];
    static int next;
    char *path = paths[next++ % 8];
    snprintf(path, sizeof paths[0], "%s/tests/golden/gguf/%s",
             getenv("SOURCE") ? getenv("SOURCE") : ".", name);
    return path;
}

/* --- a reader of the file --- */

typedef struct gguf_reader {
    const uint8_t *bytes;
    size_t size, at;
} gguf_reader;

static const uint8_t *take(gguf_reader *r, size_t count) {
    assert_true(count <= r->size - r->at);
    r->at += count;
    return r->bytes + r->at - count;
}

static uint64_t number(gguf_reader *r, int bytes) {
    const uint8_t *from = take(r, (size_t)bytes);
    uint64_t value = 0;
    for (int i = bytes - 1; i >= 0; i--) value = value << 8 | from[i];
    return value;
}

static void text(gguf_reader *r, char out[128]) {
    size_t size = (size_t)number(r, 8);
    assert_true(size < 128);
    memcpy(out, take(r, size), size);
    out[size] = 0;
}

static void skip_value(gguf_reader *r, uint64_t kind) {
    if (kind == FORMATS_GGUF_TEXT) {
        take(r, (size_t)number(r, 8));
    } else if (kind == FORMATS_GGUF_ARRAY) {
        uint64_t item = number(r, 4), count = number(r, 8);
        for (uint64_t i = 0; i < count; i++) skip_value(r, item);
    } else {
        take(r, kind == FORMATS_GGUF_BOOL ? 1 : 4);
    }
}

static void same_digest(const char *what, const json_t *wanted, size_t at, const void *data,
                        size_t size) {
    char digest[65];
    base_sha256_hex(data, size, digest);
    if (strcmp(digest, json_string_value(json_array_get(wanted, at))) != 0)
        fail_msg("%s has another value than the converter gave it", what);
}

static void compare_meta(gguf_reader *r, uint64_t count, const json_t *wanted) {
    char key[128];
    assert_int_equal(count, json_object_size(wanted));
    for (uint64_t i = 0; i < count; i++) {
        text(r, key);
        const json_t *entry = json_object_get(wanted, key);
        if (!entry) fail_msg("%s: the converter has no such key", key);
        uint64_t kind = number(r, 4);
        if ((json_int_t)kind != json_integer_value(json_array_get(entry, 0)))
            fail_msg("%s: of type %d", key, (int)kind);
        size_t begin = r->at;
        skip_value(r, kind);
        same_digest(key, entry, 1, r->bytes + begin, r->at - begin);
    }
}

enum { MOST_TENSORS = 128 };

static void compare_tensors(gguf_reader *r, uint64_t count, const json_t *wanted) {
    struct {
        char name[128];
        uint64_t bytes, offset;
    } list[MOST_TENSORS];
    assert_int_equal(count, json_object_size(wanted));
    assert_true(count <= MOST_TENSORS);
    for (uint64_t i = 0; i < count; i++) {
        int64_t columns = 0, rows = 1;
        text(r, list[i].name);
        const json_t *entry = json_object_get(wanted, list[i].name);
        if (!entry) fail_msg("%s: the converter has no such tensor", list[i].name);
        const json_t *shape = json_array_get(entry, 1);
        uint64_t rank = number(r, 4);
        assert_int_equal(rank, json_array_size(shape));
        for (uint64_t d = 0; d < rank; d++) {
            int64_t size = (int64_t)number(r, 8);
            assert_int_equal(size, json_integer_value(json_array_get(shape, (size_t)d)));
            if (d == 0)
                columns = size;
            else
                rows *= size;
        }
        uint64_t type = number(r, 4);
        if ((json_int_t)type != json_integer_value(json_array_get(entry, 0)))
            fail_msg("%s: of type %d", list[i].name, (int)type);
        list[i].bytes = (uint64_t)(rows * formats_gguf_row_bytes((formats_gguf_type)type, columns));
        list[i].offset = number(r, 8);
    }
    size_t base = (r->at + 31) / 32 * 32;
    for (uint64_t i = 0; i < count; i++) {
        assert_int_equal(list[i].offset % 32, 0);
        r->at = base + (size_t)list[i].offset;
        same_digest(list[i].name, json_object_get(wanted, list[i].name), 2,
                    take(r, (size_t)list[i].bytes), (size_t)list[i].bytes);
    }
    r->at = (r->at + 31) / 32 * 32;
    assert_int_equal(r->at, r->size);
}

static void compare_file(const char *path, const char *wanted_path) {
    json_t *wanted;
    char *bytes;
    gguf_reader r = {0};
    if (base_json_load(wanted_path, 1 << 20, &wanted, &error)) fail_msg("%s", error.message);
    assert_int_equal(base_read_file(path, 1 << 22, &bytes, &r.size, &error), SIFR_OK);
    r.bytes = (const uint8_t *)bytes;
    assert_memory_equal(take(&r, 4), "GGUF", 4);
    assert_int_equal(number(&r, 4), 3);
    uint64_t tensors = number(&r, 8), values = number(&r, 8);
    compare_meta(&r, values, json_object_get(wanted, "meta"));
    compare_tensors(&r, tensors, json_object_get(wanted, "tensors"));
    free(bytes);
    json_decref(wanted);
}

static void like_the_converter(void **state) {
    (void)state;
    static const char *const cases[][2] = {
        {"tiny-gpt2", "f16"},
        {"tiny-gpt2", "q8_0"},
        {"Llama-3.2-tiny-Instruct", "f32"},
        {"Llama-3.2-tiny-Instruct", "f16"},
        {"Llama-3.2-tiny-Instruct", "bf16"},
        {"Llama-3.2-tiny-Instruct", "q8_0"},
        {"llama2-7b-chat", "f32"},
        {"llama2-7b-chat", "q8_0"},
        {"mistral", "f16"},
        {"qwen2", "f16"},
        {"qwen3", "f16"},
        {"smollm3", "f16"},
        {"granite", "f16"},
        {"olmo2", "f16"},
        {"starcoder2", "f16"},
        {"gpt_neox", "f16"},
        {"phi3", "f16"},
        {"phi4", "f16"},
        {"gemma", "f16"},
        {"gemma2", "f16"},
        {"gemma3", "f16"},
        {"gemma-json", "f16"},
        {"olmo3", "f16"},
        {"glm4", "f16"},
        {"ministral3", "f16"},
        {"added", "f16"},
        {"gemma4", "f16"},
        {"lfm2", "f16"},
        {"qwen3_5", "f16"},
        {"qwen3_5", "q8_0"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char name[128];
        formats_gguf_type type;
        formats_gguf_made made;
        const char *path = scratch_path("own.gguf");
        assert_true(formats_gguf_type_find(cases[i][1], &type));
        if (formats_gguf_export(golden(cases[i][0]), path, type, NULL, &made, &error))
            fail_msg("%s", error.message);
        snprintf(name, sizeof name, "%s-%s.json", cases[i][0], cases[i][1]);
        compare_file(path, golden(name));
        struct stat info;
        assert_int_equal(stat(path, &info), 0);
        assert_int_equal(made.bytes, info.st_size);
        assert_int_equal(unlink(path), 0);
    }
    formats_gguf_type type;
    assert_false(formats_gguf_type_find("q4_0", &type));
}

/* --- what is refused --- */

static const char *const parts[] = {"config.json", "tokenizer.json", "tokenizer_config.json",
                                    "tokenizer.model", "model.safetensors"};

/* A copy of a golden folder, in which `from` in the file `part` became `to`. */
static const char *changed(const char *name, const char *part, const char *from, const char *to) {
    static int made;
    char folder[64], path[256];
    snprintf(folder, sizeof folder, "changed-%d", made++);
    assert_int_equal(mkdir(scratch_path(folder), 0777), 0);
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
        char source[1024], *bytes;
        size_t size;
        snprintf(source, sizeof source, "%s/%s", golden(name), parts[i]);
        if (!base_is_file(source)) continue;
        assert_int_equal(base_read_file(source, 1 << 22, &bytes, &size, &error), SIFR_OK);
        snprintf(path, sizeof path, "%s/%s", folder, parts[i]);
        if (strcmp(parts[i], part) != 0) {
            scratch_write(path, bytes, size);
        } else if (to) {
            char *at = memmem(bytes, size, from, strlen(from)), *text = malloc(size + strlen(to));
            if (!at) fail_msg("%s: no %s", part, from);
            assert_non_null(text);
            size_t before = (size_t)(at - bytes), after = size - before - strlen(from);
            memcpy(text, bytes, before);
            memcpy(text + before, to, strlen(to));
            memcpy(text + before + strlen(to), at + strlen(from), after);
            scratch_write(path, text, before + strlen(to) + after);
            free(text);
        }
        free(bytes);
    }
    return scratch_path(folder);
}

static void refused(const char *folder, const char *part) {
    formats_gguf_made made;
    error = (sifr_error){0};
    if (formats_gguf_export(folder, scratch_path("no.gguf"), FORMATS_GGUF_F16, NULL, &made,
                            &error) == SIFR_OK)
        fail_msg("%s: accepted, not: %s", folder, part);
    assert_message(&error, part);
    assert_false(base_is_file(scratch_path("no.gguf")));
}

/* llama.cpp takes a text up to its first NUL; JSON can have none. */
static void template_with_nul(void **state) {
    (void)state;
    const char *folder = changed("Llama-3.2-tiny-Instruct", "tokenizer_config.json",
                                 "\"chat_template\"", "\"no_template\"");
    char path[BASE_PATH_LENGTH];
    snprintf(path, sizeof path, "%s/chat_template.jinja", folder);
    FILE *file = fopen(path, "wb");
    assert_non_null(file);
    assert_int_equal(fwrite("{{ bos_token }}\0{{ messages }}", 1, 30, file), 30);
    assert_int_equal(fclose(file), 0);
    refused(folder, "chat_template.jinja: a NUL behind 15 bytes, where llama.cpp would end");
}

/* What llama.cpp reads of none of the keys, or reads otherwise. */
static void other_readings(void **state) {
    (void)state;
    static const char *const cases[][5] = {
        {"gemma2", "config.json", "\"query_pre_attn_scalar\": 6", "\"query_pre_attn_scalar\": 256",
         "\"query_pre_attn_scalar\" is 256; llama.cpp's gemma2 of 2 layers scales attention by 6"},
        {"gemma3", "config.json", "\"query_pre_attn_scalar\": 6,", "",
         "\"query_pre_attn_scalar\" is 256; llama.cpp's gemma3 of 7 layers scales attention by 6"},
        {"qwen2", "config.json", "\"factor\": 4.0", "\"factor\": 4.0, \"beta_fast\": 24",
         "\"beta_fast\": llama.cpp's qwen2 has yarn's beta_fast of 32"},
        {"qwen2", "config.json", "\"factor\": 4.0", "\"factor\": 4.0, \"attention_factor\": 1",
         "is 1; llama.cpp's qwen2 has 1.13863 for a factor of 4 alone"},
        {"qwen2", "config.json", "\"rope_type\": \"yarn\"", "\"rope_type\": \"llama3\"",
         "llama.cpp's qwen2 has no place for it"},
        {"qwen3", "config.json", "\"attention_bias\": false", "\"attention_bias\": true",
         "llama.cpp's qwen3 has no bias behind attention"},
        {"smollm3", "config.json", "1,\n    0", "1,\n    1",
         "has every fourth layer without rotation"},
        {"starcoder2", "config.json", "\"use_bias\": true", "\"use_bias\": false",
         "llama.cpp's starcoder2 needs biases"},
        {"olmo2", "config.json", "\"tie_word_embeddings\": false", "\"tie_word_embeddings\": true",
         "llama.cpp's olmo2 needs an lm_head of its own"},
        {"mistral", "config.json", "\"hidden_act\": \"silu\"", "\"hidden_act\": \"gelu\"",
         "\"hidden_act\" is gelu; llama.cpp's llama has silu alone"},
        {"gemma4", "config.json", "\"rope_type\": \"proportional\"", "\"rope_type\": \"default\"",
         "llama.cpp's gemma4 has rotary positions of type proportional, with no factor"},
        {"gemma4", "config.json", "\"rope_type\": \"proportional\"",
         "\"factor\": 2.0, \"rope_type\": \"proportional\"", "proportional, with no factor"},
        {"gemma4", "config.json", "\"head_dim\": 10", "\"head_dim\": 8",
         "\"per_layer_config\": \"2\": llama.cpp's gemma4 has one size of heads"},
        {"gemma4", "config.json", "\"1\": {", "\"7\": {",
         "\"per_layer_config\": \"7\": llama.cpp's"},
        {"gemma4", "config.json", "\"num_kv_shared_layers\": 0", "\"num_kv_shared_layers\": 1",
         "\"num_kv_shared_layers\" is 1: Gemma 4's E2B and E4B are not supported"},
        {"gemma4", "config.json", "\"hidden_size_per_layer_input\": 0",
         "\"hidden_size_per_layer_input\": 4",
         "\"hidden_size_per_layer_input\" is 4: Gemma 4's E2B and E4B are not supported"},
        {"gemma4", "config.json", "\"hidden_size_per_layer_input\": 0,", "",
         "\"hidden_size_per_layer_input\" is 256: Gemma 4's E2B and E4B are not supported"},
        {"gemma4", "config.json", "\"attention_bias\": false", "\"attention_bias\": true",
         "llama.cpp's gemma4 has no bias behind attention"},
        {"gemma4", "tokenizer.json", "\"byte_fallback\":true", "\"byte_fallback\":false",
         "\"byte_fallback\" is not set; llama.cpp's gemma4 writes blanks as U+2581"},
        {"gemma4", "tokenizer.json", "\"normalizer\":{\"type\":\"Replace\"",
         "\"normalizer\":{\"type\":\"Prepend\"", "its \"normalizer\" is another"},
        {"gemma4", "tokenizer.json", "\"pre_tokenizer\":{\"type\":\"Split\"",
         "\"pre_tokenizer\":{\"type\":\"Splat\"", "its \"pre_tokenizer\" is another"},
        {"gemma4", "tokenizer.json", "\"merges\":[[\"t\",\"h\"]", "\"merges\":[[\"t\",\"h\\n\"]",
         "it merges an end of line with other text"},
        {"gemma4", "tokenizer.json",
         "\"single\":[{\"SpecialToken\":{\"id\":\"<s>\",\"type_id\":0}},", "\"single\":[",
         "this tokenizer puts no \"bos_token\" before a text"},
        {"lfm2", "config.json", "\"conv_bias\": false", "\"conv_bias\": true",
         "\"conv_bias\": llama.cpp's lfm2 has no bias in convolutions"},
        {"lfm2", "config.json", "\"conv\",", "", "\"layer_types\" must have 3 names"},
        {"lfm2", "config.json", "\"hidden_size\": 16", "\"hidden_size\": 16, \"head_dim\": 8",
         "\"head_dim\" is 8; llama.cpp's lfm2 has hidden_size / num_attention_heads = 4 alone"},
        {"lfm2", "config.json", "\"block_multiple_of\": 8", "\"block_multiple_of\": 0",
         "\"block_multiple_of\" is out of range"},
        {"lfm2", "config.json", "\"conv_L_cache\": 3", "\"conv_L_cache\": -3",
         "\"conv_L_cache\" gives -3"},
        {"qwen3_5", "config.json", "\"linear_value_head_dim\": 6", "\"linear_value_head_dim\": 3",
         "\"linear_value_head_dim\" is 3; llama.cpp's qwen35 has \"linear_key_head_dim\", 6, "
         "alone"},
        {"qwen3_5", "config.json", "\"linear_num_value_heads\": 4", "\"linear_num_value_heads\": 5",
         "is no multiple of \"linear_num_key_heads\" 2"},
        {"qwen3_5", "config.json", "\"linear_num_value_heads\": 4", "\"linear_num_value_heads\": 8",
         "does not have the 8 value heads"},
        {"qwen3_5", "config.json", "\"hidden_size\": 16",
         "\"hidden_size\": 16, \"full_attention_interval\": 0",
         "\"full_attention_interval\" gives 0"},
        {"qwen3_5", "config.json", "\"attention_bias\": false", "\"attention_bias\": true",
         "llama.cpp's qwen35 has no bias behind attention"},
        {"qwen3_5", "config.json", "\"mrope_section\": [\n      11,",
         "\"mrope_section\": [\n      0,", "\"mrope_section\" does not give each of 4 pairs"},
        {"tiny-gpt2", "tokenizer.json", "\"add_prefix_space\":false", "\"add_prefix_space\":true",
         "how it splits text has no name in llama.cpp"},
        {"added", "tokenizer.json", "\"<0x41>\"", "\"<0x4_>\"",
         "id 69 is \"<0x4_>\" in tokenizer.json and \"<0x41>\" in the files beside it"},
        {"added", "tokenizer.json", "\"normalizer\": null",
         "\"normalizer\": {\"type\": \"Lowercase\"}",
         "llama.cpp would split \"The quick brown fox\""},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        refused(changed(cases[i][0], cases[i][1], cases[i][2], cases[i][3]), cases[i][4]);
}

static void refusals(void **state) {
    (void)state;
    static const char llama[] = "Llama-3.2-tiny-Instruct", gpt2[] = "tiny-gpt2";
    static const char *const cases[][5] = {
        {llama, "config.json", "\"llama\"", "\"mamba\"",
         "model_type \"mamba\" is not supported with --format gguf yet (supported: gpt2, llama, "
         "mistral, "},
        {llama, "config.json", "\"LlamaForCausalLM\"", "\"LlamaForTokenClassification\"",
         "architecture LlamaForTokenClassification is not supported"},
        {llama, "config.json", "\"rope_type\": \"llama3\"", "\"rope_type\": \"dynamic\"",
         "rope_type \"dynamic\" is not supported"},
        {llama, "config.json", "\"vocab_size\": 313", "\"vocab_size\": 12", "\"vocab_size\""},
        {llama, "config.json", "\"vocab_size\": 313", "\"vocab_size\": 2000000000",
         "\"vocab_size\" is 2000000000, not 1 to"},
        {llama, "config.json", "\"num_attention_heads\": 4", "\"num_attention_heads\": 5",
         "its rows are no 5 heads"},
        {llama, "config.json", "\"num_attention_heads\": 4", "\"num_attention_heads\": 0",
         "\"num_attention_heads\" is 0"},
        {llama, "config.json", "\"head_dim\": 8", "\"head_dim\": -8", "\"head_dim\""},
        {llama, "config.json", "\"hidden_size\": 32", "\"hidden_size\": \"32\"", "hidden_size"},
        {llama, "tokenizer.json", NULL, NULL, "has no tokenizer.json"},
        {llama, "config.json", NULL, NULL, "has no config.json"},
        {llama, "model.safetensors", NULL, NULL, "holds neither model.safetensors"},
        {llama, "model.safetensors", "mlp.up_proj.weight", "mlp.do_proj.weight",
         "tensor model.layers.0.mlp.do_proj.weight has no name in llama.cpp's llama"},
        {llama, "tokenizer.json", "\"type\":\"BPE\"", "\"type\":\"WordLevel\"",
         "a tokenizer of type WordLevel is not supported"},
        {llama, "tokenizer.json", "{1,3}", "{1,5}", "tokenizer.json"},
        {gpt2, "config.json", "\"n_inner\": null", "\"n_inner\": 64",
         "\"n_inner\" is 64; llama.cpp's GPT-2 has 4 x n_embd = 128 alone"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        refused(changed(cases[i][0], cases[i][1], cases[i][2], cases[i][3]), cases[i][4]);
    refused(scratch_path("nowhere"), "no model folder");
    /* Nothing is overwritten. */
    scratch_text("no.gguf", "mine");
    formats_gguf_made made;
    assert_int_equal(formats_gguf_export(golden(gpt2), scratch_path("no.gguf"), FORMATS_GGUF_F16,
                                         NULL, &made, &error),
                     SIFR_USAGE);
    assert_message(&error, "exists");
    assert_int_equal(unlink(scratch_path("no.gguf")), 0);
}

/* --- tokenizer.model --- */

static void refused_pieces(const char *bytes, size_t size, const char *part) {
    formats_gguf_token list[4];
    formats_gguf_tokens tokens = {.list = list, .count = 4};
    assert_int_equal(formats_gguf_sentencepiece_parse(bytes, size, "t", &tokens, &error),
                     SIFR_FAILED);
    assert_message(&error, part);
}

#define PIECES(bytes, part) refused_pieces(bytes, sizeof(bytes) - 1, part)

static void hostile_pieces(void **state) {
    (void)state;
    PIECES("", "has no pieces");
    PIECES("\x10\x01", "has no pieces");
    PIECES("\x0a", "piece 0 is broken");
    PIECES("\x0a\x05\x0a\x01", "piece 0 is broken");
    PIECES("\x0a\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", "piece 0 is broken");
    PIECES("\x0a\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", "piece 0 is broken");
    PIECES("\x0a\x03\x0a\x01"
           "a"
           "\x0a\x02\x0a\x07",
           "piece 1 is broken");
    PIECES("\x0a\x03\x15\x01\x01", "piece 0 is broken");
    PIECES("\x0b", "piece 0 is broken");
    /* More pieces than the model has tokens: the rest is left out. */
    static const char many[] = "\x0a\x03\x0a\x01"
                               "a"
                               "\x0a\x03\x0a\x01"
                               "b"
                               "\x0a\x05\x0a\x01"
                               "c"
                               "\x18\x03";
    formats_gguf_token list[2];
    formats_gguf_tokens tokens = {.list = list, .count = 2};
    assert_int_equal(formats_gguf_sentencepiece_parse(many, sizeof many - 1, "t", &tokens, &error),
                     SIFR_OK);
    assert_int_equal(list[1].size, 1);
    assert_int_equal(list[1].text[0], 'b');
    assert_int_equal(list[1].type, FORMATS_GGUF_TOKEN_NORMAL);
}

/* --- elements --- */

static void q8_0_blocks(void **state) {
    (void)state;
    float values[2 * FORMATS_GGUF_BLOCK] = {0};
    uint8_t block[2 * 34];
    values[0] = 127;
    values[1] = -127;
    values[2] = 2.5F; /* halves go away from zero */
    values[3] = -2.5F;
    values[4] = 0.49F;
    formats_gguf_convert(FORMATS_GGUF_Q8_0, values, 2 * FORMATS_GGUF_BLOCK, block);
    uint16_t scale;
    memcpy(&scale, block, sizeof scale);
    assert_int_equal(scale, base_half_from_float(1));
    static const int8_t wanted[] = {127, -127, 3, -3, 0, 0};
    assert_memory_equal(block + 2, wanted, sizeof wanted);
    for (int i = 34; i < 68; i++) assert_int_equal(block[i], 0);
    values[0] = INFINITY; /* no value of a byte is right, and none is undefined */
    values[1] = NAN;
    formats_gguf_convert(FORMATS_GGUF_Q8_0, values, FORMATS_GGUF_BLOCK, block);
}

static void sha256(void **state) {
    (void)state;
    static const struct {
        const char *text, *digest;
    } cases[] = {
        /* FIPS 180-4, examples; lengths on both sides of a block's end */
        {"", "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"},
        {"abc", "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"},
        {"abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq",
         "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char digest[65];
        base_sha256_hex(cases[i].text, strlen(cases[i].text), digest);
        assert_string_equal(digest, cases[i].digest);
    }
}

/* Bits of PyTorch's power, which is not always the nearest float. */
static void rope_freqs(void **state) {
    (void)state;
    json_t *cases, *one;
    size_t i;
    if (base_json_load(golden("rope_freqs.json"), 1 << 16, &cases, &error))
        fail_msg("%s", error.message);
    assert_int_equal(json_array_size(cases), 6);
    json_array_foreach(cases, i, one) {
        float factors[128];
        char digest[65];
        json_int_t dimensions = json_integer_value(json_object_get(one, "dimensions"));
        formats_gguf_llama3_factors(json_object_get(one, "rope"), dimensions, factors);
        base_sha256_hex(factors, (size_t)dimensions / 2 * sizeof *factors, digest);
        assert_string_equal(digest, json_string_value(json_object_get(one, "digest")));
    }
    json_decref(cases);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(like_the_converter), cmocka_unit_test(other_readings),
        cmocka_unit_test(refusals),           cmocka_unit_test(template_with_nul),
        cmocka_unit_test(rope_freqs),         cmocka_unit_test(hostile_pieces),
        cmocka_unit_test(q8_0_blocks),        cmocka_unit_test(sha256),
    };
    return cmocka_run_group_tests(tests, scratch_setup, scratch_teardown);
}
