/* The public headers for text: what they give is what the rooms below give; each run, chat and
 * refusal of a caller leaves a generator that goes on.
 * in test_asan */
#include "support/scratch.h"

#include <jansson.h>

#include "sifr/sifr.h"

enum { TEXTS = 3, NEW = 12 };

static const char *const prompts[TEXTS] = {"The sea", "a key", "bf16"};

/* What a caller gets of one text or several. */
typedef struct taken {
    char pieces[TEXTS][512], made[TEXTS][512];
    int64_t ids[TEXTS];
    size_t piece_count, begun, ended;
    size_t most_pieces; /* the piece behind these is refused; 0: all are taken */
    bool silent;        /* it is refused without a message */
} taken;

static sifr_context *context;
static char lines[4096]; /* of the log */

static void keep_line(void *user, sifr_log_level level, const char *line) {
    (void)user, (void)level;
    strncat(lines, line, sizeof lines - strlen(lines) - 1);
}

static int setup(void **state) {
    sifr_context_options options = {.size = sizeof options, .log = {keep_line, NULL}};
    return scratch_setup(state) || sifr_context_create(&options, &context, NULL) != SIFR_OK;
}

static int teardown(void **state) {
    sifr_context_free(context);
    return scratch_teardown(state);
}

static const char *model(const char *name) {
    static char path[512];
    snprintf(path, sizeof path, "%s/tests/golden/models/%s", getenv("SOURCE"), name);
    return path;
}

static sifr_generator *open_generator(const char *name, sifr_generator_options options) {
    int64_t tokens = NEW;
    sifr_generator *generator;
    sifr_error error = {0};
    options.size = sizeof options;
    options.model = model(name);
    options.threads = 1;
    if (!options.max_new_tokens) options.max_new_tokens = &tokens;
    if (sifr_generator_open(context, &options, &generator, &error) != SIFR_OK)
        fail_msg("%s", error.message);
    return generator;
}

static void add(sifr_generator *generator, const char *text) {
    sifr_prompt prompt = {.size = sizeof prompt, .text = text, .text_size = strlen(text)};
    assert_int_equal(sifr_generator_add(generator, &prompt, NULL), SIFR_OK);
}

static sifr_status begins(void *user, size_t text, sifr_error *error) {
    taken *t = user;
    assert_non_null(error);
    assert_int_equal(text, t->begun++);
    return SIFR_OK;
}

static sifr_status take(void *user, size_t text, const char *bytes, size_t size,
                        sifr_error *error) {
    taken *t = user;
    if (t->most_pieces && t->piece_count == t->most_pieces) {
        if (!t->silent) snprintf(error->message, sizeof error->message, "no more");
        return SIFR_LOST_RANK;
    }
    assert_true(size > 0 && strlen(t->pieces[text]) + size < sizeof t->pieces[text]);
    strncat(t->pieces[text], bytes, size);
    t->piece_count++;
    return SIFR_OK;
}

static sifr_status ended(void *user, const sifr_generated *text, sifr_error *error) {
    taken *t = user;
    size_t number = t->ended++;
    (void)error;
    assert_int_equal(text->size, sizeof *text);
    assert_int_equal(text->prompt, number);
    snprintf(t->made[number], sizeof t->made[number], "%.*s", (int)text->text_size, text->text);
    t->ids[number] = (int64_t)text->id_count;
    return SIFR_OK;
}

static sifr_status run(sifr_generator *generator, taken *t, sifr_error *error) {
    sifr_generate_calls calls = {sizeof calls, t, begins, take, ended};
    size_t most = t->most_pieces;
    bool silent = t->silent;
    *t = (taken){.most_pieces = most, .silent = silent};
    return sifr_generator_run(generator, &calls, error);
}

/* Three texts two at a time, each alone, and once more. */
static void test_runs(void **state) {
    (void)state;
    sifr_generator *two = open_generator("gpt2", (sifr_generator_options){.batch_size = 2}),
                   *one = open_generator("gpt2", (sifr_generator_options){0});
    taken together = {0}, alone = {0};
    for (int round = 0; round < 2; round++) {
        for (int i = 0; i < TEXTS; i++) add(two, prompts[i]);
        assert_int_equal(run(two, &together, NULL), SIFR_OK);
        assert_int_equal(together.ended, TEXTS);
        for (int i = 0; i < TEXTS; i++) {
            add(one, prompts[i]);
            assert_int_equal(run(one, &alone, NULL), SIFR_OK);
            assert_int_equal(together.ids[i], NEW);
            assert_true(together.made[i][0] != '\0');
            assert_string_equal(together.pieces[i], together.made[i]);
            assert_string_equal(alone.made[0], together.made[i]);
        }
    }
    sifr_generator_free(two);
    sifr_generator_free(one);
}

/* The texts of a prompt are drawn each by itself, and a seed repeats them. */
static void test_samples(void **state) {
    (void)state;
    double temperature = 2;
    int64_t seed = 7;
    sifr_generator *generator = open_generator(
        "gpt2", (sifr_generator_options){.samples = 2, .temperature = &temperature, .seed = &seed});
    char first[2][512];
    for (int round = 0; round < 2; round++) {
        taken t = {0};
        sifr_generate_calls calls = {.size = sizeof calls, .user = &t, .piece = take};
        add(generator, "The sea");
        assert_int_equal(sifr_generator_run(generator, &calls, NULL), SIFR_OK);
        assert_string_not_equal(t.pieces[0], t.pieces[1]);
        for (int i = 0; i < 2; i++) {
            if (round) assert_string_equal(t.pieces[i], first[i]);
            strcpy(first[i], t.pieces[i]);
        }
    }
    sifr_generator_free(generator);
}

static void test_ended_by_caller(void **state) {
    (void)state;
    sifr_generator *generator = open_generator("gpt2", (sifr_generator_options){0});
    taken t = {.most_pieces = 2};
    sifr_error error = {0};
    add(generator, prompts[0]);
    assert_int_equal(run(generator, &t, &error), SIFR_LOST_RANK);
    assert_string_equal(error.message, "no more");
    assert_int_equal(error.status, SIFR_LOST_RANK);
    assert_int_equal(t.ended, 0);
    t.silent = true;
    add(generator, prompts[0]);
    error = (sifr_error){0};
    assert_int_equal(run(generator, &t, &error), SIFR_LOST_RANK);
    assert_string_equal(error.message, "a callback of the program ended it");
    assert_int_equal(run(generator, &t, &error), SIFR_USAGE);
    assert_string_equal(error.message, "no prompt was added; call sifr_generator_add first");
    t.most_pieces = 0;
    add(generator, prompts[1]);
    sifr_generator_clear(generator); /* of a prompt that is not wanted after all */
    add(generator, prompts[0]);
    assert_int_equal(run(generator, &t, NULL), SIFR_OK);
    assert_int_equal(t.ended, 1);
    sifr_generator_free(generator);
}

static void refuse(sifr_generator_options options, const char *message) {
    sifr_generator *generator;
    sifr_error error = {0};
    options.size = sizeof options;
    assert_int_equal(sifr_generator_open(context, &options, &generator, &error), SIFR_USAGE);
    if (strncmp(error.message, message, strlen(message)) != 0) fail_msg("%s", error.message);
}

static void test_refused(void **state) {
    (void)state;
    const double two = 2, zero = 0;
    const int64_t minus = -1;
    const char *const empty[] = {""};
    const char *gpt2 = model("gpt2");
    refuse((sifr_generator_options){0}, "--model: give the folder of a model");
    refuse((sifr_generator_options){.model = gpt2, .top_p = &two}, "--top-p 2: ");
    refuse((sifr_generator_options){.model = gpt2, .top_k = &minus}, "--top-k -1: ");
    refuse((sifr_generator_options){.model = gpt2, .max_new_tokens = &minus},
           "--max-new-tokens -1: ");
    refuse((sifr_generator_options){.model = gpt2, .temperature = &zero, .min_p = &zero},
           "--temperature 0 always takes");
    refuse((sifr_generator_options){.model = gpt2, .stop = empty, .stop_count = 1}, "--stop: ");
    refuse((sifr_generator_options){.model = gpt2, .samples = -1}, "--samples -1: ");
    refuse((sifr_generator_options){.model = gpt2, .samples = 2}, "--samples 2: at temperature 0");
    refuse((sifr_generator_options){.model = gpt2, .threads = -1}, "--threads -1: ");
    refuse((sifr_generator_options){.model = gpt2, .precision = "fp8"}, "--precision fp8 ");
}

static const char written[] =
    "{%- for m in messages %}<{{ m.role }}>{{ m.content | trim }}\n{% endfor %}"
    "{%- if add_generation_prompt %}<assistant>{% endif %}";

/* Two answers of a chat, and the same of the whole text that its template writes. */
static void test_chat(void **state) {
    (void)state;
    sifr_generator *generator = open_generator("llama3", (sifr_generator_options){0});
    sifr_chat_template_options options = {.size = sizeof options, .chat_template = written};
    sifr_chat_options capacity = {.size = sizeof capacity, .context = 256};
    sifr_chat_template *template;
    sifr_chat *chat;
    char messages[4096] = "[{\"role\": \"user\", \"content\": \"hills in the\"}]";
    taken t = {0}, whole = {0};
    size_t size;
    assert_int_equal(sifr_generator_template(generator, &options, &template, NULL), SIFR_OK);
    assert_int_equal(sifr_chat_open(generator, template, &capacity, &chat, NULL), SIFR_OK);
    for (int turn = 0; turn < 2; turn++) {
        t = (taken){0};
        assert_int_equal(sifr_chat_answer(chat, "hills in the", 12, take, &t, NULL), SIFR_OK);
        const char *last = sifr_chat_last(chat, &size);
        assert_int_equal(size, strlen(t.pieces[0]));
        assert_memory_equal(last, t.pieces[0], size);
        sifr_prompt prompt = {.size = sizeof prompt,
                              .text = messages,
                              .text_size = strlen(messages),
                              .chat = template,
                              .messages = true};
        assert_int_equal(sifr_generator_add(generator, &prompt, NULL), SIFR_OK);
        assert_int_equal(run(generator, &whole, NULL), SIFR_OK);
        assert_string_equal(whole.made[0], t.pieces[0]);
        /* One that is refused leaves the conversation as it was. */
        assert_int_equal(sifr_chat_answer(chat, "a\377", 2, NULL, NULL, NULL), SIFR_FAILED);
        t.most_pieces = t.piece_count;
        assert_int_equal(sifr_chat_answer(chat, "b", 1, take, &t, NULL), SIFR_LOST_RANK);
        json_t *all = json_loads(messages, 0, NULL);
        json_array_append_new(
            all, json_pack("{s:s, s:s}", "role", "assistant", "content", whole.made[0]));
        json_array_append_new(all,
                              json_pack("{s:s, s:s}", "role", "user", "content", "hills in the"));
        char *text = json_dumps(all, 0);
        snprintf(messages, sizeof messages, "%s", text);
        free(text);
        json_decref(all);
    }
    sifr_chat_free(chat);
    sifr_chat_template_free(template);
    sifr_generator_free(generator);
}

static void test_template(void **state) {
    (void)state;
    static const char messages[] = "[{\"role\": \"user\", \"content\": \" a \"}]";
    sifr_chat_template_options options = {.size = sizeof options, .chat_template = written};
    sifr_chat_template *template;
    sifr_error error = {0};
    const char *text;
    size_t size;
    assert_int_equal(sifr_chat_template_open(context, model("llama3"), NULL, &template, &error),
                     SIFR_USAGE);
    assert_non_null(strstr(error.message, "has no chat template"));
    assert_int_equal(sifr_chat_template_open(context, model("llama3"), &options, &template, &error),
                     SIFR_OK);
    for (int prompt = 0; prompt < 2; prompt++) {
        assert_int_equal(sifr_chat_template_render(template, messages, strlen(messages), prompt,
                                                   &text, &size, &error),
                         SIFR_OK);
        assert_string_equal(text, prompt ? "<user>a\n<assistant>" : "<user>a\n");
        assert_int_equal(size, strlen(text));
    }
    for (int i = 0; i < 3; i++) {
        const char *wrong = (const char *[]){"{}", "[]", "[1]"}[i];
        assert_int_equal(
            sifr_chat_template_render(template, wrong, strlen(wrong), true, &text, &size, &error),
            SIFR_USAGE);
        assert_non_null(strstr(error.message, "messages: must be an array of JSON objects"));
    }
    sifr_chat_template_free(template);
    options.tools = "{}";
    assert_int_equal(sifr_chat_template_open(context, model("llama3"), &options, &template, &error),
                     SIFR_USAGE);
    assert_non_null(strstr(error.message, "--tools"));
}

/* Ids and back, at once and token by token. */
static void test_tokenizer(void **state) {
    (void)state;
    static const char text[] = "hills, 12 \xe2\x82\xac and";
    sifr_tokenizer *t;
    sifr_decoder *decoder;
    char pieces[128] = "";
    const int32_t *ids;
    const char *back;
    size_t count, size, plain;
    assert_int_equal(sifr_tokenizer_open(context, model("llama3"), &t, NULL), SIFR_OK);
    assert_int_equal(sifr_tokenizer_encode(t, text, strlen(text), false, &ids, &plain, NULL),
                     SIFR_OK);
    assert_int_equal(sifr_tokenizer_decode(t, ids, plain, false, &back, &size, NULL), SIFR_OK);
    assert_string_equal(back, text);
    assert_int_equal(size, strlen(text));
    assert_int_equal(sifr_decoder_create(t, false, &decoder, NULL), SIFR_OK);
    for (size_t i = 0; i < plain; i++) {
        assert_int_equal(sifr_decoder_push(decoder, ids[i], &back, &size, NULL), SIFR_OK);
        strncat(pieces, back, size);
    }
    assert_int_equal(sifr_decoder_end(decoder, &back, &size, NULL), SIFR_OK);
    assert_int_equal(size, 0);
    assert_string_equal(pieces, text);
    sifr_decoder_free(decoder);
    lines[0] = '\0';
    assert_int_equal(sifr_tokenizer_encode(t, "a\377", 2, true, &ids, &count, NULL), SIFR_OK);
    assert_string_equal(lines, "1 invalid UTF-8 sequence read as U+FFFD");
    for (size_t i = 0; i < count; i++) assert_in_range(ids[i], 0, sifr_tokenizer_vocab_size(t) - 1);
    int32_t wrong = (int32_t)sifr_tokenizer_vocab_size(t);
    sifr_error error = {0};
    assert_int_equal(sifr_tokenizer_decode(t, &wrong, 1, false, &back, &size, &error), SIFR_FAILED);
    assert_true(error.message[0] != '\0');
    assert_int_equal(sifr_tokenizer_id(t, "no token has this name"), -1);
    bool whole = false;
    assert_non_null(sifr_tokenizer_bytes(t, ids[0], &size, &whole));
    assert_true(size > 0);
    assert_null(sifr_tokenizer_bytes(t, wrong, &size, &whole));
    assert_false(whole);
    int32_t eos = sifr_tokenizer_eos(t);
    assert_true(eos < 0 || sifr_tokenizer_is_special(t, eos));
    sifr_tokenizer_free(t);
}

/* A tokenizer is made of a text, and a store with it; results are as long as the caller says. */
static void test_files(void **state) {
    (void)state;
    const char *text = scratch_text("text", "one hill, two hills, three hills\n"),
               *folder, *const paths[] = {text};
    folder = scratch_path("own");
    sifr_tokenizer_train_options train = {
        .size = sizeof train, .vocab_size = 260, .paths = paths, .path_count = 1, .output = folder};
    struct {
        size_t size;
        int64_t vocab_size, untouched;
    } older = {offsetof(sifr_tokenizer_trained, bytes), 0, -1};
    sifr_error error = {0};
    assert_int_equal(
        sifr_tokenizer_train(context, &train, (sifr_tokenizer_trained *)(void *)&older, &error),
        SIFR_OK);
    assert_int_equal(older.vocab_size, 260);
    assert_int_equal(older.untouched, -1);
    assert_int_equal(sifr_tokenizer_train(context, &train, NULL, &error), SIFR_USAGE);
    assert_non_null(strstr(error.message, "already exists"));
    sifr_tokenize_options store = {.size = sizeof store,
                                   .tokenizer = folder,
                                   .paths = paths,
                                   .path_count = 1,
                                   .output = scratch_path("deep/store"),
                                   .threads = 1};
    sifr_tokenized made = {.size = 3};
    assert_int_equal(sifr_tokenize(context, &store, &made, &error), SIFR_USAGE);
    assert_non_null(strstr(error.message, "sifr_tokenized.size: 3 is no size"));
    made.size = sizeof made;
    if (sifr_tokenize(context, &store, &made, &error) != SIFR_OK) fail_msg("%s", error.message);
    assert_int_equal(made.size, sizeof made);
    assert_int_equal(made.documents, 1);
    assert_int_equal(made.bytes, 33);
    assert_true(base_is_file(scratch_path("deep/store.bin")));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_runs),
        cmocka_unit_test(test_samples),
        cmocka_unit_test(test_ended_by_caller),
        cmocka_unit_test(test_refused),
        cmocka_unit_test(test_chat),
        cmocka_unit_test(test_template),
        cmocka_unit_test(test_tokenizer),
        cmocka_unit_test(test_files),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
