/* What scripts that run the Trainer say of rows: how many, of which split, how many are held out.
 */
#include <string.h>

#include "config/import/import_private.h"

/* 0 is all of them for sifr. */
sifr_status import_max_rows(import_state *s, const char *key, json_t *value) {
    static const import_row row = COPY("max_samples", "sifr.max_samples");
    if (json_is_number(value) && json_number_value(value) <= 0)
        return import_refuse(s, key, value, "it leaves no rows to learn from");
    return import_apply(s, &row, key, value);
}

/* Whether a name of datasets is that of a part of a split, or of several: "train[:10]", "a+b". */
bool import_is_part(const json_t *value) {
    const char *name = json_string_value(value);
    for (size_t i = 0; i < json_array_size(value); i++)
        if (import_is_part(json_array_get(value, i))) return true;
    return name && strpbrk(name, "[+%");
}

sifr_status import_split(import_state *s, const char *key, json_t *value) {
    const char *name = json_string_value(value);
    if (!import_asks(value)) return SIFR_OK;
    if (import_is_part(value))
        return import_refuse(s, key, value,
                             "a part of a split: write its rows into a file, and pass the key with "
                             "--allow");
    const char *file = json_string_value(json_object_get(s->source, "dataset_name"));
    if (name && strcmp(name, "train") == 0 && import_names_file(file))
        import_say_idle(s, key, value, "a file has this split alone");
    else
        import_say_left(s, key, value, "give the files of this split to --data");
    return SIFR_OK;
}

/* Earlier versions of TRL cut a prompt, or an answer, by itself; null is no cut. */
sifr_status import_prompt_cut(import_state *s, const char *key, json_t *value) {
    const json_t *whole = json_object_get(s->source, "max_length");
    if (!import_is_given(value)) return SIFR_OK;
    double most = json_is_number(whole) ? json_number_value(whole) : 1024;
    if (!json_is_number(value) || json_number_value(value) < most)
        return import_refuse(s, key, value,
                             "earlier versions of TRL cut a part of the row there; as in TRL 1.16, "
                             "which has no such key, rows are cut at max_length alone");
    import_say_idle(s, key, value, "rows are cut at max_length before");
    return SIFR_OK;
}

/* run_clm.py's model_type is that of a model that it makes itself, where none is named. */
sifr_status import_script_model(import_state *s, const char *key, json_t *value) {
    static const char *const named[] = {"model_name_or_path", "config_name"};
    if (!import_asks(value)) return SIFR_OK;
    for (size_t i = 0; i < 2; i++) {
        if (!import_asks(json_object_get(s->source, named[i]))) continue;
        import_say_idle(s, key, value, "the model's config.json says");
        return SIFR_OK;
    }
    return import_refuse(s, key, value,
                         "training begins with a model's weights: make a folder of random ones "
                         "with `sifr init`, and give it as model_name_or_path");
}

/* run_clm.py and its like hold out the first rows of train_file where there is no other file. */
sifr_status import_script_share(import_state *s, const char *key, json_t *value) {
    if (json_is_integer(value) && json_integer_value(value) >= 0) return SIFR_OK;
    return import_refuse(s, key, value, "a whole number of percent is expected");
}

/* block_size is a key of run_clm.py and run_mlm.py alone. */
static bool is_script(const import_state *s) {
    return s->kind == &import_trainer &&
           (import_asks(json_object_get(s->source, "block_size")) ||
            import_is_given(json_object_get(s->source, "validation_split_percentage")));
}

/* run_clm.py joins the texts of rows, with what the tokenizer puts around each, and cuts them. */
static sifr_status join_rows(import_state *s) {
    static const char *const block = "block_size", *const counted = "max_train_samples";
    json_t *size = json_object_get(s->source, block), *most = json_object_get(s->source, counted);
    const char *file = json_string_value(import_get(s, "sifr.data"));
    if (json_object_get(s->source, "max_seq_length")) return SIFR_OK; /* run_mlm.py */
    if (file && !import_names_file(file)) return SIFR_OK;
    json_t *how = json_string("plain");
    import_say_kept(s, "its way with rows", how, "sifr.join_texts (for text files leave it out)");
    if (!import_is_given(size)) {
        json_t *usual = json_integer(1024);
        import_say_kept(s, "its default of block_size", usual,
                        "sifr.seq_length (there at most the tokenizer's)");
        BASE_TRY(import_put(s, "sifr.seq_length", usual));
    }
    BASE_TRY(import_put(s, "sifr.join_texts", how));
    bool none = json_is_number(most) && json_number_value(most) <= 0; /* import_max_rows says so */
    if (!import_is_given(most) || none) return SIFR_OK;
    import_drop(s, "sifr.max_samples");
    return import_refuse(s, counted, most,
                         "it counts sequences of joined texts there, and rows here");
}

sifr_status import_script_rows(import_state *s) {
    static const char *const key = "validation_split_percentage", *const to =
                                                                      "sifr.validation_split";
    json_t *given = json_object_get(s->source, key), *value;
    const char *file = json_string_value(import_get(s, "sifr.data"));
    sifr_status status = SIFR_OK;
    if (!is_script(s)) return SIFR_OK;
    BASE_TRY(join_rows(s));
    if (import_get(s, "sifr.eval_data")) {
        if (import_is_given(given)) import_say_idle(s, key, given, "validation_file counts");
        return SIFR_OK;
    }
    if (json_integer_value(given) >= 100)
        return import_refuse(s, key, given, "it leaves no rows to learn from");
    const char *said = given ? key : "its default of validation_split_percentage";
    value = given ? json_incref(given) : json_integer(5);
    if (file && import_names_file(file) && json_integer_value(value) > 0) {
        import_say_kept(s, said, value, to);
        status = import_put(s, to, json_real((double)json_integer_value(value) / 100));
    } else if (json_integer_value(value) > 0) {
        import_say_left(s, said, value,
                        "the first of the data are held out there: take them out of --data, and "
                        "give them to --eval-data");
    }
    json_decref(value);
    return status;
}

/* A script of transformers trains where do_train is true alone; one of the user's own need not. */
sifr_status import_begin_trainer(import_state *s) {
    const json_t *train = json_object_get(s->source, "do_train");
    bool script = import_asks(json_object_get(s->source, "train_file")) ||
                  import_asks(json_object_get(s->source, "dataset_name"));
    if (!script || !json_is_false(train)) return SIFR_OK;
    return base_fail(s->error, SIFR_USAGE,
                     "%s: do_train is false: it is %s that trains nothing; see sifr eval", s->name,
                     s->kind->name);
}
