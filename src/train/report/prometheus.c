#include "train/report/prometheus.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "train/report/python_number.h"

static void note_more(train_prometheus *p, const char *key, double value) {
    int i = 0;
    while (i < p->more && strcmp(p->of[i].key, key) != 0) i++;
    if (i == TRAIN_PROMETHEUS_MORE) return;
    if (i == p->more) snprintf(p->of[p->more++].key, sizeof p->of[i].key, "%s", key);
    p->of[i].value = value;
}

/* Values are those of metrics.jsonl: a step between two records has none. */
static bool is_noted(const train_record *record, train_metric_id id) {
    train_when when = train_metric_at(id)->when;
    if (record->when == TRAIN_EACH_EVALUATION) return when == TRAIN_EACH_EVALUATION;
    return record->when == TRAIN_EACH_RECORD && when != TRAIN_EACH_EVALUATION;
}

void train_prometheus_note(train_prometheus *p, const train_record *record) {
    char key[64];
    p->newest.step = record->step;
    p->newest.samples = record->samples;
    p->newest.time = record->time;
    if (record->when != TRAIN_EACH_EVALUATION) p->newest.left = record->left;
    for (int id = 0; id < TRAIN_METRICS; id++)
        if (record->has >> id & 1 && is_noted(record, (train_metric_id)id))
            train_record_put(&p->newest, (train_metric_id)id, record->value[id]);
    for (int i = 0; i < record->more && record->when != TRAIN_EACH_STEP; i++)
        note_more(p, train_record_key(record, i, key), record->of[i].value);
}

/* A label's value: backslash, quote and newline are escaped. */
static void put_label(FILE *out, const char *text) {
    for (; *text; text++) {
        if (*text == '\\' || *text == '"') fputc('\\', out);
        fputs(*text == '\n' ? "\\n" : (char[2]){*text, '\0'}, out);
    }
}

static void put_name(FILE *out, const char *key) {
    fputs("sifr_", out);
    for (; *key; key++) fputc(strchr("/-. ", *key) ? '_' : *key, out);
}

static void put(FILE *out, const train_prometheus *p, const char *key, const char *unit,
                double value) {
    char number[32];
    fputs("# HELP ", out);
    put_name(out, key);
    fprintf(out, " %s%s%s%s\n# TYPE ", key, *unit ? " (" : "", unit, *unit ? ")" : "");
    put_name(out, key);
    fputs(" gauge\n", out);
    put_name(out, key);
    fputs("{run=\"", out);
    put_label(out, p->run);
    fprintf(out, "\"} %s\n",
            isnan(value)   ? "NaN"
            : isinf(value) ? value < 0 ? "-Inf" : "+Inf"
                           : train_python_number(value, number));
}

char *train_prometheus_text(const train_prometheus *p, size_t *size) {
    char *text = NULL;
    FILE *out = open_memstream(&text, size);
    if (!out) return NULL;
    put(out, p, "running", "1: yes", p->ended ? 0 : 1);
    put(out, p, "step", "steps", (double)p->newest.step);
    put(out, p, "total_steps", "steps", (double)p->total_steps);
    put(out, p, "samples", "sequences", (double)p->newest.samples);
    put(out, p, "seconds_left", "s", p->newest.left);
    put(out, p, "updated", "s since 1970", p->newest.time);
    for (int id = 0; id < TRAIN_METRICS; id++) {
        const train_metric *m = train_metric_at((train_metric_id)id);
        if (p->newest.has >> id & 1) put(out, p, m->key, m->unit, p->newest.value[id]);
    }
    for (int i = 0; i < p->more; i++) put(out, p, p->of[i].key, "", p->of[i].value);
    if (fclose(out) == 0) return text;
    free(text);
    return NULL;
}
