#include <math.h>
#include <stdlib.h>

#include "api/api_context.h"
#include "base/heap.h"
#include "base/inside.h"
#include "sifr/watch.h"
#include "train/view/screen.h"

struct sifr_watch {
    train_view_follow follow;
    int64_t events, records; /* that sifr_watch_news has told */
};

sifr_status sifr_watch_open(sifr_context *context, const char *run, sifr_watch **out,
                            sifr_error *error) {
    BASE_ENTER(error, context, run, out);
    sifr_watch *watch;
    *out = NULL;
    BASE_TRY(base_alloc(1, sizeof *watch, &watch, error));
    sifr_status status = train_view_follow_open(&watch->follow, run, error);
    if (status == SIFR_OK)
        *out = watch;
    else
        free(watch);
    return status;
}

void sifr_watch_close(sifr_watch *watch) {
    BASE_ENTER_VOID(watch);
    train_view_follow_close(&watch->follow);
    free(watch);
}

sifr_status sifr_watch_look(sifr_watch *watch, sifr_watch_state *out, sifr_error *error) {
    BASE_ENTER(error, watch, out);
    const train_view_follow *f = &watch->follow;
    BASE_TRY(api_check_result("sifr_watch_state", out, error));
    BASE_TRY(train_view_follow_look(&watch->follow, error));
    sifr_watch_state state = {.there = f->open,
                              .behind = f->behind,
                              .over = train_view_follow_over(f),
                              .records = f->run.records,
                              .step = f->run.last_step,
                              .total_steps = f->total_steps,
                              .left = train_view_follow_left(f)};
    api_give_result(&state, sizeof state, out);
    return SIFR_OK;
}

sifr_status sifr_watch_screen(sifr_watch *watch, const sifr_watch_options *options, char **text,
                              sifr_error *error) {
    BASE_ENTER(error, watch, text);
    sifr_watch_options o = {0};
    *text = NULL;
    BASE_TRY(api_take_options("sifr_watch_options", options, sizeof o, &o, error));
    train_screen screen = {.columns = o.columns > 0 ? o.columns : 80,
                           .rows = o.rows > 0 ? o.rows : 24,
                           .utf8 = o.utf8,
                           .styled = o.styled,
                           .foot = o.foot};
    return train_screen_draw(&screen, &watch->follow, text, error);
}

sifr_status sifr_watch_news(sifr_watch *watch, char **text, sifr_error *error) {
    BASE_ENTER(error, watch, text);
    *text = NULL;
    return train_screen_news(&watch->follow, false, &watch->events, &watch->records, text, error);
}
