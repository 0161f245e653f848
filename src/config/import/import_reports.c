/* Where other programs send a run's figures: what sifr writes too goes on, and of the rest a line
 * says what brings a run's files there. Logins and addresses are the environment's. */
#include <stdio.h>
#include <string.h>

#include "config/import/import_private.h"

/* Words of report_to, as transformers has them. */
static const struct {
    const char *word, *why;
} others[] = {
    {"wandb", "its package reads metrics.jsonl (docs/monitoring.md)"},
    {"comet_ml", "its package reads metrics.jsonl (docs/monitoring.md)"},
    {"swanlab", "`swanlab convert` reads the files of tensorboard (docs/monitoring.md)"},
    {"trackio", "trackio.import_tf_events reads the files of tensorboard (docs/monitoring.md)"},
    {"all", "what is installed there is not known here; give tensorboard or mlflow"},
};

/* In the output, where the Trainer has them, or in its logging_dir of earlier versions. A DeepSpeed
 * config that has the section says itself where. */
static sifr_status put_tensorboard(import_state *s) {
    json_t *folder = json_object_get(s->source, "logging_dir");
    bool own = json_is_string(folder) && json_string_length(folder);
    if (!own) folder = json_object_get(s->source, "output_dir");
    if (!import_get(s, "tensorboard.output_path") && json_is_string(folder)) {
        BASE_TRY(import_put(s, "tensorboard.output_path", json_incref(folder)));
        BASE_TRY(import_put(s, "tensorboard.job_name", json_string(own ? "" : "runs")));
    }
    return import_put(s, "tensorboard.enabled", json_true());
}

static void say_other(import_state *s, const char *key, const json_t *value, const char *word) {
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        if (strcmp(others[i].word, word) != 0) continue;
        import_say_idle(s, key, value, others[i].why);
        return;
    }
    import_say_left(s, key, value,
                    "reports go to the output folder (supported beside it: tensorboard, mlflow)");
}

static sifr_status report_to(import_state *s, const char *key, const json_t *value) {
    const char *word = json_string_value(value);
    if (!import_asks(value)) return SIFR_OK;
    if (word && strcmp(word, "tensorboard") == 0) {
        import_say_kept(s, key, value, "tensorboard.enabled");
        return put_tensorboard(s);
    }
    if (word && strcmp(word, "mlflow") == 0) {
        import_say_kept(s, key, value, "sifr.mlflow");
        return import_put(s, "sifr.mlflow", json_true());
    }
    say_other(s, key, value, word ? word : "");
    return SIFR_OK;
}

sifr_status import_report_to(import_state *s, const char *key, json_t *value) {
    size_t i;
    json_t *word;
    if (!json_is_array(value)) return report_to(s, key, value);
    json_array_foreach(value, i, word) BASE_TRY(report_to(s, key, word));
    return SIFR_OK;
}

static bool asks_for_tensorboard(const import_state *s) {
    const json_t *words = json_object_get(s->source, "report_to"), *word;
    size_t i;
    if (json_is_string(words)) return strcmp(json_string_value(words), "tensorboard") == 0;
    json_array_foreach(words, i,
                       word) if (json_is_string(word) &&
                                 strcmp(json_string_value(word), "tensorboard") == 0) return true;
    return false;
}

/* put_tensorboard takes it, before or after this; a DeepSpeed config's own folder stays. */
sifr_status import_logging_dir(import_state *s, const char *key, json_t *value) {
    const json_t *put = import_get(s, "tensorboard.output_path");
    if (!asks_for_tensorboard(s))
        import_say_idle(s, key, value, "report_to does not name tensorboard");
    else if (put && !json_equal(put, value))
        import_say_idle(s, key, value, "tensorboard.output_path is given");
    else
        import_say_kept(s, key, value, "tensorboard.output_path");
    return SIFR_OK;
}

/* --- axolotl's keys --- */

sifr_status import_use_tensorboard(import_state *s, const char *key, json_t *value) {
    if (!json_is_true(value)) return SIFR_OK;
    import_say_kept(s, key, value, "tensorboard.enabled");
    return put_tensorboard(s);
}

/* axolotl takes the name for use_mlflow. */
sifr_status import_mlflow_experiment(import_state *s, const char *key, json_t *value) {
    if (!import_asks(value)) return SIFR_OK;
    import_say_kept(s, key, value, "sifr.mlflow; the name: set MLFLOW_EXPERIMENT_NAME to it");
    return import_put(s, "sifr.mlflow", json_true());
}

/* It may have a password, which no line shows. */
sifr_status import_mlflow_uri(import_state *s, const char *key, json_t *value) {
    const char *uri = json_string_value(value);
    json_t *hidden = uri && strchr(uri, '@') ? json_string("…") : NULL;
    if (import_asks(value))
        import_say_left(s, key, hidden ? hidden : value,
                        "the environment says it: set MLFLOW_TRACKING_URI to it");
    json_decref(hidden);
    return SIFR_OK;
}

sifr_status import_mlflow_artifacts(import_state *s, const char *key, json_t *value) {
    bool sends = json_is_true(json_object_get(s->source, "use_mlflow")) ||
                 import_asks(json_object_get(s->source, "mlflow_experiment_name"));
    if (!json_is_true(value)) return SIFR_OK;
    if (!sends) {
        import_say_idle(s, key, value, "without use_mlflow nothing is sent");
        return SIFR_OK;
    }
    import_say_kept(s, key, value, "sifr.mlflow_artifacts \"model\", when the run ends");
    return import_put(s, "sifr.mlflow_artifacts", json_string("model"));
}
