/* Of LLaMA-Factory: files that train nothing, its later version, and its packs. */
#include <string.h>

#include "config/import/import_private.h"

static bool has(const import_state *s, const char *key) {
    return import_asks(json_object_get(s->source, key));
}

/* A file of `llamafactory-cli export`, chat, api or eval trains nothing, whatever it names. */
sifr_status import_begin_factory(import_state *s) {
    static const char *const trains[] = {
        "do_train",         "dataset",    "learning_rate",
        "num_train_epochs", "max_steps",  "per_device_train_batch_size",
        "deepspeed",        "output_dir", "stage"};
    const char *what = NULL;
    bool learns = false, off = json_is_false(json_object_get(s->source, "do_train"));
    for (size_t i = 0; i < sizeof trains / sizeof *trains; i++) learns |= has(s, trains[i]);
    if (has(s, "export_dir") && !has(s, "do_train"))
        what = "it merges a model (export_dir): see sifr merge";
    else if (has(s, "do_predict") && !has(s, "do_train"))
        what = "it predicts (do_predict without do_train): see sifr eval and sifr generate";
    else if (off)
        what = "do_train is false: see sifr eval";
    else if (!learns && (has(s, "template") || has(s, "infer_backend") || has(s, "task")))
        what = "it infers or evaluates: see sifr generate and sifr eval";
    if (!what) return SIFR_OK;
    return base_fail(s->error, SIFR_USAGE, "%s: is %s that trains nothing: %s", s->name,
                     s->kind->name, what);
}

sifr_status import_begin_factory_v1(import_state *s) {
    return base_fail(s->error, SIFR_USAGE,
                     "%s: is %s (model, train_dataset, peft_config, optim_config …), which is not "
                     "supported yet (supported: the keys of version 0, as model_name_or_path, "
                     "dataset and finetuning_type)",
                     s->name, s->kind->name);
}

/* Of several it merges all but the last into the model first. */
sifr_status import_adapter_path(import_state *s, const char *key, json_t *value) {
    static const import_row row = COPY("adapter_name_or_path", "sifr.adapter");
    const char *path = json_string_value(value);
    if (s->kind == &import_factory && path && strchr(path, ','))
        return import_refuse(s, key, value,
                             "there is one adapter: merge all but the last with `sifr merge`, and "
                             "give the model that it makes");
    return import_apply(s, &row, key, value);
}

static bool pretrains(const import_state *s) {
    const char *stage = json_string_value(json_object_get(s->source, "stage"));
    return stage && strcmp(stage, "pt") == 0;
}

/* Texts to pre-train on are joined into full sequences, unless it is told not to. */
sifr_status import_factory_stage(import_state *s) {
    static const char *const to = "sifr.join_texts";
    const json_t *packing = json_object_get(s->source, "packing");
    json_t *stage = json_object_get(s->source, "stage");
    if (!pretrains(s) || s->kind != &import_factory || json_is_false(packing)) {
        if (import_asks(stage)) import_say_idle(s, "stage", stage, "the data say what is learned");
        return SIFR_OK;
    }
    import_say_kept(s, "stage", stage, "sifr.join_texts, eos (for text files leave it out)");
    import_drop(s, "sifr.packing"); /* neat_packing is of fine-tuning */
    return import_put(s, to, json_string("eos"));
}

/* Its packs attend across their rows, unless they are "neat". */
sifr_status import_factory_packing(import_state *s, const char *key, json_t *value) {
    static const import_row row = COPY("packing", "sifr.packing");
    if (s->kind != &import_factory) return import_apply(s, &row, key, value);
    if (pretrains(s)) {
        if (json_is_true(value)) import_say_kept(s, key, value, "sifr.join_texts, as stage says");
        if (json_is_false(value)) import_say_idle(s, key, value, "each row is a sequence");
        return SIFR_OK;
    }
    if (!json_is_true(value)) return SIFR_OK;
    if (json_is_true(json_object_get(s->source, "neat_packing"))) {
        import_say_kept(s, key, value, "sifr.packing, as neat_packing says");
        return SIFR_OK;
    }
    return import_refuse(s, key, value,
                         "without neat_packing the rows of a pack see each other there, and never "
                         "here; give neat_packing: true");
}
