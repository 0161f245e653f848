/* The end of a run. */
#include <stdlib.h>

#include "train/run.h"

void train_close(train_state *t) {
    train_profile_close(&t->profile);
    if (!train_monitor_finish(&t->monitor)) train_queue_unkept(t->queue);
    train_monitor_close(&t->monitor);
    train_queue_close(t->queue);
    checkpoint_output_close(&t->output);
    json_decref(t->must_match);
    json_decref(t->may_differ);
    json_decref(t->defaults);
    json_decref(t->position);
    json_decref(t->tensors);
    checkpoint_base_free(&t->base);
    free(t->words);
    free(t->measured);
    data_rows_free(&t->rows);
    data_set_close(t->held_out);
    data_set_close(t->data);
    sifr_engine_free(t->engine);
    engine_folder_close(&t->folder);
    model_lora_free(&t->lora);
}
