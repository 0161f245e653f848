/* What the arguments of the Hugging Face Trainer, and of the programs built on it, say together. */
#include <stdio.h>
#include <string.h>

#include "config/config_private.h"
#include "config/import/import_private.h"

/* Under the Trainer a DeepSpeed config that has a scheduler decides, but for what is "auto". */
sifr_status import_finish_schedule(import_state *s, const char *usual) {
    static const char *const keys[] = {"sifr.lr_scheduler_type", "sifr.lr_scheduler_kwargs",
                                       "sifr.warmup_steps", "sifr.warmup_ratio"};
    if (!import_get(s, "scheduler.type")) {
        if (import_get(s, keys[0])) return SIFR_OK;
        json_t *kind = json_string(usual);
        import_say_kept(s, "its default of lr_scheduler_type", kind, keys[0]);
        return import_put(s, keys[0], kind);
    }
    bool open = config_value_is_auto(import_get(s, "scheduler.params.warmup_num_steps"));
    for (size_t i = 0; i < (open ? 2 : 4); i++) {
        const json_t *value = import_get(s, keys[i]);
        if (!value) continue;
        import_say_left(s, keys[i] + 5, value, "the DeepSpeed config has a scheduler");
        import_drop(s, keys[i]);
    }
    return SIFR_OK;
}

/* "steps" is what sifr has; with "no" the number of steps does nothing. */
static sifr_status trainer_strategy(import_state *s, const char *key, const import_row *steps,
                                    const char *usual) {
    const json_t *value = json_object_get(s->source, key);
    json_t *count = json_object_get(s->source, steps->from);
    const char *word = value && !json_is_null(value) ? json_string_value(value) : usual;
    char why[80];
    if (json_is_false(value)) word = "no";
    snprintf(why, sizeof why, "%s counts", steps->from);
    if (word && value && strcmp(word, "steps") == 0) import_say_idle(s, key, value, why);
    if (!word || strcmp(word, "steps") == 0)
        return import_is_given(count) ? import_apply(s, steps, steps->from, count) : SIFR_OK;
    if (strcmp(word, "no") != 0)
        import_say_left(s, key, value, "only a number of steps is supported, and the end");
    snprintf(why, sizeof why, "%s is %.40s", key, word);
    if (import_asks(count)) import_say_idle(s, steps->from, count, why);
    import_drop(s, steps->to);
    return SIFR_OK;
}

static bool is_true(const import_state *s, const char *key) {
    return json_is_true(json_object_get(s->source, key));
}

/* The keys that switch adapters on. */
static void say_adapters(import_state *s, bool on, const char *off) {
    static const char *const keys[] = {"use_peft", "use_lora", "use_qlora"};
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
        const json_t *value = json_object_get(s->source, keys[i]);
        if (!json_is_true(value)) continue;
        if (on)
            import_say_kept(s, keys[i], value, "sifr.lora");
        else
            import_say_idle(s, keys[i], value, off);
    }
}

/* TRL's use_peft, LLaMA-Factory's finetuning_type, and open-instruct's use_lora, with their
 * defaults. LLaMA-Factory trains adapters unless it is told otherwise. */
static sifr_status trainer_lora(import_state *s) {
    const json_t *type = json_object_get(s->source, "finetuning_type");
    const char *word = json_string_value(type);
    bool factory = s->kind == &import_factory && (!type || (word && strcmp(word, "lora") == 0));
    bool instruct = is_true(s, "use_lora") || is_true(s, "use_qlora");
    bool goes_on = import_get(s, "sifr.adapter");
    import_lora lora = {.on = (factory || instruct || is_true(s, "use_peft")) && !goes_on,
                        .off = goes_on ? "the adapter has its own" : "no adapter is trained"};
    say_adapters(s, lora.on, lora.off);
    if (lora.on && factory && !type) {
        json_t *usual = json_string("lora");
        import_say_kept(s, "its default of finetuning_type", usual, "sifr.lora");
        json_decref(usual);
    }
    if (factory)
        lora.r = 8, lora.alpha_by_rank = 2, lora.all = true;
    else if (instruct)
        lora.r = 64, lora.alpha = 16, lora.dropout = 0.1, lora.all = true;
    else
        lora.r = 16, lora.alpha = 32, lora.dropout = 0.05;
    BASE_TRY(import_finish_lora(s, &lora));
    return import_finish_codes(s, json_object_get(s->source, "quantization_bit") != NULL);
}

sifr_status import_finish_trainer(import_state *s) {
    static const import_row saves = STEPS("save_steps", "sifr.save_steps"),
                            evals = STEPS("eval_steps", "sifr.eval_steps");
    bool old = json_object_get(s->source, "evaluation_strategy");
    BASE_TRY(trainer_strategy(s, "save_strategy", &saves, "steps"));
    BASE_TRY(trainer_strategy(s, old ? "evaluation_strategy" : "eval_strategy", &evals, "no"));
    BASE_TRY(import_trainer_defaults(s));
    BASE_TRY(import_finish_optimizer(s, "optim"));
    BASE_TRY(import_script_rows(s));
    BASE_TRY(import_finish_rows(s, "val_size"));
    BASE_TRY(trainer_lora(s));
    BASE_TRY(import_trainer_objective(s));
    return import_finish_schedule(s, "linear");
}
