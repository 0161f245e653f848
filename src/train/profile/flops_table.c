#include "train/profile/flops_table.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "plan/mesh.h"

/* A unit or the model: the sums of its nodes. */
typedef struct part {
    const char *name;
    double params, operations, seconds;
} part;

/* "3.14 M", as DeepSpeed writes numbers; `unit` follows. Returns out. */
static const char *short_number(double number, const char *unit, char out[48]) {
    static const struct {
        double size;
        const char *name;
    } scales[] = {{1e12, "T"}, {1e9, "G"}, {1e6, "M"}, {1e3, "K"}, {1, ""}, {1e-3, "m"}};
    size_t i = 0, last = sizeof scales / sizeof *scales - 1;
    char digits[32];
    while (i < last && number != 0 && number < scales[i].size) i++;
    if (number == 0) i = 4;
    bool tiny = number != 0 && number < scales[last].size;
    snprintf(digits, sizeof digits, "%.2f", tiny ? number / 1e-6 : number / scales[i].size);
    size_t used = strlen(digits);
    while (digits[used - 1] == '0') digits[--used] = '\0';
    if (digits[used - 1] < '0' || digits[used - 1] > '9') digits[--used] = '\0'; /* the point */
    const char *scale = tiny ? "u" : scales[i].name;
    snprintf(out, 48, "%s%s%s%s", digits, *scale || *unit ? " " : "", scale, unit);
    return out;
}

static void put(FILE *out, const char *label, double number, const char *unit) {
    char text[48];
    fprintf(out, "%-70s  %s\n", label, short_number(number, unit, text));
}

static double rate(double operations, double seconds) {
    return seconds > 0 ? operations / seconds : 0;
}

static part part_of(const train_flops *f, size_t unit) {
    const sifr_model *model = f->schedule->model;
    const model_unit *u = &model->units[unit];
    part p = {.name = u->name};
    for (int32_t w = u->first_weight; w < u->first_weight + u->weights; w++)
        p.params += (double)model_logical_elements(&model->weights[w]);
    for (int32_t n = u->first_node; n < u->first_node + u->nodes; n++) {
        p.operations += f->work[n].operations;
        p.seconds += f->work[n].seconds;
    }
    return p;
}

static part whole_of(const train_flops *f) {
    part sum = {.name = "model"};
    for (size_t u = 0; u < f->schedule->model->unit_count; u++) {
        part p = part_of(f, u);
        sum.params += p.params;
        sum.operations += p.operations;
        sum.seconds += p.seconds;
    }
    return sum;
}

static void put_summary(const train_flops *f, const part *whole, double step_seconds, FILE *out) {
    const plan_settings *s = &f->schedule->settings;
    double both = f->forward_operations + f->backward_operations;
    double micro = (double)s->step.micro_batch_size;
    double samples = micro * (double)s->step.gradient_accumulation_steps *
                     (double)plan_mesh_ranks(&s->mesh, PLAN_DATA);
    put(out, "world size:", (double)plan_mesh_ranks(&s->mesh, PLAN_WORLD), "");
    put(out, "data parallel size:", (double)plan_mesh_ranks(&s->mesh, PLAN_DATA), "");
    put(out, "batch size per rank:", micro, "");
    put(out, "micro batches a step:", (double)s->step.gradient_accumulation_steps, "");
    put(out, "params of the model:", whole->params, "");
    put(out, "fwd MACs per rank:", f->forward_operations / 2, "MACs");
    put(out, "fwd flops per rank:", f->forward_operations, "");
    put(out, "fwd latency:", f->forward, "s");
    put(out, "fwd FLOPS per rank = fwd flops per rank / fwd latency:",
        rate(f->forward_operations, f->forward), "FLOPS");
    put(out, "bwd flops per rank, with what is computed again:", f->backward_operations, "");
    put(out, "bwd latency:", f->backward, "s");
    put(out, "bwd FLOPS per rank = bwd flops per rank / bwd latency:",
        rate(f->backward_operations, f->backward), "FLOPS");
    put(out, "fwd+bwd FLOPS per rank:", rate(both, f->forward + f->backward), "FLOPS");
    put(out, "step latency (norm and update):", f->update, "s");
    put(out, "latency of all else (waits for other ranks, transfers):", f->other, "s");
    put(out, "iter latency:", step_seconds, "s");
    put(out, "FLOPS per rank = fwd+bwd flops per rank / iter latency:", rate(both, step_seconds),
        "FLOPS");
    put(out, "samples/second:", rate(samples, step_seconds), "");
}

static double key_of(const part *p, int key) {
    return key == 0 ? p->params : key == 1 ? p->operations / 2 : p->seconds;
}

/* The `count` units with most of a key: each time the one that follows the one before. */
static void put_top(const train_flops *f, int64_t count, int key, FILE *out) {
    static const char *const units[] = {"", "MACs", "s"};
    size_t all = f->schedule->model->unit_count, last = all;
    for (int64_t i = 0; i < count && i < (int64_t)all; i++) {
        size_t best = all;
        for (size_t u = 0; u < all; u++) {
            part here = part_of(f, u), top = best < all ? part_of(f, best) : here;
            part before = last < all ? part_of(f, last) : here;
            double k = key_of(&here, key), b = key_of(&before, key);
            bool follows = last == all || k < b || (k == b && u > last);
            if (follows && (best == all || k > key_of(&top, key))) best = u;
        }
        char text[48];
        part p = part_of(f, best);
        fprintf(out, "%s'%s': '%s'", i ? ", " : "", p.name,
                short_number(key_of(&p, key), units[key], text));
        last = best;
    }
}

static void put_tops(const train_flops *f, const part *whole, FILE *out) {
    static const char *const names[] = {"params     ", "MACs       ", "fwd latency"};
    static const char *const units[] = {"", "MACs", "s"};
    char text[48];
    int64_t depth = f->config->module_depth;
    fprintf(out,
            "Top %lld modules in terms of params, MACs or fwd latency at different model "
            "depths:\n",
            (long long)f->config->top_modules);
    for (int d = 0; d < 2 && (depth < 0 || d < depth); d++) {
        fprintf(out, "depth %d:\n", d);
        for (int key = 0; key < 3; key++) {
            fprintf(out, "    %s - {", names[key]);
            if (d == 0)
                fprintf(out, "'model': '%s'", short_number(key_of(whole, key), units[key], text));
            else
                put_top(f, f->config->top_modules, key, out);
            fputs("}\n", out);
        }
    }
}

static void put_row(const part *p, const part *whole, int depth, FILE *out) {
    char params[48], macs[48], time[48], speed[48];
    fprintf(out, "%*s%s: %s = %.2f%% Params, %s = %.2f%% MACs, %s = %.2f%% latency, %s\n",
            2 * depth, "", p->name, short_number(p->params, "", params),
            100 * rate(p->params, whole->params), short_number(p->operations / 2, "MACs", macs),
            100 * rate(p->operations, whole->operations), short_number(p->seconds, "s", time),
            100 * rate(p->seconds, whole->seconds),
            short_number(rate(p->operations, p->seconds), "FLOPS", speed));
}

/* An op with the weight that it multiplies or reads, if it has one. */
static void put_node(const train_flops *f, int32_t node, const part *whole, FILE *out) {
    const sifr_model *model = f->schedule->model;
    const model_node *n = &model->nodes[node];
    const model_weight *weight = n->w[0] >= 0 ? &model->weights[n->w[0]] : NULL;
    char name[256];
    part p = {
        .name = name, .operations = f->work[node].operations, .seconds = f->work[node].seconds};
    snprintf(name, sizeof name, "%s%s%s", n->op->name, weight ? " " : "",
             weight ? weight->name : "");
    for (int i = 0; i < DEVICE_WEIGHTS; i++)
        if (n->w[i] >= 0 && model->weights[n->w[i]].unit == n->unit)
            p.params += (double)model_logical_elements(&model->weights[n->w[i]]);
    put_row(&p, whole, 2, out);
}

static void put_detail(const train_flops *f, const part *whole, FILE *out) {
    const sifr_model *model = f->schedule->model;
    put_row(whole, whole, 0, out);
    for (size_t u = 0; u < model->unit_count; u++) {
        const model_unit *unit = &model->units[u];
        part p = part_of(f, u);
        put_row(&p, whole, 1, out);
        for (int32_t n = unit->first_node; n < unit->first_node + unit->nodes; n++)
            put_node(f, n, whole, out);
    }
}

char *train_flops_table(const train_flops *f, double step_seconds, size_t *size) {
    char *text = NULL;
    FILE *out = open_memstream(&text, size);
    if (!out) return NULL;
    part whole = whole_of(f);
    fprintf(out,
            "-------------------------- Flops Profiler --------------------------\n"
            "Profile Summary at step %lld (profile_step %lld), of the first rank:\n",
            (long long)f->step, (long long)f->config->profile_step);
    put_summary(f, &whole, step_seconds, out);
    fputs(
        "----------------------------- Aggregated Profile per rank -----------------------------\n",
        out);
    put_tops(f, &whole, out);
    if (f->config->detailed) {
        fputs("------------------------------ Detailed Profile per rank "
              "------------------------------\n",
              out);
        put_detail(f, &whole, out);
    }
    if (fclose(out) == 0) return text;
    free(text);
    return NULL;
}
