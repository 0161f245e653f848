/* What a model is trained for: its class in "architectures", the number of its labels and what they
 * are, or what a caller wants in place of them. */
#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "model/labels.h"
#include "model/model_reader.h"
#include "model/registry.h"

static const char *const tasks[] = {"causal_lm", "masked_lm", "sequence_classification",
                                    "token_classification"};
static const char *const problems[] = {"single_label_classification", "multi_label_classification",
                                       "regression"};

const char *model_task_name(model_task task) {
    return tasks[task];
}

const char *model_problem_name(model_problem problem) {
    return problems[problem];
}

bool model_task_find(const char *name, model_task *out) {
    for (size_t i = 0; i < sizeof tasks / sizeof *tasks; i++) {
        if (!strcmp(tasks[i], name)) return *out = (model_task)i, true;
    }
    return false;
}

bool model_problem_find(const char *name, model_problem *out) {
    for (size_t i = 0; i < sizeof problems / sizeof *problems; i++) {
        if (!strcmp(problems[i], name)) return *out = (model_problem)i, true;
    }
    return false;
}

static const model_class *find_class(const model_architecture *architecture, const char *name) {
    for (const model_class *kind = architecture->classes; name && kind->name; kind++) {
        if (!strcmp(kind->name, name)) return kind;
    }
    return NULL;
}

static const char *list_classes(const model_architecture *architecture, char *out, size_t size) {
    size_t used = 0;
    for (const model_class *kind = architecture->classes; kind->name && used < size; kind++)
        used += (size_t)snprintf(out + used, size - used, "%s%s", used ? ", " : "", kind->name);
    return out;
}

/* The first of "architectures" names the task. */
static sifr_status read_classes(const model_reader *r, model_task *out) {
    const model_architecture *architecture = r->architecture;
    const json_t *list = model_member(r->json, "architectures");
    *out = architecture->classes[0].task;
    if (list && !json_is_array(list)) {
        return base_fail(r->error, SIFR_USAGE, "%s: \"architectures\" must be a list of names",
                         r->name);
    }
    for (size_t i = 0; i < json_array_size(list); i++) {
        const char *given = json_string_value(json_array_get(list, i));
        const model_class *kind = find_class(architecture, given);
        char known[512];
        if (kind && i == 0) *out = kind->task;
        if (kind) continue;
        return base_fail(r->error, SIFR_USAGE,
                         "%s: \"architectures\" names %.80s, which is not supported for model_type "
                         "\"%s\" (supported: %s)",
                         r->name, given ? given : "something that is not a string",
                         architecture->model_type, list_classes(architecture, known, sizeof known));
    }
    return SIFR_OK;
}

sifr_status model_read_task(const model_reader *r, model_config *out) {
    const model_choice *choice = r->choice;
    char known[512];
    BASE_TRY(read_classes(r, &out->own_task));
    out->task = choice && choice->has_task ? choice->task : out->own_task;
    if (!model_class_of(r->architecture, out->task)) {
        return base_fail(r->error, SIFR_USAGE,
                         "%s: model_type \"%s\" has no class for %s (supported: %s)", r->name,
                         r->architecture->model_type, model_task_name(out->task),
                         list_classes(r->architecture, known, sizeof known));
    }
    if (choice) {
        out->packed = choice->packed;
        out->lora = choice->lora;
        out->coding = choice->coding;
        out->objective = choice->objective;
    }
    if (out->objective.row && out->task != MODEL_NEXT_TOKEN) {
        return base_fail(r->error, SIFR_USAGE,
                         "%s: \"%s\" is for causal_lm, not for %s; leave it out", r->name,
                         out->objective.row->name, model_task_name(out->task));
    }
    if (out->packed && out->task != MODEL_NEXT_TOKEN) {
        return base_fail(r->error, SIFR_USAGE,
                         "%s: \"packing\" is for causal_lm: %s has %s each sequence; leave it out",
                         r->name, model_task_name(out->task),
                         out->task == MODEL_MASKED_TOKEN ? "a full window in" : "one example in");
    }
    if (model_task_labelled(out->task) || !choice) return SIFR_OK;
    if (!choice->num_labels && !choice->has_problem) return SIFR_OK;
    return base_fail(r->error, SIFR_USAGE,
                     "%s: a model for %s has neither labels nor a problem_type: choose another "
                     "task, or leave them out",
                     r->name, model_task_name(out->task));
}

/* What transformers takes an absent "problem_type" for, where labels are whole numbers. */
static model_problem usual_problem(const model_config *config) {
    return config->num_labels == 1 ? MODEL_REGRESSION : MODEL_SINGLE_LABEL;
}

static sifr_status read_problem(const model_reader *r, model_config *out) {
    const char *problem;
    out->problem = usual_problem(out);
    BASE_TRY(base_json_string(r->json, "problem_type", NULL, &problem, r->name, r->error));
    if (!problem || model_problem_find(problem, &out->problem)) return SIFR_OK;
    return base_fail(r->error, SIFR_USAGE,
                     "%s: \"problem_type\" is \"%.60s\", must be %s, %s or %s", r->name, problem,
                     problems[0], problems[1], problems[2]);
}

static sifr_status read_own(const model_reader *r, model_config *out) {
    model_labels labels = {0};
    BASE_TRY(model_labels_read(r->json, r->name, &labels, r->error));
    out->own_labels = out->num_labels = labels.count;
    model_labels_free(&labels);
    return out->task == MODEL_SEQUENCE_CLASSES ? read_problem(r, out) : SIFR_OK;
}

/* The count of labels and the problem that a caller wants. */
static sifr_status choose(const model_reader *r, model_config *out) {
    const model_choice *choice = r->choice;
    if (choice->num_labels < 0 || choice->num_labels > MODEL_LIMIT_LABELS) {
        return base_fail(r->error, SIFR_USAGE, "%s: %lld labels, there must be 1 … %lld", r->name,
                         (long long)choice->num_labels, (long long)MODEL_LIMIT_LABELS);
    }
    bool other = choice->num_labels && choice->num_labels != out->num_labels;
    if (choice->num_labels) out->num_labels = choice->num_labels;
    if (out->task != MODEL_SEQUENCE_CLASSES) return SIFR_OK;
    if (other) out->problem = usual_problem(out);
    if (choice->has_problem) out->problem = choice->problem;
    return SIFR_OK;
}

sifr_status model_read_labels(const model_reader *r, model_config *out) {
    if (!model_task_labelled(out->task)) return SIFR_OK;
    if (out->task == out->own_task) {
        BASE_TRY(read_own(r, out));
    } else {
        out->num_labels = 2; /* what is absent means in transformers */
    }
    if (r->choice) BASE_TRY(choose(r, out));
    bool single = out->task == MODEL_SEQUENCE_CLASSES && out->problem == MODEL_SINGLE_LABEL;
    if (!single || out->num_labels > 1) return SIFR_OK;
    return base_fail(r->error, SIFR_USAGE,
                     "%s: \"problem_type\" is %s, which needs at least two labels, but there is "
                     "one (one number is a regression)",
                     r->name, model_problem_name(MODEL_SINGLE_LABEL));
}
